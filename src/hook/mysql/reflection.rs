//! Tables and columns as SQLAlchemy's MySQL dialect lists them: out of `SHOW CREATE TABLE`, for views out of `DESCRIBE`.

use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Error, Row, ServerError};

use super::error;
use crate::hook::{Column, DatabaseError, python_value};

/// The server's number for a table that is not there.
const NO_SUCH_TABLE: u16 = 1146;

/// Names of tables without views and sequences.
pub(super) async fn table_names(
    conn: &mut Conn,
    schema: Option<&str>,
) -> Result<Vec<String>, DatabaseError> {
    let sql = match schema {
        None => "SHOW FULL TABLES".to_owned(),
        Some(schema) => format!("SHOW FULL TABLES FROM {}", quoted(schema)),
    };
    let rows: Vec<Row> = conn
        .query(&sql)
        .await
        .map_err(|error| error::reflection(&error, &sql))?;
    Ok(rows
        .iter()
        .filter(|row| text(row, 1).as_deref() == Some("BASE TABLE"))
        .filter_map(|row| text(row, 0))
        .collect())
}

/// The columns of a table or view.
pub(super) async fn columns(
    conn: &mut Conn,
    table: &str,
    schema: Option<&str>,
) -> Result<Vec<Column>, DatabaseError> {
    let name = match schema {
        None => quoted(table),
        Some(schema) => format!("{}.{}", quoted(schema), quoted(table)),
    };
    let failure = |error: Error, sql: &str| match error {
        Error::Server(ServerError {
            code: NO_SUCH_TABLE,
            ..
        }) => DatabaseError::NoSuchTable(name.clone()),
        other => error::reflection(&other, sql),
    };
    let sql = format!("SHOW CREATE TABLE {name}");
    let created: Option<Row> = conn
        .query_first(&sql)
        .await
        .map_err(|error| failure(error, &sql))?;
    let Some(created) = created else {
        return Err(DatabaseError::NoSuchTable(name));
    };
    let is_view = created
        .columns_ref()
        .first()
        .is_some_and(|column| column.name_str() == "View");
    if !is_view {
        let statement = text(&created, 1).unwrap_or_default();
        return Ok(statement.lines().filter_map(column).collect());
    }
    let sql = format!("DESCRIBE {name}");
    let described: Vec<Row> = conn
        .query(&sql)
        .await
        .map_err(|error| failure(error, &sql))?;
    Ok(described
        .iter()
        .filter_map(|row| {
            Some(Column {
                name: text(row, 0)?.replace('`', "``"),
                type_text: type_text(&text(row, 1)?),
            })
        })
        .collect())
}

fn text(row: &Row, index: usize) -> Option<String> {
    row.get_opt::<Option<Vec<u8>>, _>(index)?
        .ok()?
        .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
}

fn quoted(name: &str) -> String {
    format!("`{}`", name.replace('`', "``"))
}

/// A line of `CREATE TABLE` that starts with a name is a column.
fn column(line: &str) -> Option<Column> {
    let mut chars = line.trim_start().strip_prefix('`')?.chars();
    let mut name = String::new();
    loop {
        match chars.next()? {
            // SQLAlchemy leaves a doubled quote doubled.
            '`' => match chars.as_str().strip_prefix('`') {
                Some(rest) => {
                    name.push_str("``");
                    chars = rest.chars();
                }
                None => break,
            },
            c => name.push(c),
        }
    }
    Some(Column {
        name,
        type_text: type_text(chars.as_str().trim_start()),
    })
}

