//! The text of a column's type as SQLAlchemy's SQLite reflection prints it.

/// What a type prints of the numbers in its parentheses.
#[derive(Clone, Copy)]
enum Arguments {
    None,
    /// The first: `VARCHAR(20)`.
    Length,
    /// One or two: `NUMERIC(10, 2)`.
    Precision,
}

/// The reflected type of a column declared as `declared`: known names are kept, others fall to the type of their
/// affinity, and a column without a type (an expression of a view) is `NULL`.
pub(super) fn reflected_type(declared: &str) -> String {
    let declared = declared.to_uppercase();
    let name_end = declared
        .find(|c: char| !(c.is_alphanumeric() || c == '_' || c == ' '))
        .unwrap_or(declared.len());
    let (name, rest) = declared.split_at(name_end);
    let (printed, arguments) = if name.is_empty() {
        ("NULL", Arguments::None)
    } else {
        of(name)
    };
    let numbers = numbers(rest);
    match (arguments, numbers.as_slice()) {
        (Arguments::Length, [length, ..]) => format!("{printed}({length})"),
        (Arguments::Precision, [precision]) => format!("{printed}({precision})"),
        (Arguments::Precision, [precision, scale, ..]) => {
            format!("{printed}({precision}, {scale})")
        }
        (Arguments::None | Arguments::Length | Arguments::Precision, _) => printed.to_owned(),
    }
}

fn of(name: &str) -> (&'static str, Arguments) {
    match name {
        "BIGINT" => ("BIGINT", Arguments::None),
        "BLOB" => ("BLOB", Arguments::None),
        "BOOL" | "BOOLEAN" => ("BOOLEAN", Arguments::None),
        "CHAR" => ("CHAR", Arguments::Length),
        "DATE" | "DATE_CHAR" => ("DATE", Arguments::None),
        "DATETIME" | "DATETIME_CHAR" => ("DATETIME", Arguments::None),
        "DOUBLE" => ("DOUBLE", Arguments::None),
        "DECIMAL" => ("DECIMAL", Arguments::Precision),
        "FLOAT" => ("FLOAT", Arguments::None),
        "INT" | "INTEGER" => ("INTEGER", Arguments::None),
        "JSON" => ("JSON", Arguments::None),
        "JSONB" => ("JSONB", Arguments::None),
        "NUMERIC" => ("NUMERIC", Arguments::Precision),
        "REAL" => ("REAL", Arguments::None),
        "SMALLINT" => ("SMALLINT", Arguments::None),
        "TEXT" => ("TEXT", Arguments::Length),
        "TIME" | "TIME_CHAR" => ("TIME", Arguments::None),
        "TIMESTAMP" => ("TIMESTAMP", Arguments::None),
        "VARCHAR" => ("VARCHAR", Arguments::Length),
        "NVARCHAR" => ("NVARCHAR", Arguments::Length),
        "NCHAR" => ("NCHAR", Arguments::Length),
        _ if name.contains("INT") => ("INTEGER", Arguments::None),
        _ if ["CHAR", "CLOB", "TEXT"]
            .iter()
            .any(|part| name.contains(part)) =>
        {
            ("TEXT", Arguments::Length)
        }
        _ if name.contains("BLOB") => ("NULL", Arguments::None),
        _ if ["REAL", "FLOA", "DOUB"]
            .iter()
            .any(|part| name.contains(part)) =>
        {
            ("REAL", Arguments::None)
        }
        _ => ("NUMERIC", Arguments::Precision),
    }
}

/// The runs of digits in the first parentheses. Not parsed: SQLAlchemy prints them as integers, so leading zeros go.
fn numbers(rest: &str) -> Vec<String> {
    let Some(inner) = rest.strip_prefix('(').and_then(|rest| rest.split_once(')')) else {
        return Vec::new();
    };
    inner
        .0
        .split(|c: char| !c.is_ascii_digit())
        .filter(|run| !run.is_empty())
        .map(|run| {
            let digits = run.trim_start_matches('0');
            if digits.is_empty() {
                "0".to_owned()
            } else {
                digits.to_owned()
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::reflected_type;

    #[test]
    fn declared_types_print_as_sqlalchemy_2_1_prints_them() {
        let cases = [
            ("INTEGER", "INTEGER"),
            ("int", "INTEGER"),
            ("BIGINT(20)", "BIGINT"),
            ("TINYINT", "INTEGER"),
            ("varchar(20)", "VARCHAR(20)"),
            ("VARCHAR (20)", "TEXT(20)"),
            ("VARCHAR", "VARCHAR"),
            ("CHARACTER(20)", "TEXT(20)"),
            ("VARYING CHARACTER(255)", "TEXT(255)"),
            ("CLOB(5)", "TEXT(5)"),
            ("TEXT", "TEXT"),
            ("BLOB(10)", "BLOB"),
            ("", "NULL"),
            ("FLOAT(5)", "FLOAT"),
            ("DOUBLE", "DOUBLE"),
            ("DOUBLE PRECISION", "REAL"),
            ("NUMERIC(10,2)", "NUMERIC(10, 2)"),
            ("DECIMAL(5)", "DECIMAL(5)"),
            ("DATETIME_CHAR", "DATETIME"),
            ("BOOL", "BOOLEAN"),
            ("STRING", "NUMERIC"),
            ("FOO(3)", "NUMERIC(3)"),
            ("FLOATING POINT", "INTEGER"),
            ("TIMESTAMP WITH TIME ZONE", "NUMERIC"),
            ("uuid", "NUMERIC"),
            ("INTEGER(11)", "INTEGER"),
        ];
        for (declared, expected) in cases {
            assert_eq!(
                reflected_type(declared),
                expected,
                "declared as {declared:?}"
            );
        }
    }
}
