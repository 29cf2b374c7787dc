//! Other runtimes' executable bundles on this worker: `[updraft] executables_root`.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use crate::airflow::executable_bundle::ExecutableBundle;

/// No bundle that names a task can be used.
#[derive(Debug, thiserror::Error)]
#[error(
    "the executable bundles that name {dag_id}.{task_id} can't be used: {}. `updraft pack --inspect` says more",
    .faults.join("; ")
)]
pub struct UnusableBundles {
    dag_id: String,
    task_id: String,
    /// Each with its path.
    faults: Vec<String>,
}

/// What tells one state of a file from another: inode, modification time, size.
type Identity = (u64, i64, i64, u64);

#[derive(Debug)]
struct Seen {
    identity: Identity,
    /// `None`: no bundle.
    bundle: Option<ExecutableBundle>,
    /// Is the bundle whole, and does it speak this protocol? Known once a task asked for it.
    checked: Option<Result<(), String>>,
}

/// The executables under some folders. Clones share what is known of the files.
#[derive(Clone, Debug, Default)]
pub struct Executables {
    roots: Vec<PathBuf>,
    seen: Arc<Mutex<HashMap<PathBuf, Seen>>>,
}

impl Executables {
    /// Those in these folders, and in the folders below.
    #[must_use]
    pub fn new(roots: Vec<PathBuf>) -> Self {
        Self {
            roots,
            seen: Arc::default(),
        }
    }

    /// Is there nowhere to look?
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.roots.is_empty()
    }

    /// The first bundle, in the order of the folders and of names, that runs this task. Files are looked at anew each
    /// time, and read when they have changed. Blocks.
    ///
    /// # Errors
    /// Bundles name the task, and none of them can be used.
    pub fn find(&self, dag_id: &str, task_id: &str) -> Result<Option<PathBuf>, UnusableBundles> {
        let files = executable_files(&self.roots);
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.retain(|path, _| files.iter().any(|(file, _)| file == path));
        let mut faults = Vec::new();
        for (path, identity) in files {
            let known = seen
                .get(&path)
                .is_some_and(|entry| entry.identity == identity);
            if !known {
                seen.insert(path.clone(), look_at(&path, identity));
            }
            let Some(entry) = seen.get_mut(&path) else {
                continue;
            };
            let Some(bundle) = &entry.bundle else {
                continue;
            };
            if !bundle.manifest.runs(dag_id, task_id) {
                continue;
            }
            match entry.checked.get_or_insert_with(|| check(&path, bundle)) {
                Ok(()) => return Ok(Some(path)),
                Err(fault) => faults.push(format!("{}: {fault}", path.display())),
            }
        }
        if faults.is_empty() {
            Ok(None)
        } else {
            Err(UnusableBundles {
                dag_id: dag_id.to_owned(),
                task_id: task_id.to_owned(),
                faults,
            })
        }
    }
}

fn look_at(path: &Path, identity: Identity) -> Seen {
    let read = File::open(path)
        .map_err(Into::into)
        .and_then(|mut file| ExecutableBundle::read(&mut file));
    let bundle = read.unwrap_or_else(|error| {
        // Which Dags it is for can't be known.
        tracing::warn!(path = %path.display(), "an executable bundle can't be used: {error}");
        None
    });
    Seen {
        identity,
        bundle,
        checked: None,
    }
}

fn check(path: &Path, bundle: &ExecutableBundle) -> Result<(), String> {
    bundle
        .manifest
        .negotiate()
        .and_then(|()| bundle.verify(&mut File::open(path)?))
        .map_err(|error| error.to_string())
}

/// The regular files with an execute bit under the folders, links followed, each folder once.
fn executable_files(roots: &[PathBuf]) -> Vec<(PathBuf, Identity)> {
    let mut found = Vec::new();
    let mut folders = HashSet::new();
    // The next one to look at is the last.
    let mut left: Vec<PathBuf> = roots.iter().rev().cloned().collect();
    while let Some(path) = left.pop() {
        // What has gone meanwhile, or may not be read, is not there.
        let Ok(metadata) = std::fs::metadata(&path) else {
            continue;
        };
        if metadata.is_dir() {
            if folders.insert((metadata.dev(), metadata.ino())) {
                let entries = std::fs::read_dir(&path).into_iter().flatten().flatten();
                let mut entries: Vec<_> = entries.map(|entry| entry.path()).collect();
                entries.sort();
                left.extend(entries.into_iter().rev());
            }
        } else if metadata.is_file() && metadata.mode() & 0o111 != 0 {
            let identity = (
                metadata.ino(),
                metadata.mtime(),
                metadata.mtime_nsec(),
                metadata.size(),
            );
            found.push((path, identity));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::os::unix::fs::PermissionsExt;

    use pretty_assertions::assert_eq;

    use super::*;
    use crate::airflow::executable_bundle::{Manifest, write};

    fn bundle(dag_id: &str) -> Vec<u8> {
        let dags = BTreeMap::from([(dag_id.to_owned(), vec!["t".to_owned()])]);
        let mut bytes = Vec::new();
        write(
            &mut &b"#!/bin/true\n"[..],
            12,
            &Manifest::new(&dags),
            &mut bytes,
        )
        .unwrap();
        bytes
    }

    fn put(path: &Path, bytes: &[u8], mode: u32) {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, bytes).unwrap();
        std::fs::set_permissions(path, PermissionsExt::from_mode(mode)).unwrap();
    }

    #[test]
    fn the_first_executable_file_that_names_the_task_is_found() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        put(&at("a/not-executable"), &bundle("d"), 0o644);
        put(&at("b/deep/one"), &bundle("d"), 0o755);
        put(&at("c"), &bundle("d"), 0o755);
        put(&at("d"), b"#!/bin/sh\n", 0o755);
        std::os::unix::fs::symlink(folder.path(), at("e")).unwrap();
        let executables = Executables::new(vec![folder.path().to_owned(), "/nonexistent".into()]);
        assert_eq!(executables.find("d", "t").unwrap(), Some(at("b/deep/one")));
        assert_eq!(executables.find("d", "other").unwrap(), None);
        assert_eq!(executables.find("other", "t").unwrap(), None);
    }

    #[test]
    fn a_bundle_that_changes_is_looked_at_again() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("one");
        let executables = Executables::new(vec![folder.path().to_owned()]);
        put(&path, &bundle("d"), 0o755);
        assert!(executables.find("d", "t").unwrap().is_some());
        put(&path, &bundle("another"), 0o755);
        assert_eq!(executables.find("d", "t").unwrap(), None);
        assert!(executables.find("another", "t").unwrap().is_some());
        std::fs::remove_file(&path).unwrap();
        assert_eq!(executables.find("another", "t").unwrap(), None);
    }

    #[test]
    fn a_damaged_bundle_is_passed_over_for_a_whole_one_and_named_when_there_is_none() {
        let folder = tempfile::tempdir().unwrap();
        let mut damaged = bundle("d");
        damaged[2] = b'?';
        put(&folder.path().join("a"), &damaged, 0o755);
        let executables = Executables::new(vec![folder.path().to_owned()]);
        let text = executables.find("d", "t").unwrap_err().to_string();
        assert!(
            text.contains("d.t") && text.contains("SHA-256 differs"),
            "{text}"
        );
        put(&folder.path().join("b"), &bundle("d"), 0o755);
        assert_eq!(
            executables.find("d", "t").unwrap(),
            Some(folder.path().join("b"))
        );
    }
}
