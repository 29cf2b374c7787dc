//! An Airflow connection.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A connection as the Execution API and the supervisor protocol carry it.
///
/// `extra` is the text that Airflow stores, usually a JSON object. `Debug` never shows `password` or `extra`.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Connection {
    /// The id a Dag refers to.
    pub conn_id: String,
    /// `sqlite`, `pydanticai`, `postgres` ...
    pub conn_type: String,
    #[serde(default)]
    pub host: Option<String>,
    #[serde(default)]
    pub schema: Option<String>,
    #[serde(default)]
    pub login: Option<String>,
    #[serde(default)]
    pub password: Option<String>,
    #[serde(default)]
    pub port: Option<u16>,
    #[serde(default)]
    pub extra: Option<String>,
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection")
            .field("conn_id", &self.conn_id)
            .field("conn_type", &self.conn_type)
            .field("host", &self.host)
            .field("schema", &self.schema)
            .field("login", &self.login)
            .field("password", &self.password.as_ref().map(|_| "***"))
            .field("port", &self.port)
            .field("extra", &self.extra.as_ref().map(|_| "***"))
            .finish()
    }
}
