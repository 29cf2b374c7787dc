//! A journal in an object store: one JSON file for a task instance, written anew with each record.

use std::sync::Arc;

use async_trait::async_trait;
use aws_lc_rs::digest::{SHA256, digest};
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt as _};
use serde_json::Value;
use tokio::sync::Mutex;

use super::LOGGER;
use crate::agent::durable::{Entry, JournalError, JournalStorage};
use crate::airflow::execution::TaskInstance;
use crate::hook::object_store::{Location, StoreError, failure, open};
use crate::hook::{ConnectionError, ConnectionSource as _};
use crate::task::services::Services;
use crate::task::toolsets::Connections;

/// Why there is no file.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub(super) enum FileError {
    #[error("[common.ai] durable_cache_path can't be used: {0}")]
    Store(#[from] StoreError),
    #[error("[common.ai] durable_cache_path can't be used: {0}")]
    Connection(#[from] ConnectionError),
}

pub(super) struct JournalFile {
    store: Arc<dyn ObjectStore>,
    path: Path,
    /// The file, once it has been read. Held while it is written: two records at a time would lose one.
    records: Mutex<Option<Entry>>,
}

impl JournalFile {
    /// `cache_path` is an `ObjectStoragePath`, whose URL may name the connection.
    pub(super) async fn open(services: &Services, cache_path: &str) -> Result<Self, FileError> {
        let name = file_name(&services.ti);
        let location = Location::parse(&format!("{}/{name}", cache_path.trim_end_matches('/')))?;
        let connection = match &location.conn_id {
            Some(conn_id) => {
                let connections = Connections(services.resolver.clone());
                Some(connections.connection(conn_id).await?)
            }
            None => None,
        };
        let environment = services.config.environment();
        Ok(Self {
            store: open(&location, connection.as_ref(), environment).await?,
            path: location.object_path()?,
            records: Mutex::default(),
        })
    }

    async fn read(&self) -> Result<Entry, JournalError> {
        let unreadable = |error| JournalError::Unreadable(failure(&error).text);
        let bytes = match self.store.get(&self.path).await {
            Ok(found) => found.bytes().await.map_err(unreadable)?,
            Err(object_store::Error::NotFound { .. }) => return Ok(Entry::new()),
            Err(error) => return Err(unreadable(error)),
        };
        match serde_json::from_slice(&bytes) {
            Ok(Value::Object(records)) => Ok(records),
            _ => {
                tracing::warn!(
                    target: "airflow.task", logger = LOGGER, path = self.path.as_ref(),
                    "Durable: the journal file is no JSON object and is written anew"
                );
                Ok(Entry::new())
            }
        }
    }

    async fn write(&self, records: &Entry) -> Result<(), object_store::Error> {
        let text = Value::Object(records.clone()).to_string();
        self.store.put(&self.path, text.into()).await.map(drop)
    }
}

#[async_trait]
impl JournalStorage for JournalFile {
    async fn load(&self, key: &str) -> Result<Option<Entry>, JournalError> {
        let mut records = self.records.lock().await;
        if records.is_none() {
            *records = Some(self.read().await?);
        }
        let found = records.as_ref().and_then(|records| records.get(key));
        Ok(found.and_then(Value::as_object).cloned())
    }

    async fn save(&self, key: &str, entry: Entry) -> bool {
        let mut records = self.records.lock().await;
        let saved = async {
            if records.is_none() {
                *records = Some(self.read().await.map_err(|error| error.to_string())?);
            }
            let records = records.get_or_insert_default();
            records.insert(key.to_owned(), Value::Object(entry));
            let written = self.write(records).await;
            written.map_err(|error| {
                records.shift_remove(key);
                failure(&error).text
            })
        };
        let saved = saved.await;
        if let Err(error) = &saved {
            tracing::warn!(
                target: "airflow.task", logger = LOGGER, key, error = error.as_str(), "Durable: could not store step"
            );
        }
        saved.is_ok()
    }

    async fn delete(&self, keys: &[String]) {
        let mut records = self.records.lock().await;
        let Some(left) = records.as_mut() else {
            return;
        };
        let before = left.len();
        for key in keys {
            left.shift_remove(key);
        }
        if left.len() == before {
            return;
        }
        let done = if left.is_empty() {
            self.store.delete(&self.path).await
        } else {
            self.write(left).await
        };
        match done {
            Ok(()) | Err(object_store::Error::NotFound { .. }) => {}
            Err(error) => tracing::warn!(
                target: "airflow.task", logger = LOGGER, error = failure(&error).text.as_str(),
                "Durable: could not clean up the journal file"
            ),
        }
    }
}

/// Of a task instance, on every try; the Python provider's own.
fn file_name(ti: &TaskInstance) -> String {
    let map_index = ti.map_index.to_string();
    let identity = [&ti.dag_id, &ti.task_id, &ti.run_id, &map_index].map(String::as_str);
    let sum = digest(&SHA256, identity.join("\0").as_bytes());
    let name: String = sum
        .as_ref()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    format!("{name}.json")
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;
    use serde_json::json;

    use super::*;
    use object_store::memory::InMemory;

    fn file(store: &Arc<InMemory>) -> JournalFile {
        JournalFile {
            store: Arc::clone(store) as Arc<dyn ObjectStore>,
            path: Path::from("journals/a.json"),
            records: Mutex::default(),
        }
    }

    fn entry(n: u64) -> Entry {
        Entry::from_iter([("n".to_owned(), json!(n))])
    }

    async fn content(store: &InMemory) -> Option<Value> {
        let found = store.get(&Path::from("journals/a.json")).await.ok()?;
        serde_json::from_slice(&found.bytes().await.unwrap()).ok()
    }

    #[test]
    fn a_task_instance_has_the_file_that_the_python_provider_gives_it() {
        let ti = TaskInstance {
            id: "0199c9a0-0000-7000-8000-000000000001".to_owned(),
            task_id: "ask".to_owned(),
            dag_id: "harbour".to_owned(),
            run_id: "manual__2026-01-02".to_owned(),
            try_number: 2,
            dag_version_id: None,
            map_index: -1,
            hostname: None,
            context_carrier: None,
            queue: None,
        };
        // hashlib.sha256("\x00".join(["harbour", "ask", "manual__2026-01-02", "-1"]).encode()).hexdigest()
        assert_eq!(
            file_name(&ti),
            "40154b7ae2cab175e6dd629cde20621aae9daf59d5a75484ca58506ca65edd04.json"
        );
    }

    #[tokio::test]
    async fn what_one_attempt_recorded_the_next_one_finds() {
        let store = Arc::new(InMemory::new());
        let first = file(&store);
        assert_eq!(first.load("a").await.unwrap(), None);
        assert!(first.save("a", entry(1)).await);
        assert!(first.save("b", entry(2)).await);
        assert_eq!(
            content(&store).await,
            Some(json!({"a": {"n": 1}, "b": {"n": 2}}))
        );

        let second = file(&store);
        assert_eq!(second.load("b").await.unwrap(), Some(entry(2)));
        second.delete(&["b".to_owned(), "never".to_owned()]).await;
        assert_eq!(content(&store).await, Some(json!({"a": {"n": 1}})));
        second.delete(&["a".to_owned()]).await;
        assert_eq!(content(&store).await, None, "an empty file is no file");
    }

    #[tokio::test]
    async fn a_file_that_is_no_journal_is_written_anew() {
        let store = Arc::new(InMemory::new());
        let path = Path::from("journals/a.json");
        store.put(&path, "[1".into()).await.unwrap();
        let file = file(&store);
        assert_eq!(file.load("a").await.unwrap(), None);
        assert!(file.save("a", entry(1)).await);
        assert_eq!(content(&store).await, Some(json!({"a": {"n": 1}})));
    }

    #[tokio::test]
    async fn a_record_that_can_not_be_written_is_not_kept() {
        let folder = tempfile::tempdir().unwrap();
        let blocked = folder.path().join("journals");
        std::fs::write(&blocked, "a file where a folder should be").unwrap();
        let file = JournalFile {
            store: Arc::new(object_store::local::LocalFileSystem::new()),
            path: Path::from_absolute_path(blocked.join("a.json")).unwrap(),
            records: Mutex::new(Some(Entry::new())),
        };
        assert!(!file.save("a", entry(1)).await);
        assert_eq!(file.load("a").await.unwrap(), None);
    }
}
