//! The fields of a connection, with errors that name them.

use serde_json::{Map, Value};

use super::StoreError;
use crate::airflow::connection::Connection;

/// A connection and its extra, parsed once.
pub(crate) struct Fields<'a> {
    pub connection: &'a Connection,
    extra: Map<String, Value>,
    /// What older versions of Airflow's forms wrote before the name of a field: `extra__wasb__`.
    legacy_prefix: String,
}

impl<'a> Fields<'a> {
    pub fn of(connection: &'a Connection) -> Result<Self, StoreError> {
        Ok(Self {
            extra: connection.extra_json()?,
            legacy_prefix: format!("extra__{}__", connection.conn_type),
            connection,
        })
    }

    pub fn error(&self, field: impl Into<String>, problem: impl Into<String>) -> StoreError {
        StoreError::Field {
            conn_id: self.connection.conn_id.clone(),
            field: field.into(),
            problem: problem.into(),
        }
    }

    pub fn login(&self) -> Option<&'a str> {
        filled(self.connection.login.as_deref())
    }

    pub fn password(&self) -> Option<&'a str> {
        filled(self.connection.password.as_deref())
    }

    pub fn host(&self) -> Option<&'a str> {
        filled(self.connection.host.as_deref())
    }

    /// A value of the extra, under its own name or the older one. Null and empty text count as absent.
    pub fn value(&self, name: &str) -> Option<&Value> {
        let found = self.extra.get(name).or_else(|| {
            self.extra
                .get(format!("{}{name}", self.legacy_prefix).as_str())
        });
        found.filter(|value| !matches!(value, Value::Null) && value.as_str() != Some(""))
    }

    /// A text of the extra.
    pub fn text(&self, name: &str) -> Result<Option<&str>, StoreError> {
        text_of(self, &format!("extra's {name}"), self.value(name))
    }

    /// A switch of the extra: a boolean, or what Python's forms make of one.
    pub fn switch(&self, name: &str) -> bool {
        match self.value(name) {
            Some(Value::Bool(on)) => *on,
            Some(Value::String(text)) => !matches!(
                text.to_ascii_lowercase().as_str(),
                "false" | "0" | "f" | "no"
            ),
            Some(Value::Number(number)) => number.as_i64() != Some(0),
            _ => false,
        }
    }

    /// An object of the extra; empty when there is none.
    pub fn object(&self, name: &str) -> Result<Map<String, Value>, StoreError> {
        match self.value(name) {
            None => Ok(Map::new()),
            Some(Value::Object(map)) => Ok(map.clone()),
            Some(Value::String(text)) => serde_json::from_str(text).map_err(|error| {
                self.error(
                    format!("extra's {name}"),
                    format!("is no object in JSON: {error}"),
                )
            }),
            Some(_) => Err(self.error(format!("extra's {name}"), "must be an object")),
        }
    }

    /// Refuses fields that can't be honoured.
    pub fn refuse(&self, names: &[&str], instead: &str) -> Result<(), StoreError> {
        match names.iter().find(|name| self.value(name).is_some()) {
            None => Ok(()),
            Some(name) => Err(self.error(
                format!("extra's {name}"),
                format!("has no native counterpart here: {instead}"),
            )),
        }
    }
}

/// A text, where one must stand.
pub(super) fn text_of<'v>(
    fields: &Fields<'_>,
    field: &str,
    value: Option<&'v Value>,
) -> Result<Option<&'v str>, StoreError> {
    match value {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(_) => Err(fields.error(field, "must be text")),
    }
}

/// The text, unless it is empty.
pub(super) fn filled(text: Option<&str>) -> Option<&str> {
    text.filter(|text| !text.is_empty())
}
