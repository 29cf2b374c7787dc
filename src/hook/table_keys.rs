//! Primary keys, foreign keys and indexes of tables in a connection's own schema, in the order in which SQLAlchemy gives
//! them.

use super::database::{Cell, Database, DatabaseError};

/// More rows than the keys of any table come to.
const MAX_ROWS: usize = 10_000;

/// Columns that refer to those of another table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ForeignKey {
    pub columns: Vec<String>,
    pub table: String,
    pub referred_columns: Vec<String>,
}

/// An index that is not the primary key's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Index {
    pub name: String,
    /// Without those that are expressions.
    pub columns: Vec<String>,
    pub unique: bool,
}

/// How a database is asked. `{table}` is the table's name as text.
struct Queries {
    /// One column a row.
    primary_key: &'static str,
    /// What tells the keys apart, column, referred table, referred column.
    foreign_keys: &'static str,
    /// Name, column, is it unique?
    indexes: &'static str,
}

const SQLITE: Queries = Queries {
    primary_key: "SELECT name FROM pragma_table_info({table}) WHERE pk > 0 ORDER BY pk",
    // A reference that names no columns means the other table's primary key.
    foreign_keys: "SELECT id, \"from\", \"table\", coalesce(\"to\", (SELECT name FROM pragma_table_info(k.\"table\") p \
        WHERE p.pk = k.seq + 1)) FROM pragma_foreign_key_list({table}) k ORDER BY id, seq",
    indexes: "SELECT i.name, c.name, i.\"unique\" FROM pragma_index_list({table}) i, pragma_index_info(i.name) c \
        WHERE i.name NOT LIKE 'sqlite^_autoindex%' ESCAPE '^' ORDER BY i.name, c.seqno",
};

const POSTGRES: Queries = Queries {
    primary_key: "SELECT a.attname::text FROM pg_catalog.pg_index i \
        CROSS JOIN LATERAL unnest(i.indkey::int2[]) WITH ORDINALITY AS k(col, n) \
        JOIN pg_catalog.pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.col \
        WHERE i.indisprimary AND i.indrelid = to_regclass(quote_ident({table})) ORDER BY k.n",
    foreign_keys: "SELECT c.conname::text, a.attname::text, r.relname::text, f.attname::text \
        FROM pg_catalog.pg_constraint c \
        CROSS JOIN LATERAL unnest(c.conkey, c.confkey) WITH ORDINALITY AS k(col, ref, n) \
        JOIN pg_catalog.pg_attribute a ON a.attrelid = c.conrelid AND a.attnum = k.col \
        JOIN pg_catalog.pg_class r ON r.oid = c.confrelid \
        JOIN pg_catalog.pg_attribute f ON f.attrelid = c.confrelid AND f.attnum = k.ref \
        WHERE c.contype = 'f' AND c.conrelid = to_regclass(quote_ident({table})) ORDER BY c.conname, k.n",
    indexes: "SELECT n.relname::text, a.attname::text, i.indisunique FROM pg_catalog.pg_index i \
        JOIN pg_catalog.pg_class n ON n.oid = i.indexrelid \
        CROSS JOIN LATERAL unnest(i.indkey::int2[]) WITH ORDINALITY AS k(col, n) \
        LEFT JOIN pg_catalog.pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.col AND k.col > 0 \
        WHERE NOT i.indisprimary AND k.n <= i.indnkeyatts AND i.indrelid = to_regclass(quote_ident({table})) \
        ORDER BY n.relname, k.n",
};

const MYSQL: Queries = Queries {
    primary_key: "SELECT column_name FROM information_schema.statistics WHERE table_schema = DATABASE() \
        AND table_name = {table} AND index_name = 'PRIMARY' ORDER BY seq_in_index",
    foreign_keys: "SELECT constraint_name, column_name, referenced_table_name, referenced_column_name \
        FROM information_schema.key_column_usage WHERE table_schema = DATABASE() AND table_name = {table} \
        AND referenced_table_name IS NOT NULL ORDER BY constraint_name, ordinal_position",
    // Without an order of its own they come as SHOW CREATE TABLE lists them.
    indexes: "SELECT index_name, column_name, non_unique = 0 FROM information_schema.statistics \
        WHERE table_schema = DATABASE() AND table_name = {table} AND index_name <> 'PRIMARY'",
};

