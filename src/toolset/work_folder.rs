//! Private temporary folders that are gone when their owner is: clones of skills, the scratch folders of their scripts,
//! what a query spills.
//!
//! A folder's owner holds a lock on it. Whatever ends the owner, SIGKILL too, ends the lock; so a folder without a lock
//! is left over and [`sweep`] may remove it, also where several workers or containers share one temporary folder.

use std::fs::{self, File, TryLockError};
use std::io;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

/// How the names of these folders begin.
pub const PREFIX: &str = "updraft_task_";

/// A temporary folder with mode 0700, removed when it is dropped.
#[derive(Debug)]
pub(super) struct WorkFolder {
    path: PathBuf,
    /// Holds the lock.
    _lock: File,
}

impl WorkFolder {
    /// Makes one below the folder for temporary files.
    pub fn new() -> io::Result<Self> {
        Self::below(&std::env::temp_dir())
    }

    fn below(parent: &Path) -> io::Result<Self> {
        let parent = parent.canonicalize()?;
        loop {
            let path = tempfile::Builder::new()
                .prefix(PREFIX)
                .permissions(fs::Permissions::from_mode(0o700))
                .tempdir_in(&parent)?
                .keep();
            let lock = match File::open(&path).and_then(|lock| lock.lock().map(|()| lock)) {
                Ok(lock) => lock,
                // A sweep was faster.
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(error) => {
                    remove(&path);
                    return Err(error);
                }
            };
            // A sweep may have come before the lock: then it has the folder, and this is the next one.
            let same = |metadata: fs::Metadata| {
                lock.metadata()
                    .is_ok_and(|held| held.ino() == metadata.ino() && held.dev() == metadata.dev())
            };
            if path.symlink_metadata().is_ok_and(same) {
                return Ok(Self { path, _lock: lock });
            }
        }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for WorkFolder {
    fn drop(&mut self) {
        remove(&self.path);
    }
}

/// Removes a folder with all that is in it, also what a script has made unreadable.
fn remove(path: &Path) {
    let mut outcome = fs::remove_dir_all(path);
    for _ in 0..20 {
        match &outcome {
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => open_up(path),
            // A clone that was given up may still be writing.
            Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty => {
                std::thread::sleep(std::time::Duration::from_millis(20));
            }
            _ => break,
        }
        outcome = fs::remove_dir_all(path);
    }
    match outcome {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            tracing::warn!("{} can't be removed: {error}", path.display());
        }
        _ => {}
    }
}

fn open_up(folder: &Path) {
    let _ = fs::set_permissions(folder, fs::Permissions::from_mode(0o700));
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            open_up(&entry.path());
        }
    }
}

/// Removes what processes that were killed have left. Blocks.
pub fn sweep() {
    sweep_below(&std::env::temp_dir());
}

fn sweep_below(parent: &Path) {
    let own = nix::unistd::geteuid().as_raw();
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        if !entry.file_name().to_string_lossy().starts_with(PREFIX) {
            continue;
        }
        let path = entry.path();
        let is_own_folder = path
            .symlink_metadata()
            .is_ok_and(|metadata| metadata.is_dir() && metadata.uid() == own);
        if !is_own_folder {
            continue;
        }
        let Ok(folder) = File::open(&path) else {
            continue;
        };
        match folder.try_lock() {
            Ok(()) => {
                tracing::info!("Removing {}: its task was killed.", path.display());
                remove(&path);
            }
            Err(TryLockError::WouldBlock) => {}
            Err(TryLockError::Error(error)) => {
                tracing::warn!("{} can't be locked: {error}", path.display());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_private_and_gone_with_its_owner() {
        let parent = tempfile::tempdir().unwrap();
        let folder = WorkFolder::below(parent.path()).unwrap();
        let path = folder.path().to_owned();
        assert_eq!(
            path.metadata().unwrap().permissions().mode() & 0o7777,
            0o700
        );
        fs::create_dir(path.join("locked")).unwrap();
        fs::write(path.join("locked/file"), "x").unwrap();
        fs::set_permissions(path.join("locked"), fs::Permissions::from_mode(0o000)).unwrap();
        drop(folder);
        assert!(!path.exists());
    }

    #[test]
    fn folders_are_made_while_others_are_swept() {
        let parent = tempfile::tempdir().unwrap();
        let done = std::sync::atomic::AtomicBool::new(false);
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    while !done.load(std::sync::atomic::Ordering::Relaxed) {
                        sweep_below(parent.path());
                    }
                });
            }
            let made: Vec<_> = (0..500).map(|_| WorkFolder::below(parent.path())).collect();
            done.store(true, std::sync::atomic::Ordering::Relaxed);
            for folder in made {
                assert!(folder.unwrap().path().exists());
            }
        });
    }

    #[test]
    fn a_sweep_removes_what_nobody_owns_and_nothing_else() {
        let parent = tempfile::tempdir().unwrap();
        let owned = WorkFolder::below(parent.path()).unwrap();
        let left = parent.path().join(format!("{PREFIX}left"));
        let foreign = parent.path().join("airflow_task_other");
        fs::create_dir_all(left.join("clone/.git")).unwrap();
        fs::create_dir(&foreign).unwrap();
        let link = parent.path().join(format!("{PREFIX}link"));
        std::os::unix::fs::symlink(&foreign, &link).unwrap();
        sweep_below(parent.path());
        assert!(owned.path().exists() && foreign.exists() && link.symlink_metadata().is_ok());
        assert!(!left.exists());
    }
}
