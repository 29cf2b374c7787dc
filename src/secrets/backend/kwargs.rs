//! The keyword arguments of a secrets backend: a JSON object, and environment variables for single ones.

use serde_json::{Map, Value};

use super::BackendError;
use crate::airflow::config::Config;

/// Arguments that are taken out one by one, so that what nobody takes can be refused.
#[derive(Debug)]
pub(super) struct Kwargs {
    /// `[section] key`, for errors.
    option: String,
    values: Map<String, Value>,
}

impl Kwargs {
    /// The arguments of `[section] key`, a name that ends in `_kwargs`.
    ///
    /// # Errors
    /// The option is no JSON object. (Airflow logs a warning and goes on without arguments; a backend without its
    /// arguments finds nothing or knocks at the wrong door.)
    pub fn read(config: &Config, section: &str, key: &str) -> Result<Self, BackendError> {
        let mut values = match config.get_json(section, key)? {
            None | Some(Value::Null) => Map::new(),
            Some(Value::Object(map)) => map,
            Some(_) => {
                return Err(config.invalid(section, key, "a JSON object").into());
            }
        };
        let single = key.strip_suffix('s').unwrap_or(key);
        let prefix = format!("AIRFLOW__{section}__{single}__").to_uppercase();
        for (name, value) in config.environment().with_prefix(&prefix) {
            let name = name
                .strip_prefix(&prefix)
                .unwrap_or_default()
                .to_lowercase();
            if !name.is_empty() {
                values.insert(name, value.into());
            }
        }
        Ok(Self {
            option: format!("[{section}] {key}"),
            values,
        })
    }

    /// An argument as it is; `None` when it is not given.
    pub fn take(&mut self, name: &str) -> Option<Value> {
        self.values.remove(name)
    }

    /// A text; null and absent are alike.
    ///
    /// # Errors
    /// Something else.
    pub fn text(&mut self, name: &str) -> Result<Option<String>, BackendError> {
        match self.take(name) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(_) => Err(self.wrong(name, "must be a text")),
        }
    }

    /// True or false, as JSON or as an environment variable has it.
    ///
    /// # Errors
    /// Something else.
    pub fn flag(&mut self, name: &str) -> Result<Option<bool>, BackendError> {
        match self.take(name) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::Bool(flag)) => Ok(Some(flag)),
            Some(Value::String(text)) if text.eq_ignore_ascii_case("true") => Ok(Some(true)),
            Some(Value::String(text)) if text.eq_ignore_ascii_case("false") => Ok(Some(false)),
            Some(_) => Err(self.wrong(name, "must be true or false")),
        }
    }

    /// A number, as JSON or as an environment variable has it.
    ///
    /// # Errors
    /// Something else.
    pub fn number(&mut self, name: &str) -> Result<Option<f64>, BackendError> {
        let text = match self.take(name) {
            None | Some(Value::Null) => return Ok(None),
            Some(Value::String(text)) => text,
            Some(Value::Number(number)) => number.to_string(),
            Some(_) => return Err(self.wrong(name, "must be a number")),
        };
        text.trim()
            .parse()
            .map(Some)
            .map_err(|_| self.wrong(name, "must be a number"))
    }

    /// The error for an argument that is not as it must be. Its value is not shown: it may be a secret.
    pub fn wrong(&self, name: &str, reason: impl Into<String>) -> BackendError {
        BackendError::Argument {
            option: self.option.clone(),
            name: name.to_owned(),
            reason: reason.into(),
        }
    }

    /// Refuses what nobody has taken.
    ///
    /// # Errors
    /// There is something left.
    pub fn finish(self) -> Result<(), BackendError> {
        match self.values.keys().next() {
            None => Ok(()),
            Some(name) => Err(self.wrong(name, "is not one that this secrets backend takes here")),
        }
    }
}