const MSSQL: Queries = Queries {
    primary_key: "SELECT COL_NAME(c.object_id, c.column_id) FROM sys.indexes i JOIN sys.index_columns c \
        ON c.object_id = i.object_id AND c.index_id = i.index_id \
        WHERE i.is_primary_key = 1 AND i.object_id = OBJECT_ID(QUOTENAME({table})) ORDER BY c.key_ordinal",
    foreign_keys: "SELECT f.name, COL_NAME(c.parent_object_id, c.parent_column_id), OBJECT_NAME(c.referenced_object_id), \
        COL_NAME(c.referenced_object_id, c.referenced_column_id) FROM sys.foreign_keys f \
        JOIN sys.foreign_key_columns c ON c.constraint_object_id = f.object_id \
        WHERE f.parent_object_id = OBJECT_ID(QUOTENAME({table})) ORDER BY f.name, c.constraint_column_id",
    indexes: "SELECT i.name, COL_NAME(c.object_id, c.column_id), i.is_unique FROM sys.indexes i \
        JOIN sys.index_columns c ON c.object_id = i.object_id AND c.index_id = i.index_id \
        WHERE i.is_primary_key = 0 AND i.type > 0 AND c.is_included_column = 0 \
        AND i.object_id = OBJECT_ID(QUOTENAME({table})) ORDER BY i.name, c.key_ordinal",
};

/// Asks a database for the keys of a table.
pub struct TableKeys<'a> {
    database: &'a dyn Database,
    table: &'a str,
    queries: &'static Queries,
}

impl<'a> TableKeys<'a> {
    /// `None` for a database that is not asked for keys here. SQLite is asked through its pragmas, which only a session
    /// that may write is allowed.
    #[must_use]
    pub fn of(database: &'a dyn Database, table: &'a str) -> Option<Self> {
        let queries = match database.dialect_name() {
            "sqlite" => &SQLITE,
            "postgresql" => &POSTGRES,
            "mysql" => &MYSQL,
            "mssql" => &MSSQL,
            _ => return None,
        };
        Some(Self {
            database,
            table,
            queries,
        })
    }

    /// The columns of the primary key, in its order.
    ///
    /// # Errors
    /// See [`DatabaseError`].
    pub async fn primary_key(&self) -> Result<Vec<String>, DatabaseError> {
        let rows = self.rows(self.queries.primary_key).await?;
        Ok(rows.iter().filter_map(|row| text(row, 0)).collect())
    }

    /// The foreign keys.
    ///
    /// # Errors
    /// See [`DatabaseError`].
    pub async fn foreign_keys(&self) -> Result<Vec<ForeignKey>, DatabaseError> {
        let mut keys: Vec<(String, ForeignKey)> = Vec::new();
        for row in self.rows(self.queries.foreign_keys).await? {
            let (Some(id), Some(column), Some(table)) =
                (text(&row, 0), text(&row, 1), text(&row, 2))
            else {
                continue;
            };
            if keys.last().is_none_or(|(last, _)| *last != id) {
                let key = ForeignKey {
                    columns: Vec::new(),
                    table,
                    referred_columns: Vec::new(),
                };
                keys.push((id, key));
            }
            if let Some((_, key)) = keys.last_mut() {
                key.columns.push(column);
                key.referred_columns.extend(text(&row, 3));
            }
        }
        Ok(keys.into_iter().map(|(_, key)| key).collect())
    }

    /// The indexes, without the primary key's.
    ///
    /// # Errors
    /// See [`DatabaseError`].
    pub async fn indexes(&self) -> Result<Vec<Index>, DatabaseError> {
        let mut indexes: Vec<Index> = Vec::new();
        for row in self.rows(self.queries.indexes).await? {
            let Some(name) = text(&row, 0) else {
                continue;
            };
            if indexes.last().is_none_or(|last| last.name != name) {
                let unique = matches!(row.get(2), Some(Cell::Bool(true) | Cell::Int(1)));
                indexes.push(Index {
                    name,
                    columns: Vec::new(),
                    unique,
                });
            }
            if let Some(index) = indexes.last_mut() {
                index.columns.extend(text(&row, 1));
            }
        }
        Ok(indexes)
    }

    async fn rows(&self, query: &str) -> Result<Vec<Vec<Cell>>, DatabaseError> {
        let mut literal = self.table.replace('\'', "''");
        if self.database.dialect_name() == "mysql" {
            literal = literal.replace('\\', "\\\\");
        }
        let sql = query.replace("{table}", &format!("'{literal}'"));
        Ok(self.database.run(&sql, MAX_ROWS).await?.rows)
    }
}

fn text(row: &[Cell], index: usize) -> Option<String> {
    match row.get(index)? {
        Cell::Text(text) => Some(text.clone()),
        Cell::Int(number) => Some(number.to_string()),
        Cell::Bytes(bytes) => String::from_utf8(bytes.clone()).ok(),
        _ => None,
    }
}
