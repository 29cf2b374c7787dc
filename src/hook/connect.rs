//! From a connection id to a database.

use std::sync::Arc;

use async_trait::async_trait;

#[cfg(feature = "duckdb")]
use super::duckdb::DuckdbDatabase;
use super::mssql::MssqlDatabase;
use super::mysql::MysqlDatabase;
use super::postgres::PostgresDatabase;
use super::sqlite::SqliteDatabase;
use super::{Access, Database};
use crate::airflow::connection::Connection;

/// Where connections come from: the environment, a secrets backend, the control plane.
#[async_trait]
pub trait ConnectionSource: Send + Sync {
    /// Looks a connection up. Its secrets are known to the masker when this returns.
    ///
    /// # Errors
    /// See [`ConnectionError`].
    async fn connection(&self, conn_id: &str) -> Result<Connection, ConnectionError>;
}

/// Why a connection can't be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectionError {
    /// Nobody knows the id.
    #[error("The conn_id `{0}` isn't defined")]
    NotDefined(String),
    /// It is known and can't be read, or the control plane could not be asked.
    #[error("{0}")]
    Unreadable(String),
    /// Airflow would not find a hook for the type either.
    #[error("Unknown hook type \"{0}\"")]
    UnknownType(String),
    /// The type has a hook in Airflow, which is not one for a database.
    #[error("Connection '{conn_id}' does not provide a DbApiHook. Got {hook}.")]
    NotADatabase { conn_id: String, hook: &'static str },
    /// A database that Airflow knows and this version does not.
    #[error(
        "Connection '{conn_id}' is of type '{conn_type}', which has no native driver here: \
         send the task to a queue that a Python worker serves"
    )]
    NoDriver { conn_id: String, conn_type: String },
}

/// Types of databases that have no native driver, or none in builds without its feature.
const WITHOUT_DRIVER: [&str; 16] = [
    "redshift",
    "duckdb",
    "snowflake",
    "gcpbigquery",
    "oracle",
    "trino",
    "presto",
    "databricks",
    "athena",
    "vertica",
    "teradata",
    "exasol",
    "jdbc",
    "odbc",
    "hiveserver2",
    "impala",
];

/// Makes the database behind a connection. Nothing is opened before the first call.
///
/// # Errors
/// When the connection's type has no native driver, with the text the Python toolset gives where it has one.
pub fn connect(
    connection: &Connection,
    access: Access,
) -> Result<Arc<dyn Database>, ConnectionError> {
    match connection.conn_type.as_str() {
        "sqlite" => Ok(Arc::new(SqliteDatabase::new(connection, access))),
        "postgres" => Ok(Arc::new(PostgresDatabase::new(connection, access))),
        "mysql" => Ok(Arc::new(MysqlDatabase::new(connection, access))),
        "mssql" => Ok(Arc::new(MssqlDatabase::new(connection, access))),
        #[cfg(feature = "duckdb")]
        "duckdb" => Ok(Arc::new(DuckdbDatabase::new(connection, access))),
        other if WITHOUT_DRIVER.contains(&other) => Err(ConnectionError::NoDriver {
            conn_id: connection.conn_id.clone(),
            conn_type: connection.conn_type.clone(),
        }),
        other => match foreign_hook(other) {
            Some(hook) => Err(ConnectionError::NotADatabase {
                conn_id: connection.conn_id.clone(),
                hook,
            }),
            None => Err(ConnectionError::UnknownType(other.to_owned())),
        },
    }
}

/// The hook classes of the connection types that people most often mistake for a database.
fn foreign_hook(conn_type: &str) -> Option<&'static str> {
    Some(match conn_type {
        "http" => "HttpHook",
        "aws" => "AwsGenericHook",
        "google_cloud_platform" => "GoogleBaseHook",
        "git" => "GitHook",
        "smtp" => "SmtpHook",
        "fs" => "FSHook",
        "package_index" => "PackageIndexHook",
        "ssh" => "SSHHook",
        "redis" => "RedisHook",
        "mongo" => "MongoHook",
        "slack" => "SlackHook",
        "mcp" => "MCPHook",
        "pydanticai" => "PydanticAIHook",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error_for(conn_type: &str) -> String {
        let connection = Connection {
            conn_id: "h".to_owned(),
            conn_type: conn_type.to_owned(),
            ..Connection::default()
        };
        connect(&connection, Access::default())
            .err()
            .unwrap()
            .to_string()
    }

    #[test]
    fn a_connection_that_is_no_database_says_which_hook_it_has() {
        assert_eq!(
            error_for("http"),
            "Connection 'h' does not provide a DbApiHook. Got HttpHook."
        );
        assert_eq!(error_for("nope"), "Unknown hook type \"nope\"");
    }

    #[test]
    fn a_database_without_a_native_driver_says_what_to_do() {
        assert!(error_for("exasol").contains("Python worker"));
    }
}
