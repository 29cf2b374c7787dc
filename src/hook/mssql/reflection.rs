//! Tables and columns as SQLAlchemy's MSSQL dialect lists them, and types as `str()` prints them.

use crate::hook::python_value;

/// Names of base tables, in order.
pub(super) fn tables(schema: Option<&str>) -> String {
    let (database, owner) = place(schema);
    format!(
        "SELECT TABLE_NAME FROM {database}INFORMATION_SCHEMA.TABLES WHERE TABLE_SCHEMA = {owner} \
         AND TABLE_TYPE = N'BASE TABLE' ORDER BY TABLE_NAME"
    )
}

/// A row for each column of a table or view: its name, its type, the type below an alias, length, precision, scale and
/// collation.
pub(super) fn columns(table: &str, schema: Option<&str>) -> String {
    let (database, owner) = place(schema);
    let table = literal(table);
    format!(
        "SELECT c.name, t.name, b.name, CAST(c.max_length AS int), CAST(c.precision AS int), CAST(c.scale AS int), \
         c.collation_name FROM {database}sys.columns c \
         JOIN {database}sys.objects o ON o.object_id = c.object_id \
         JOIN {database}sys.schemas s ON s.schema_id = o.schema_id \
         JOIN {database}sys.types t ON t.user_type_id = c.user_type_id \
         LEFT JOIN {database}sys.types b ON b.user_type_id = t.system_type_id AND b.system_type_id = t.system_type_id \
         WHERE s.name = {owner} AND o.name = {table} AND o.type IN ('U', 'V') ORDER BY c.column_id"
    )
}

/// A schema may name a database before its last dot.
fn place(schema: Option<&str>) -> (String, String) {
    match schema.map(|schema| (schema, schema.rsplit_once('.'))) {
        None => (String::new(), "SCHEMA_NAME()".to_owned()),
        Some((schema, None)) => (String::new(), literal(unbracketed(schema))),
        Some((_, Some((database, owner)))) => (
            format!("[{}].", unbracketed(database).replace(']', "]]")),
            literal(unbracketed(owner)),
        ),
    }
}

fn unbracketed(name: &str) -> &str {
    name.strip_prefix('[')
        .and_then(|inner| inner.strip_suffix(']'))
        .unwrap_or(name)
}

fn literal(text: &str) -> String {
    format!("N'{}'", text.replace('\'', "''"))
}

/// What `sys.columns` says of a type.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Declared<'a> {
    pub name: &'a str,
    /// The type below an alias; none for types of the CLR.
    pub base: Option<&'a str>,
    /// In bytes; -1 is MAX.
    pub length: i64,
    pub precision: i64,
    pub scale: i64,
    pub collation: Option<&'a str>,
}

/// `str()` of the reflected type. It is compiled for no database in particular, so MAX, precisions of time and the
/// collation of NTEXT do not show.
pub(super) fn type_text(declared: Declared<'_>) -> String {
    let known = printed(declared.name).or_else(|| declared.base.and_then(printed));
    let Some(printed) = known else {
        return "NULL".to_owned();
    };
    let mut text = printed.to_owned();
    let length = match printed {
        "BINARY" | "VARBINARY" | "CHAR" | "VARCHAR" => Some(declared.length),
        "NCHAR" | "NVARCHAR" if declared.length > 0 => Some(declared.length / 2),
        _ => None,
    };
    if let Some(length) = length.filter(|&length| length >= 0) {
        text.push_str(&format!("({length})"));
    }
    if matches!(printed, "DECIMAL" | "NUMERIC") {
        text.push_str(&format!("({}, {})", declared.precision, declared.scale));
    }
    if matches!(printed, "CHAR" | "VARCHAR" | "NCHAR" | "NVARCHAR" | "TEXT")
        && let Some(collation) = declared.collation
    {
        text.push_str(&format!(" COLLATE {}", python_value::sql_name(collation)));
    }
    text
}

/// The types that SQLAlchemy knows by name.
fn printed(name: &str) -> Option<&'static str> {
    Some(match name {
        "int" => "INTEGER",
        "bigint" => "BIGINT",
        "smallint" => "SMALLINT",
        "tinyint" => "TINYINT",
        "varchar" => "VARCHAR",
        "nvarchar" => "NVARCHAR",
        "char" => "CHAR",
        "nchar" => "NCHAR",
        "text" => "TEXT",
        "ntext" => "NTEXT",
        "decimal" => "DECIMAL",
        "numeric" => "NUMERIC",
        "float" => "FLOAT",
        "datetime" => "DATETIME",
        "datetime2" => "DATETIME2",
        "datetimeoffset" => "DATETIMEOFFSET",
        "date" => "DATE",
        "time" => "TIME",
        "smalldatetime" => "SMALLDATETIME",
        "binary" => "BINARY",
        "varbinary" => "VARBINARY",
        "bit" => "BIT",
        "real" => "REAL",
        "image" => "IMAGE",
        "xml" => "XML",
        "timestamp" => "TIMESTAMP",
        "money" => "MONEY",
        "smallmoney" => "SMALLMONEY",
        "uniqueidentifier" => "UNIQUEIDENTIFIER",
        "sql_variant" => "SQL_VARIANT",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;

    use super::*;

    #[test]
    fn types_print_as_sqlalchemy_2_1_prints_them() {
        let is = |name, base, length, expected: &str| {
            let declared = Declared {
                name,
                base,
                length,
                precision: 10,
                scale: 2,
                collation: Some("SQL_Latin1_General_CP1_CI_AS"),
            };
            assert_eq!(type_text(declared), expected, "{name}");
        };
        is("int", Some("int"), 4, "INTEGER");
        is("decimal", Some("decimal"), 9, "DECIMAL(10, 2)");
        is("float", Some("float"), 8, "FLOAT");
        is("varbinary", Some("varbinary"), -1, "VARBINARY");
        is("binary", Some("binary"), 4, "BINARY(4)");
        is("time", Some("time"), 5, "TIME");
        is("ntext", Some("ntext"), 16, "NTEXT");
        is("geography", None, -1, "NULL");
        is("json", Some("json"), -1, "NULL");
        let collated = |text: &str| format!("{text} COLLATE \"SQL_Latin1_General_CP1_CI_AS\"");
        is("varchar", Some("varchar"), 8, &collated("VARCHAR(8)"));
        is("varchar", Some("varchar"), -1, &collated("VARCHAR"));
        is("nvarchar", Some("nvarchar"), 40, &collated("NVARCHAR(20)"));
        is("sysname", Some("nvarchar"), 256, &collated("NVARCHAR(128)"));
        is("text", Some("text"), 16, &collated("TEXT"));
    }

    #[test]
    fn a_schema_may_name_its_database() {
        assert!(tables(None).contains("TABLE_SCHEMA = SCHEMA_NAME()"));
        assert!(tables(Some("it's")).contains("TABLE_SCHEMA = N'it''s'"));
        let elsewhere = tables(Some("[ware]house].dbo"));
        assert!(
            elsewhere.contains("[ware]]house].INFORMATION_SCHEMA")
                && elsewhere.contains("TABLE_SCHEMA = N'dbo'"),
            "{elsewhere}"
        );
        assert!(columns("o'b", None).contains("o.name = N'o''b'"));
    }
}
