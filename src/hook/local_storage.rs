//! Folders of the worker's disk that Dag code reads and writes with `ObjectStoragePath("file:///...")`: those that
//! `[updraft] local_storage` names, and no others.

use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};
use std::time::UNIX_EPOCH;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde_json::{Value, json};

/// Bytes of a file that Dag code is given.
const MAX_READ: u64 = 256 << 20;

/// The folders.
#[derive(Clone, Debug, Default)]
pub struct LocalStorage {
    roots: Vec<PathBuf>,
}

/// One thing that Dag code asks of a path.
#[derive(Clone, Debug, Deserialize)]
#[serde(tag = "do", rename_all = "snake_case")]
pub enum LocalOperation {
    /// What is there: `{"kind": "file" | "folder", "size", "modified"}` (bytes, seconds since 1970), or null.
    Head,
    /// The bytes of a file, in base64; null when there is none.
    Read,
    /// Writes a file, over one that is there already.
    Write {
        /// In base64.
        data: String,
    },
    /// Makes a folder, with those above it.
    Mkdir,
    /// Removes a file; false when there is none.
    Delete,
    /// The names in a folder, sorted; null when there is none.
    List,
}

/// Why a path was not touched.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LocalStorageError {
    /// It lies below none of the folders.
    #[error(
        "Dag code on this worker reads and writes no local files there: name the folder in [updraft] local_storage on the \
         worker, or use an object store"
    )]
    Outside,
    /// More than Dag code may hold.
    #[error("it has {0} bytes, and Dag code here reads no more than {MAX_READ}")]
    TooLarge(u64),
    /// The data is no base64.
    #[error("the data can't be read: {0}")]
    Data(#[from] base64::DecodeError),
    /// The operating system's own answer.
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl LocalStorage {
    /// Folders by absolute paths; others are left out, as they would mean something else in each process.
    #[must_use]
    pub fn new(roots: impl IntoIterator<Item = PathBuf>) -> Self {
        let roots = roots.into_iter().filter(|root| root.is_absolute());
        Self {
            roots: roots.collect(),
        }
    }

    /// Does it.
    ///
    /// # Errors
    /// See [`LocalStorageError`].
    pub fn run(&self, path: &Path, operation: LocalOperation) -> Result<Value, LocalStorageError> {
        let makes = matches!(operation, LocalOperation::Mkdir);
        let path = self.resolve(path, makes)?;
        match operation {
            LocalOperation::Head => found(fs::symlink_metadata(&path)).map(|found| {
                found.map_or(Value::Null, |metadata| {
                    let modified = metadata.modified().ok();
                    let since = modified.and_then(|time| time.duration_since(UNIX_EPOCH).ok());
                    json!({
                        "kind": if metadata.is_dir() { "folder" } else { "file" },
                        "size": metadata.len(),
                        "modified": since.map_or(0.0, |since| since.as_secs_f64()),
                    })
                })
            }),
            LocalOperation::Read => {
                let Some(metadata) = found(fs::symlink_metadata(&path))? else {
                    return Ok(Value::Null);
                };
                if metadata.len() > MAX_READ {
                    return Err(LocalStorageError::TooLarge(metadata.len()));
                }
                Ok(json!(STANDARD.encode(fs::read(&path)?)))
            }
            LocalOperation::Write { data } => {
                fs::write(&path, STANDARD.decode(data)?)?;
                Ok(Value::Null)
            }
            LocalOperation::Mkdir => {
                fs::create_dir_all(&path)?;
                Ok(Value::Null)
            }
            LocalOperation::Delete => Ok(json!(found(fs::remove_file(&path))?.is_some())),
            LocalOperation::List => {
                let Some(entries) = found(fs::read_dir(&path))? else {
                    return Ok(Value::Null);
                };
                let mut names = entries
                    .map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()))
                    .collect::<io::Result<Vec<_>>>()?;
                names.sort();
                Ok(json!(names))
            }
        }
    }

    /// The path with every link above its end followed: it must still be below a folder, and its end must be no link,
    /// device or pipe.
    fn resolve(&self, path: &Path, makes: bool) -> Result<PathBuf, LocalStorageError> {
        let plain = path
            .components()
            .all(|part| matches!(part, Component::RootDir | Component::Normal(_)));
        let root = self.roots.iter().find(|root| path.starts_with(root));
        let (true, Some(root)) = (plain, root) else {
            return Err(LocalStorageError::Outside);
        };
        if makes {
            fs::create_dir_all(root)?;
        }
        let Some(real_root) = found(root.canonicalize())? else {
            // Nothing is there, and below it neither.
            return Ok(path.to_owned());
        };
        if path == root.as_path() {
            return Ok(real_root);
        }
        // What is not there yet is no link.
        let mut existing = path.parent().unwrap_or(root);
        while !existing.exists() && existing != root.as_path() {
            existing = existing.parent().unwrap_or(root);
        }
        let special = fs::symlink_metadata(path)
            .is_ok_and(|metadata| !metadata.is_file() && !metadata.is_dir());
        let inside = existing.canonicalize()?.starts_with(&real_root);
        if special || !inside {
            return Err(LocalStorageError::Outside);
        }
        Ok(path.to_owned())
    }
}