/// `str()` of the reflected type. It is compiled for no database in particular, so signs, display widths, precisions of
/// time and the values of enumerations do not show.
///
/// `definition` starts with the type; a `COLLATE` in it is printed with types of characters.
fn type_text(definition: &str) -> String {
    let end = definition
        .find(|c: char| !(c.is_ascii_alphanumeric() || c == '_'))
        .unwrap_or(definition.len());
    let (name, rest) = definition.split_at(end);
    let (printed, with_arguments) = match name.to_lowercase().as_str() {
        "bigint" => ("BIGINT", false),
        "binary" => ("BINARY", true),
        "bit" => ("BIT", false),
        "blob" => ("BLOB", false),
        "boolean" => ("BOOLEAN", false),
        "char" => ("CHAR", true),
        "date" => ("DATE", false),
        "datetime" => ("DATETIME", false),
        "decimal" | "fixed" => ("DECIMAL", true),
        "double" => ("DOUBLE", false),
        "enum" => ("ENUM", false),
        "float" => ("FLOAT", false),
        "int" | "integer" => ("INTEGER", false),
        "json" => ("JSON", false),
        "longblob" => ("LONGBLOB", false),
        "longtext" => ("LONGTEXT", false),
        "mediumblob" => ("MEDIUMBLOB", false),
        "mediumint" => ("MEDIUMINT", false),
        "mediumtext" => ("MEDIUMTEXT", false),
        "nchar" => ("NCHAR", true),
        "numeric" => ("NUMERIC", true),
        "nvarchar" => ("NVARCHAR", true),
        "set" => ("SET", false),
        "smallint" => ("SMALLINT", false),
        "text" => ("TEXT", true),
        "time" => ("TIME", false),
        "timestamp" => ("TIMESTAMP", false),
        "tinyblob" => ("TINYBLOB", false),
        "tinyint" => ("TINYINT", false),
        "tinytext" => ("TINYTEXT", false),
        "uuid" => ("UUID", false),
        "varbinary" => ("VARBINARY", true),
        "varchar" => ("VARCHAR", true),
        "year" => ("YEAR", false),
        _ => ("NULL", false),
    };
    let mut text = printed.to_owned();
    let mut rest = rest;
    if let Some((arguments, after)) = rest
        .strip_prefix('(')
        .and_then(|inside| inside.split_once(')'))
    {
        // The NULL of a view is `binary(0)`, and SQLAlchemy prints no length of zero.
        if with_arguments && arguments != "0" {
            let parts: Vec<&str> = arguments.split(',').map(str::trim).collect();
            text.push_str(&format!("({})", parts.join(", ")));
        }
        rest = after;
    }
    if matches!(printed, "CHAR" | "VARCHAR" | "NCHAR" | "NVARCHAR" | "TEXT")
        && let Some(collation) = collation(rest)
    {
        text.push_str(&format!(" COLLATE {}", python_value::sql_name(collation)));
    }
    text
}

/// The name behind `COLLATE`, which stands before anything that may hold text of the user.
fn collation(rest: &str) -> Option<&str> {
    let mut words = rest.split([' ', ',']).filter(|word| !word.is_empty());
    loop {
        match words.next()? {
            "CHARACTER" => {
                words.next()?;
                words.next()?;
            }
            "CHARSET" => {
                words.next()?;
            }
            "COLLATE" => return words.next(),
            "unsigned" | "zerofill" => {}
            _ => return None,
        }
    }
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;

    use super::*;

    #[test]
    fn a_line_of_create_table_is_a_column_or_none() {
        let column = |line| column(line).map(|column| (column.name, column.type_text));
        let is = |name: &str, ty: &str| Some((name.to_owned(), ty.to_owned()));
        assert_eq!(column("  `id` int(11) NOT NULL,"), is("id", "INTEGER"));
        assert_eq!(
            column("  `a``b` varchar(20) CHARACTER SET latin1 COLLATE latin1_bin DEFAULT NULL,"),
            is("a``b", "VARCHAR(20) COLLATE latin1_bin")
        );
        assert_eq!(
            column("  `c` varchar(9) NOT NULL DEFAULT 'x COLLATE y' COMMENT 'COLLATE z',"),
            is("c", "VARCHAR(9)")
        );
        assert_eq!(
            column("  `e` enum('a)','b') DEFAULT NULL,"),
            is("e", "ENUM")
        );
        assert_eq!(
            column("  `d` decimal(10,2) unsigned DEFAULT 0.00,"),
            is("d", "DECIMAL(10, 2)")
        );
        assert_eq!(column("  `p` point DEFAULT NULL"), is("p", "NULL"));
        assert_eq!(column("  PRIMARY KEY (`id`)"), None);
        assert_eq!(column("CREATE TABLE `t` ("), None);
    }

    #[test]
    fn types_of_describe_print_alike() {
        for (described, expected) in [
            ("int(1)", "INTEGER"),
            ("timestamp(3)", "TIMESTAMP"),
            ("varchar(7)", "VARCHAR(7)"),
            ("bigint unsigned", "BIGINT"),
            ("geometry", "NULL"),
            ("binary(0)", "BINARY"),
            ("decimal(10,0)", "DECIMAL(10, 0)"),
        ] {
            assert_eq!(type_text(described), expected);
        }
    }
}
