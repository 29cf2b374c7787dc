//! A root in an object store.

use std::ops::Range;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::{Bytes, BytesMut};
use futures::StreamExt as _;
use object_store::path::Path;
use object_store::{Error, ObjectStore, ObjectStoreExt as _};

use crate::airflow::error_chain::error_chain;
use crate::hook::object_store::{FailureKind, failure};

use super::storage::{Entry, Info, Storage, StorageError, StoredFile};

pub(super) struct RemoteStorage {
    store: Arc<dyn ObjectStore>,
    /// The root's own path in the store, with no slash at either end.
    root: String,
    /// Is it a web server? Few of them have directories.
    is_web: bool,
}

impl RemoteStorage {
    pub fn new(store: Arc<dyn ObjectStore>, root: &str) -> Self {
        Self {
            store,
            root: root.trim_matches('/').to_owned(),
            is_web: false,
        }
    }

    pub fn on_the_web(self) -> Self {
        Self {
            is_web: true,
            ..self
        }
    }

    /// A key is written as it was listed: nothing in it is encoded or decoded.
    fn path(&self, parts: &[&str]) -> Result<Path, StorageError> {
        let mut key = self.root.clone();
        for part in parts {
            if !key.is_empty() {
                key.push('/');
            }
            key.push_str(part);
        }
        Path::parse(key).map_err(|error| StorageError::exception("ValueError", error.to_string()))
    }
}

fn is_missing(error: &Error) -> bool {
    failure(error).kind == FailureKind::NotFound
}

fn name(path: &Path) -> String {
    path.filename().unwrap_or_default().to_owned()
}

#[async_trait]
impl Storage for RemoteStorage {
    async fn list(&self, parts: &[&str]) -> Result<Option<Vec<Entry>>, StorageError> {
        let path = self.path(parts)?;
        let prefix = (!path.is_root()).then_some(&path);
        let found = match self.store.list_with_delimiter(prefix).await {
            Ok(found) => found,
            // The bucket itself may be missing.
            Err(error) if is_missing(&error) => return Ok(None),
            Err(error) => return Err(StorageError::of_store(&error)),
        };
        // A directory is what something stands below; a bucket is one even when it is empty.
        if found.objects.is_empty() && found.common_prefixes.is_empty() && !path.is_root() {
            return Ok(None);
        }
        let files = found
            .objects
            .iter()
            // The object by which some clients mark that a directory is there.
            .filter(|object| object.location != path)
            .map(|object| Entry::File {
                name: name(&object.location),
                size: object.size,
            });
        let directories = found
            .common_prefixes
            .iter()
            .filter(|below| **below != path)
            .map(|below| Entry::Directory { name: name(below) });
        Ok(Some(files.chain(directories).collect()))
    }

    async fn info(&self, parts: &[&str]) -> Result<Option<Info>, StorageError> {
        let path = self.path(parts)?;
        if !path.is_root() {
            match self.store.head(&path).await {
                Ok(meta) => {
                    return Ok(Some(Info::File {
                        size: meta.size,
                        modified: Some(meta.last_modified),
                    }));
                }
                // A web server says 405 of a directory, and 404 where nothing is.
                Err(error @ Error::NotFound { .. })
                    if self.is_web && !error_chain(&error).contains("405 Method Not Allowed") =>
                {
                    return Ok(None);
                }
                Err(Error::NotFound { .. }) => {}
                Err(error) => return Err(StorageError::of_store(&error)),
            }
        }
        let prefix = (!path.is_root()).then_some(&path);
        match self.store.list(prefix).next().await {
            Some(Ok(_)) => Ok(Some(Info::Directory)),
            None if path.is_root() => Ok(Some(Info::Directory)),
            None => Ok(None),
            Some(Err(error)) if is_missing(&error) => Ok(None),
            Some(Err(error)) => Err(StorageError::of_store(&error)),
        }
    }

    async fn open(&self, parts: &[&str]) -> Result<Option<Arc<dyn StoredFile>>, StorageError> {
        let path = self.path(parts)?;
        if path.is_root() {
            return Ok(None);
        }
        match self.store.head(&path).await {
            Ok(meta) => Ok(Some(Arc::new(RemoteFile {
                store: Arc::clone(&self.store),
                path,
                size: meta.size,
            }))),
            Err(Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(StorageError::of_store(&error)),
        }
    }
}

struct RemoteFile {
    store: Arc<dyn ObjectStore>,
    path: Path,
    size: u64,
}

#[async_trait]
impl StoredFile for RemoteFile {
    fn size(&self) -> u64 {
        self.size
    }

    async fn read(&self, range: Range<u64>) -> Result<Bytes, StorageError> {
        if range.is_empty() {
            return Ok(Bytes::new());
        }
        match self.store.get_range(&self.path, range.clone()).await {
            Ok(bytes) => Ok(bytes),
            // Some HTTP servers send a file whole or not at all.
            Err(Error::NotSupported { .. }) => self.read_from_start(range).await,
            Err(error) => Err(StorageError::of_store(&error)),
        }
    }
}

impl RemoteFile {
    async fn read_from_start(&self, range: Range<u64>) -> Result<Bytes, StorageError> {
        let answer = self.store.get(&self.path).await;
        let mut stream = answer
            .map_err(|error| StorageError::of_store(&error))?
            .into_stream();
        let mut kept = BytesMut::new();
        let mut at = 0_u64;
        while let Some(chunk) = stream.next().await {
            let chunk = chunk.map_err(|error| StorageError::of_store(&error))?;
            let length = chunk.len() as u64;
            let from = range.start.saturating_sub(at).min(length);
            let to = range.end.saturating_sub(at).min(length);
            let (from, to) = (usize::try_from(from), usize::try_from(to));
            if let (Ok(from), Ok(to)) = (from, to)
                && let Some(part) = chunk.get(from..to)
            {
                kept.extend_from_slice(part);
            }
            at += length;
            if at >= range.end {
                break;
            }
        }
        Ok(kept.freeze())
    }
}
