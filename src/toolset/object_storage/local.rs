//! A root on the worker's own disk. No link leads out of it.

use std::fs::{File, Metadata, OpenOptions};
use std::io;
use std::ops::Range;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::{FileExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use chrono::{DateTime, Utc};
use nix::libc::{ELOOP, O_DIRECTORY, O_NOFOLLOW, O_NONBLOCK, O_PATH};

use super::storage::{Entry, Info, Storage, StorageError, StoredFile};
use crate::hook::blocking;

pub(super) struct LocalStorage {
    root: PathBuf,
}

impl LocalStorage {
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    /// The path with all links followed, if that stays inside the root.
    fn resolve(&self, parts: &[&str]) -> Result<Inside, StorageError> {
        if parts.iter().any(|part| part.contains('\0')) {
            return Err(StorageError::exception("ValueError", "embedded null byte"));
        }
        let mut path = self.root.clone();
        path.extend(parts);
        let root = real_path(&self.root);
        let real = real_path(&path);
        if !real.starts_with(&root) {
            return Err(StorageError::Outside);
        }
        Ok(Inside { path, real, root })
    }
}

struct Inside {
    /// As it was asked for.
    path: PathBuf,
    /// With all links followed, as far as it exists.
    real: PathBuf,
    root: PathBuf,
}

impl Inside {
    fn error(&self, error: &io::Error) -> StorageError {
        StorageError::of_io(error, &self.path.to_string_lossy())
    }

    /// Opens what is there. A link may have come where none was when the path was resolved, so what counts is where the
    /// opened file is.
    fn open(&self, flags: i32) -> Result<Handle, StorageError> {
        // Should it have become a pipe or a link, opening it neither waits nor leads away.
        let file = OpenOptions::new()
            .read(true)
            .custom_flags(flags | O_NONBLOCK | O_NOFOLLOW)
            .open(&self.real)
            .map_err(|error| self.error(&error))?;
        let handle = Handle(file);
        let place = handle.path().read_link();
        if !place
            .map_err(|error| self.error(&error))?
            .starts_with(&self.root)
        {
            return Err(StorageError::Outside);
        }
        Ok(handle)
    }
}

/// Something opened inside the root.
struct Handle(File);

impl Handle {
    /// A path that leads to what is open, wherever it is moved.
    fn path(&self) -> PathBuf {
        format!("/proc/self/fd/{}", self.0.as_raw_fd()).into()
    }
}

/// Follows links as far as the path exists; what does not exist is kept as it is.
fn real_path(path: &Path) -> PathBuf {
    if let Ok(real) = path.canonicalize() {
        return real;
    }
    // A link to nowhere still says where it leads.
    if let (Ok(target), Some(parent)) = (path.read_link(), path.parent()) {
        let target = parent.join(target);
        // A loop of links leads nowhere at all, and stays where it is.
        let is_loop = path
            .metadata()
            .is_err_and(|error| error.raw_os_error() == Some(ELOOP));
        if !is_loop {
            return real_path(&target);
        }
    }
    match (path.parent(), path.file_name()) {
        (Some(parent), Some(name)) => real_path(parent).join(name),
        (Some(parent), None) => real_path(parent)
            .parent()
            .map_or_else(|| path.to_owned(), Path::to_owned),
        (None, _) => path.to_owned(),
    }
}

async fn on_thread<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, StorageError> + Send + 'static,
) -> Result<T, StorageError> {
    match blocking::run(work).await {
        Ok(done) => done,
        Err(error) => Err(StorageError::exception("RuntimeError", error.to_string())),
    }
}

#[async_trait]
impl Storage for LocalStorage {
    async fn list(&self, parts: &[&str]) -> Result<Option<Vec<Entry>>, StorageError> {
        let place = self.resolve(parts)?;
        on_thread(move || {
            if !place.real.is_dir() {
                return Ok(None);
            }
            let directory = place.open(O_DIRECTORY)?;
            let mut entries = Vec::new();
            let found = std::fs::read_dir(directory.path()).map_err(|error| place.error(&error))?;
            for entry in found {
                let entry = entry.map_err(|error| place.error(&error))?;
                let Ok(metadata) = entry.metadata() else {
                    // Gone since it was listed.
                    continue;
                };
                if metadata.is_symlink() && !real_path(&entry.path()).starts_with(&place.root) {
                    continue;
                }
                let name = entry.file_name().to_string_lossy().into_owned();
                entries.push(if metadata.is_dir() {
                    Entry::Directory { name }
                } else if metadata.is_symlink() {
                    let size = std::fs::metadata(entry.path()).map_or(0, |target| target.len());
                    Entry::File { name, size }
                } else {
                    let size = metadata.len();
                    Entry::File { name, size }
                });
            }
            Ok(Some(entries))
        })
        .await
    }

