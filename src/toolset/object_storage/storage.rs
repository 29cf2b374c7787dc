//! What a root of files is asked for, on the worker's disk or in an object store. All of it only reads.

use std::ops::Range;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use chrono::{DateTime, Utc};

use crate::airflow::python_text::repr_str;
use crate::hook::object_store::{FailureKind, failure};

/// The files below one root. A path is the parts below the root; none names the root itself.
#[async_trait]
pub(super) trait Storage: Send + Sync {
    /// The entries of a directory, in no order; `None` when the path is none.
    async fn list(&self, parts: &[&str]) -> Result<Option<Vec<Entry>>, StorageError>;

    /// What stands at the path; `None` when nothing does.
    async fn info(&self, parts: &[&str]) -> Result<Option<Info>, StorageError>;

    /// The file at the path; `None` when there is none, or a directory.
    async fn open(&self, parts: &[&str]) -> Result<Option<Arc<dyn StoredFile>>, StorageError>;
}

/// A file that can be read in pieces.
#[async_trait]
pub(super) trait StoredFile: Send + Sync {
    /// In bytes, as it is stored.
    fn size(&self) -> u64;

    /// The bytes of a range, which lies within the file.
    async fn read(&self, range: Range<u64>) -> Result<Bytes, StorageError>;
}

/// One entry of a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Entry {
    File { name: String, size: u64 },
    Directory { name: String },
}

impl Entry {
    pub fn name(&self) -> &str {
        match self {
            Self::File { name, .. } | Self::Directory { name } => name,
        }
    }
}

/// What is known of a path.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Info {
    Directory,
    File {
        size: u64,
        modified: Option<DateTime<Utc>>,
    },
}

/// Why something can't be read, as Python would say it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum StorageError {
    /// A link leads out of the root.
    #[error("resolves outside the storage root.")]
    Outside,
    /// More than may be read.
    #[error("is larger than may be read")]
    TooLarge,
    /// An exception: its class without the module, and its text.
    #[error("{class}: {text}")]
    Exception { class: &'static str, text: String },
}

impl StorageError {
    pub fn exception(class: &'static str, text: impl Into<String>) -> Self {
        Self::Exception {
            class,
            text: text.into(),
        }
    }

    /// Python's exception for an error of the operating system.
    pub fn of_io(error: &std::io::Error, path: &str) -> Self {
        use std::io::ErrorKind;

        let class = match error.kind() {
            ErrorKind::NotFound => "FileNotFoundError",
            ErrorKind::PermissionDenied => "PermissionError",
            ErrorKind::IsADirectory => "IsADirectoryError",
            ErrorKind::NotADirectory => "NotADirectoryError",
            ErrorKind::UnexpectedEof => "EOFError",
            _ => "OSError",
        };
        let text = error.to_string();
        let text = match error.raw_os_error() {
            Some(number) => {
                let text = text.trim_end_matches(&format!(" (os error {number})"));
                format!("[Errno {number}] {text}: {}", repr_str(path))
            }
            None => text,
        };
        Self::exception(class, text)
    }

    /// Python's exception for an error of an object store.
    pub fn of_store(error: &object_store::Error) -> Self {
        let failure = failure(error);
        let class = match failure.kind {
            FailureKind::NotFound => "FileNotFoundError",
            FailureKind::Denied => "PermissionError",
            FailureKind::Path => "ValueError",
            FailureKind::Unsupported => "NotImplementedError",
            FailureKind::Other => "OSError",
        };
        Self::exception(class, failure.text)
    }
}
