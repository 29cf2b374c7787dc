//! Which texts of a task's log must read `***`.

use std::sync::{PoisonError, RwLock};

use serde_json::{Map, Value};

/// The secrets that one task has met.
#[derive(Default)]
pub struct Masker(RwLock<Vec<String>>);

impl Masker {
    /// Every text in `value` is a secret from now on.
    pub fn add_secret(&self, value: &Value) {
        match value {
            Value::String(text) if text.len() >= 5 && !text.eq_ignore_ascii_case("airflow") => {
                let mut secrets = self.0.write().unwrap_or_else(PoisonError::into_inner);
                if !secrets.contains(text) {
                    secrets.push(text.clone());
                    secrets.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
                }
            }
            Value::Array(items) => items.iter().for_each(|item| self.add_secret(item)),
            Value::Object(map) => map.values().for_each(|item| self.add_secret(item)),
            _ => {}
        }
    }

    /// Replaces every secret in a record of the task log.
    pub fn mask_record(&self, record: &mut Map<String, Value>) {
        let secrets = self.0.read().unwrap_or_else(PoisonError::into_inner);
        record.values_mut().for_each(|value| mask(value, &secrets));
    }
}

fn mask(value: &mut Value, secrets: &[String]) {
    match value {
        Value::String(text) => {
            for secret in secrets
                .iter()
                .filter(|secret| text.contains(secret.as_str()))
                .collect::<Vec<_>>()
            {
                *text = text.replace(secret.as_str(), "***");
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| mask(item, secrets)),
        Value::Object(map) => map.values_mut().for_each(|item| mask(item, secrets)),
        _ => {}
    }
}
