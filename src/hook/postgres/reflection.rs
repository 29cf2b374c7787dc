//! Tables and columns as SQLAlchemy's PostgreSQL dialect lists them, and types as `str()` prints them.

use tokio_postgres::types::Type;
use tokio_postgres::{Client, Error};

use crate::hook::{Column, python_value};

/// Tables and partitioned tables, without an order of their own: with the same joins as SQLAlchemy's query, so that
/// the server is likely to come to the same order.
const TABLES: &str = "SELECT pg_catalog.pg_class.relname::text FROM pg_catalog.pg_class \
    JOIN pg_catalog.pg_namespace ON pg_catalog.pg_namespace.oid = pg_catalog.pg_class.relnamespace \
    WHERE pg_catalog.pg_class.relkind = ANY (ARRAY['r', 'p']) AND pg_catalog.pg_class.relpersistence != 't' AND ";

/// One row a column; one row without a name for a table that has none.
const COLUMNS: &str = "SELECT a.attname::text, pg_catalog.format_type(a.atttypid, a.atttypmod), \
    coalesce(e.typtype, t.typtype)::text, \
    (SELECT max(char_length(l.enumlabel))::text FROM pg_catalog.pg_enum l WHERE l.enumtypid = t.oid), \
    CASE WHEN a.attcollation <> 0 AND a.attcollation <> t.typcollation THEN c.collname::text END \
    FROM pg_catalog.pg_class \
    JOIN pg_catalog.pg_namespace ON pg_catalog.pg_namespace.oid = pg_catalog.pg_class.relnamespace \
    LEFT JOIN pg_catalog.pg_attribute a \
        ON a.attrelid = pg_catalog.pg_class.oid AND a.attnum > 0 AND NOT a.attisdropped \
    LEFT JOIN pg_catalog.pg_type t ON t.oid = a.atttypid \
    LEFT JOIN pg_catalog.pg_type e ON e.oid = t.typelem AND t.typcategory = 'A' \
    LEFT JOIN pg_catalog.pg_collation c ON c.oid = a.attcollation \
    WHERE pg_catalog.pg_class.relkind = ANY (ARRAY['r', 'p', 'f', 'v', 'm']) \
    AND pg_catalog.pg_class.relname = $1 AND ";

/// Without a schema: what the search path finds, the catalog excepted.
const VISIBLE: &str = "pg_catalog.pg_table_is_visible(pg_catalog.pg_class.oid) AND pg_catalog.pg_namespace.nspname != 'pg_catalog'";

/// Names of tables.
pub(super) async fn table_names(
    client: &Client,
    schema: Option<&str>,
) -> Result<Vec<String>, Error> {
    let rows = match schema {
        None => {
            client
                .query_typed(&format!("{TABLES}{VISIBLE}"), &[])
                .await?
        }
        Some(schema) => {
            let sql = format!("{TABLES}pg_catalog.pg_namespace.nspname = $1");
            client.query_typed(&sql, &[(&schema, Type::TEXT)]).await?
        }
    };
    rows.iter().map(|row| row.try_get(0)).collect()
}

/// The columns of a table or view; `None` when there is no such relation.
pub(super) async fn columns(
    client: &Client,
    table: &str,
    schema: Option<&str>,
) -> Result<Option<Vec<Column>>, Error> {
    const ORDER: &str = " ORDER BY a.attnum";
    let rows = match schema {
        None => {
            let sql = format!("{COLUMNS}{VISIBLE}{ORDER}");
            client.query_typed(&sql, &[(&table, Type::TEXT)]).await?
        }
        Some(schema) => {
            let sql = format!("{COLUMNS}pg_catalog.pg_namespace.nspname = $2{ORDER}");
            client
                .query_typed(&sql, &[(&table, Type::TEXT), (&schema, Type::TEXT)])
                .await?
        }
    };
    if rows.is_empty() {
        return Ok(None);
    }
    let mut columns = Vec::new();
    for row in &rows {
        let Some(name) = row.try_get::<_, Option<String>>(0)? else {
            continue;
        };
        let declared = row.try_get::<_, Option<String>>(1)?.unwrap_or_default();
        columns.push(Column {
            name,
            type_text: type_text(
                &declared,
                row.try_get::<_, Option<&str>>(2)?.unwrap_or_default(),
                row.try_get(3)?,
                row.try_get(4)?,
            ),
        });
    }
    Ok(Some(columns))
}

