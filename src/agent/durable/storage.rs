//! Where a journal's records are kept.

use async_trait::async_trait;
use serde_json::{Map, Value};

/// A record: a JSON object.
pub type Entry = Map<String, Value>;

/// Keeps the records of one task instance beyond its attempts.
#[async_trait]
pub trait JournalStorage: Send + Sync {
    /// The record under a key; `None` when there is none, or what is there is no record.
    ///
    /// # Errors
    /// The storage could not be asked.
    async fn load(&self, key: &str) -> Result<Option<Entry>, JournalError>;

    /// Keeps a record. `false`: it could not be kept, which the storage has said in the task log; whoever recorded a
    /// step has done the work already, and must not fail for it.
    async fn save(&self, key: &str, entry: Entry) -> bool;

    /// Removes records. What can't be removed is said in the task log: the task has succeeded by then.
    async fn delete(&self, keys: &[String]);
}

/// Why a durable run can't go on.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum JournalError {
    /// What earlier attempts did is not known: running everything again could do twice what must be done once.
    #[error("the durable journal of earlier attempts could not be read: {0}")]
    Unreadable(String),
    /// A step's result is nothing that can be recorded; another attempt would end the same way.
    #[error(
        "durable execution could not record a step's result, because it is not JSON-serializable: {0}. Have the tool \
         return plain data: text, numbers, lists, dicts"
    )]
    NotJson(String),
}

#[cfg(test)]
pub(in crate::agent) mod memory {
    //! Records in memory, for tests.

    use std::collections::BTreeMap;
    use std::sync::Mutex;

    use super::*;

    #[derive(Default)]
    pub struct Memory {
        pub records: Mutex<BTreeMap<String, Entry>>,
        /// Keys that can't be written.
        pub refused: Mutex<Vec<String>>,
        pub loads: Mutex<Vec<String>>,
    }

    impl Memory {
        pub fn keys(&self) -> Vec<String> {
            self.records.lock().unwrap().keys().cloned().collect()
        }

        pub fn record(&self, key: &str) -> Value {
            let records = self.records.lock().unwrap();
            records.get(key).cloned().map_or(Value::Null, Value::Object)
        }
    }

    #[async_trait]
    impl JournalStorage for Memory {
        async fn load(&self, key: &str) -> Result<Option<Entry>, JournalError> {
            self.loads.lock().unwrap().push(key.to_owned());
            Ok(self.records.lock().unwrap().get(key).cloned())
        }

        async fn save(&self, key: &str, entry: Entry) -> bool {
            if self
                .refused
                .lock()
                .unwrap()
                .iter()
                .any(|refused| refused == key)
            {
                return false;
            }
            self.records.lock().unwrap().insert(key.to_owned(), entry);
            true
        }

        async fn delete(&self, keys: &[String]) {
            for key in keys {
                self.records.lock().unwrap().remove(key);
            }
        }
    }
}