fn found<T>(result: io::Result<T>) -> Result<Option<T>, LocalStorageError> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(error)
            if matches!(
                error.kind(),
                io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
            ) =>
        {
            Ok(None)
        }
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;

    use super::*;

    fn write(text: &str) -> LocalOperation {
        LocalOperation::Write {
            data: STANDARD.encode(text),
        }
    }

    #[test]
    fn files_below_a_folder_are_written_read_listed_and_removed() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("sessions");
        let storage = LocalStorage::new([root.clone()]);
        let run = |path: &Path, operation| storage.run(path, operation).unwrap();
        let file = root.join("a/b.json");
        assert_eq!(run(&file, LocalOperation::Head), Value::Null);
        assert_eq!(run(&root, LocalOperation::List), Value::Null);
        run(&root.join("a"), LocalOperation::Mkdir);
        run(&file, write("[]"));
        assert_eq!(run(&file, LocalOperation::Read), STANDARD.encode("[]"));
        let head = run(&file, LocalOperation::Head);
        assert_eq!((&head["kind"], &head["size"]), (&json!("file"), &json!(2)));
        assert_eq!(run(&root, LocalOperation::Head)["kind"], "folder");
        assert_eq!(
            run(&root.join("a"), LocalOperation::List),
            json!(["b.json"])
        );
        assert_eq!(run(&file, LocalOperation::Delete), true);
        assert_eq!(run(&file, LocalOperation::Delete), false);
    }

    #[test]
    fn nothing_beside_the_folders_is_touched_not_even_through_a_link() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("open");
        fs::create_dir(&root).unwrap();
        fs::create_dir(folder.path().join("closed")).unwrap();
        fs::write(folder.path().join("closed/key"), "secret").unwrap();
        std::os::unix::fs::symlink(folder.path().join("closed"), root.join("way")).unwrap();
        std::os::unix::fs::symlink(folder.path().join("closed/key"), root.join("key")).unwrap();
        let storage = LocalStorage::new([root.clone(), PathBuf::from("relative")]);
        for path in [
            folder.path().join("closed/key"),
            root.join("../closed/key"),
            root.join("way/key"),
            root.join("way/new/file"),
            root.join("key"),
            folder.path().join("open-beside"),
            PathBuf::from("relative/file"),
        ] {
            for operation in [LocalOperation::Read, write("x"), LocalOperation::Delete] {
                let refused = storage.run(&path, operation);
                assert!(
                    matches!(refused, Err(LocalStorageError::Outside)),
                    "{path:?}: {refused:?}"
                );
            }
        }
        let kept = fs::read_to_string(folder.path().join("closed/key")).unwrap();
        assert_eq!(kept, "secret");
        assert!(
            LocalStorage::default()
                .run(&root.join("x"), LocalOperation::Mkdir)
                .is_err()
        );
    }
}