/// `str()` of the reflected type. It is compiled for no database in particular, so zones, precisions of time and an
/// array's element do not show, and an enumeration is text as long as its longest label.
///
/// `declared` is what `format_type` prints; `kind` is `typtype` of the type, or of the element of an array.
fn type_text(
    declared: &str,
    kind: &str,
    longest_label: Option<&str>,
    collation: Option<&str>,
) -> String {
    let element = declared.trim_end_matches("[]");
    let is_array = element.len() < declared.len();
    let (base, arguments) = split_arguments(element);
    let printed = match printed(&base) {
        Some(name) => name,
        None if base.starts_with("interval ") => "INTERVAL",
        None if kind == "e" => "VARCHAR",
        None if kind == "d" => "DOMAIN",
        None => return "NULL".to_owned(),
    };
    if is_array {
        return "ARRAY".to_owned();
    }
    let length = if kind == "e" && printed == "VARCHAR" && arguments.is_none() {
        longest_label.filter(|&length| length != "0")
    } else {
        arguments.filter(|_| matches!(printed, "VARCHAR" | "CHAR" | "NUMERIC" | "TEXT"))
    };
    let mut text = printed.to_owned();
    if let Some(length) = length {
        let parts: Vec<&str> = length.split(',').map(str::trim).collect();
        text.push_str(&format!("({})", parts.join(", ")));
    }
    if let Some(collation) =
        collation.filter(|_| matches!(printed, "VARCHAR" | "CHAR" | "TEXT" | "CITEXT"))
    {
        text.push_str(&format!(" COLLATE {}", python_value::sql_name(collation)));
    }
    text
}

/// `timestamp(3) with time zone` is `timestamp with time zone` and `3`.
fn split_arguments(declared: &str) -> (String, Option<&str>) {
    match (declared.find('('), declared.rfind(')')) {
        (Some(open), Some(close)) if open < close => {
            let base = format!(
                "{}{}",
                declared.get(..open).unwrap_or_default(),
                declared.get(close + 1..).unwrap_or_default()
            );
            (base, declared.get(open + 1..close))
        }
        _ => (declared.to_owned(), None),
    }
}

/// The types that SQLAlchemy knows by name.
fn printed(base: &str) -> Option<&'static str> {
    Some(match base.to_lowercase().as_str() {
        "hstore" => "HSTORE",
        "json" => "JSON",
        "jsonb" => "JSONB",
        "int4range" => "INT4RANGE",
        "int8range" => "INT8RANGE",
        "numrange" => "NUMRANGE",
        "daterange" => "DATERANGE",
        "tsrange" => "TSRANGE",
        "tstzrange" => "TSTZRANGE",
        "int4multirange" => "INT4MULTIRANGE",
        "int8multirange" => "INT8MULTIRANGE",
        "nummultirange" => "NUMMULTIRANGE",
        "datemultirange" => "DATEMULTIRANGE",
        "tsmultirange" => "TSMULTIRANGE",
        "tstzmultirange" => "TSTZMULTIRANGE",
        "integer" => "INTEGER",
        "bigint" => "BIGINT",
        "smallint" => "SMALLINT",
        "character varying" | "\"char\"" | "name" => "VARCHAR",
        "character" => "CHAR",
        "text" => "TEXT",
        "numeric" => "NUMERIC",
        "float" => "FLOAT",
        "real" => "REAL",
        "inet" => "INET",
        "cidr" => "CIDR",
        "citext" => "CITEXT",
        "uuid" => "UUID",
        "bit" | "bit varying" => "BIT",
        "macaddr" => "MACADDR",
        "macaddr8" => "MACADDR8",
        "money" => "MONEY",
        "oid" => "OID",
        "regclass" => "REGCLASS",
        "double precision" => "DOUBLE PRECISION",
        "timestamp" | "timestamp with time zone" | "timestamp without time zone" => "TIMESTAMP",
        "time" | "time with time zone" | "time without time zone" => "TIME",
        "date" => "DATE",
        "bytea" => "BYTEA",
        "boolean" => "BOOLEAN",
        "interval" => "INTERVAL",
        "tsvector" => "TSVECTOR",
        "tsquery" => "TSQUERY",
        "regconfig" => "REGCONFIG",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::type_text;

    #[test]
    fn types_print_as_sqlalchemy_2_1_prints_them() {
        let cases = [
            ("integer", "b", "INTEGER"),
            ("numeric(10,2)", "b", "NUMERIC(10, 2)"),
            ("numeric", "b", "NUMERIC"),
            ("character varying(20)", "b", "VARCHAR(20)"),
            ("\"char\"", "b", "VARCHAR"),
            ("double precision", "b", "DOUBLE PRECISION"),
            ("timestamp(3) with time zone", "b", "TIMESTAMP"),
            ("interval year to month", "b", "INTERVAL"),
            ("interval second(3)", "b", "INTERVAL"),
            ("bit(5)", "b", "BIT"),
            ("integer[]", "b", "ARRAY"),
            ("box[]", "b", "NULL"),
            ("point", "b", "NULL"),
            ("posint", "d", "DOMAIN"),
            ("depot.tag", "d", "DOMAIN"),
            ("mood[]", "e", "ARRAY"),
            ("pair", "c", "NULL"),
        ];
        for (declared, kind, expected) in cases {
            assert_eq!(
                type_text(declared, kind, None, None),
                expected,
                "{declared}"
            );
        }
        assert_eq!(type_text("mood", "e", Some("6"), None), "VARCHAR(6)");
        assert_eq!(
            type_text("character varying(10)", "b", None, Some("POSIX")),
            "VARCHAR(10) COLLATE \"POSIX\""
        );
    }
}
