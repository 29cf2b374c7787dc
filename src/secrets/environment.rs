//! Connections and variables in environment variables: `AIRFLOW_CONN_<ID>` and `AIRFLOW_VAR_<KEY>`.

use crate::airflow::config::Environment;
use crate::airflow::connection::{Connection, MalformedConnection};

/// The environment variable that may hold a connection: the id in upper case, nothing else changed.
#[must_use]
pub fn connection_variable(conn_id: &str) -> String {
    format!("AIRFLOW_CONN_{}", conn_id.to_uppercase())
}

/// The environment variable that may hold an Airflow variable.
#[must_use]
pub fn variable_variable(key: &str) -> String {
    format!("AIRFLOW_VAR_{}", key.to_uppercase())
}

/// The connection that the environment defines. An empty environment variable defines none.
///
/// # Errors
/// The text is neither a connection URI nor JSON; names the environment variable.
pub fn connection(
    environment: &Environment,
    conn_id: &str,
) -> Result<Option<Connection>, MalformedConnection> {
    let variable = connection_variable(conn_id);
    match environment.get(&variable) {
        None | Some("") => Ok(None),
        Some(text) => {
            Connection::from_env_text(conn_id, text, &format!("environment variable {variable}"))
                .map(Some)
        }
    }
}

/// The variable that the environment defines. An empty environment variable defines an empty one.
#[must_use]
pub fn variable<'a>(environment: &'a Environment, key: &str) -> Option<&'a str> {
    environment.get(&variable_variable(key))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn environment() -> Environment {
        [
            ("AIRFLOW_CONN_MY-DB.ONE", "sqlite:////tmp/x.db"),
            ("AIRFLOW_CONN_EMPTY", ""),
            ("AIRFLOW_CONN_BAD", "{"),
            ("AIRFLOW_VAR_REGION", "eu"),
            ("AIRFLOW_VAR_EMPTY", ""),
        ]
        .into_iter()
        .collect()
    }

    #[test]
    fn ids_are_only_upper_cased() {
        let found = connection(&environment(), "my-db.one").unwrap().unwrap();
        assert_eq!(
            (found.conn_id.as_str(), found.schema.as_deref()),
            ("my-db.one", Some("/tmp/x.db"))
        );
        assert_eq!(variable(&environment(), "Region"), Some("eu"));
    }

    #[test]
    fn an_empty_text_is_no_connection_but_is_a_variable() {
        assert_eq!(connection(&environment(), "empty").unwrap(), None);
        assert_eq!(variable(&environment(), "empty"), Some(""));
        assert_eq!(variable(&environment(), "absent"), None);
    }

    #[test]
    fn a_malformed_connection_names_its_variable() {
        let text = connection(&environment(), "bad").unwrap_err().to_string();
        assert!(
            text.starts_with("environment variable AIRFLOW_CONN_BAD does not hold"),
            "{text}"
        );
    }
}