    async fn info(&self, parts: &[&str]) -> Result<Option<Info>, StorageError> {
        let place = self.resolve(parts)?;
        on_thread(move || {
            match place.real.symlink_metadata() {
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
                Err(error) => return Err(place.error(&error)),
                // What is left of a link is a loop.
                Ok(metadata) if metadata.is_symlink() => {
                    return Err(place.error(&io::Error::from_raw_os_error(ELOOP)));
                }
                Ok(_) => {}
            }
            let metadata = place.open(O_PATH)?.0.metadata();
            let metadata = metadata.map_err(|error| place.error(&error))?;
            Ok(Some(match metadata.is_dir() {
                true => Info::Directory,
                false => Info::File {
                    size: metadata.len(),
                    modified: modified(&metadata),
                },
            }))
        })
        .await
    }

    async fn open(&self, parts: &[&str]) -> Result<Option<Arc<dyn StoredFile>>, StorageError> {
        let place = self.resolve(parts)?;
        on_thread(move || {
            if !place.real.is_file() {
                return Ok(None);
            }
            let Handle(file) = place.open(0)?;
            let metadata = file.metadata().map_err(|error| place.error(&error))?;
            if !metadata.is_file() {
                return Ok(None);
            }
            let file: Arc<dyn StoredFile> = Arc::new(LocalFile {
                file: Arc::new(file),
                size: metadata.len(),
                path: place.path.to_string_lossy().into_owned(),
            });
            Ok(Some(file))
        })
        .await
    }
}

/// As Python has it: a float of seconds, which knows less than nanoseconds.
fn modified(metadata: &Metadata) -> Option<DateTime<Utc>> {
    #[expect(
        clippy::cast_precision_loss,
        reason = "Python's st_mtime loses as much"
    )]
    let seconds = metadata.mtime() as f64 + metadata.mtime_nsec() as f64 * 1e-9;
    if seconds <= 0.0 {
        return None;
    }
    #[expect(clippy::cast_possible_truncation, reason = "far from the ends of i64")]
    let (whole, micros) = (
        seconds.floor() as i64,
        (seconds.fract() * 1e6).round_ties_even() as i64,
    );
    DateTime::from_timestamp_micros(whole.checked_mul(1_000_000)?.checked_add(micros)?)
}

struct LocalFile {
    file: Arc<File>,
    size: u64,
    path: String,
}

#[async_trait]
impl StoredFile for LocalFile {
    fn size(&self) -> u64 {
        self.size
    }

    async fn read(&self, range: Range<u64>) -> Result<Bytes, StorageError> {
        let (file, path) = (Arc::clone(&self.file), self.path.clone());
        on_thread(move || {
            let length =
                usize::try_from(range.end.saturating_sub(range.start)).unwrap_or(usize::MAX);
            let mut buffer = vec![0; length];
            let mut filled = 0;
            while let Some(rest) = buffer.get_mut(filled..).filter(|rest| !rest.is_empty()) {
                let at = range.start + filled as u64;
                match file.read_at(rest, at) {
                    // Shorter than it was when it was opened.
                    Ok(0) => break,
                    Ok(more) => filled += more,
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    Err(error) => return Err(StorageError::of_io(&error, &path)),
                }
            }
            buffer.truncate(filled);
            Ok(buffer.into())
        })
        .await
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_link_that_comes_after_the_path_was_resolved_leads_nowhere() {
        let folder = tempfile::tempdir().unwrap();
        let (root, out) = (folder.path().join("root"), folder.path().join("out"));
        for place in [root.join("sub/dir"), out.join("dir")] {
            std::fs::create_dir_all(&place).unwrap();
            std::fs::write(place.join("a.txt"), "a").unwrap();
        }
        let storage = LocalStorage::new(&root);
        let file = storage.resolve(&["sub", "dir", "a.txt"]).unwrap();
        let directory = storage.resolve(&["sub", "dir"]).unwrap();
        assert!(file.open(0).is_ok() && file.open(O_PATH).is_ok());
        assert!(directory.open(O_DIRECTORY).is_ok());
        std::fs::rename(root.join("sub"), root.join("was")).unwrap();
        symlink(&out, root.join("sub")).unwrap();
        for (place, flags) in [(&file, 0), (&file, O_PATH), (&directory, O_DIRECTORY)] {
            assert_eq!(place.open(flags).err(), Some(StorageError::Outside));
        }
    }
}
