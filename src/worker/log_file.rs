//! A task's log file on the worker, where the API server's path for it says.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::{Map, Value};

use crate::supervisor::LogSink;

/// Bytes of one task's log that wait in memory for the API server, at most.
const MOST_SPILLED: usize = 16 * 1024 * 1024;

/// Where task logs go on this machine, and who may read them.
#[derive(Clone, Debug)]
pub struct LogFolder {
    /// `[logging] base_log_folder`.
    pub base: PathBuf,
    /// `[logging] file_task_handler_new_folder_permissions`.
    pub folder_mode: u32,
    /// `[logging] file_task_handler_new_file_permissions`.
    pub file_mode: u32,
}

/// Why there is no log file.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LogFileError {
    /// A path that leads out of the log folder.
    #[error("the log path {0:?} leads out of the log folder")]
    Outside(String),
    /// The file can't be made.
    #[error("the task log {} can't be written: {source}. See [logging] base_log_folder", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Why not.
        #[source]
        source: std::io::Error,
    },
}

impl LogFolder {
    /// The file of a task log whose path, relative to the folder, is `log_path`.
    ///
    /// # Errors
    /// [`LogFileError::Outside`].
    pub fn path(&self, log_path: &str) -> Result<PathBuf, LogFileError> {
        let relative = Path::new(log_path);
        let inside = relative
            .components()
            .all(|part| matches!(part, Component::Normal(_) | Component::CurDir));
        if !inside || log_path.is_empty() {
            return Err(LogFileError::Outside(log_path.to_owned()));
        }
        Ok(self.base.join(relative))
    }

    /// Opens a log file for appending and makes its folders.
    ///
    /// # Errors
    /// [`LogFileError::Io`].
    pub fn open(&self, path: &Path) -> Result<LogFile, LogFileError> {
        let io = |source| LogFileError::Io {
            path: path.to_owned(),
            source,
        };
        if let Some(folder) = path.parent() {
            DirBuilder::new()
                .recursive(true)
                .mode(self.folder_mode)
                .create(folder)
                .map_err(io)?;
        }
        let file = OpenOptions::new()
            .create(true)
            .append(true)
            .mode(self.file_mode)
            .open(path)
            .map_err(io)?;
        Ok(LogFile {
            file,
            path: path.to_owned(),
            failed: false,
            spill: None,
        })
    }
}

/// An open task log: one JSON object a line.
#[derive(Debug)]
pub struct LogFile {
    file: File,
    path: PathBuf,
    failed: bool,
    spill: Option<Spill>,
}

/// The bytes that a log file did not take because its disk is full: the API server shall have them all the same.
#[derive(Clone, Debug, Default)]
pub struct Spill(Arc<Mutex<Vec<u8>>>);

impl Spill {
    fn keep(&self, bytes: &[u8]) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() + bytes.len() <= MOST_SPILLED {
            kept.extend_from_slice(bytes);
        }
    }

    /// What has been kept since the last time.
    pub(super) fn take(&self) -> Vec<u8> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl LogFile {
    /// Keeps what the file does not take from now on, for somebody who fetches it.
    pub(super) fn spill(&mut self) -> Spill {
        self.spill.get_or_insert_default().clone()
    }

    /// Writes to the file until that fails; returns what is left then and later.
    fn write_to_file<'line>(&mut self, line: &'line [u8]) -> &'line [u8] {
        let mut rest = line;
        while !self.failed && !rest.is_empty() {
            let error = match self.file.write(rest) {
                Ok(0) => std::io::Error::from(std::io::ErrorKind::WriteZero),
                Ok(written) => {
                    rest = rest.get(written..).unwrap_or_default();
                    continue;
                }
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
                Err(error) => error,
            };
            self.failed = true;
            let path = self.path.display();
            if self.spill.is_some() {
                tracing::error!(%error, %path, "a task log can't be written; the rest of it goes to the API server only");
            } else {
                tracing::error!(%error, %path, "a task log can't be written; the rest of it is lost");
            }
        }
        rest
    }
}

impl LogSink for LogFile {
    fn write(&mut self, record: &Map<String, Value>) {
        let Ok(mut line) = serde_json::to_vec(record) else {
            return;
        };
        line.push(b'\n');
        // In one write each, so that a reader never sees half a line.
        let rest = self.write_to_file(&line);
        if let (Some(spill), false) = (&self.spill, rest.is_empty()) {
            spill.keep(rest);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use pretty_assertions::assert_eq;
    use serde_json::json;

    use super::*;

    fn folder(base: &Path) -> LogFolder {
        LogFolder {
            base: base.to_owned(),
            folder_mode: 0o700,
            file_mode: 0o640,
        }
    }

    #[test]
    fn records_are_appended_in_new_folders_with_the_configured_modes() {
        let base = tempfile::tempdir().unwrap();
        let folder = folder(base.path());
        let path = folder
            .path("dag_id=d/run_id=manual__2026-01-02T03:04:05+00:00/task_id=t/attempt=1.log")
            .unwrap();
        for event in ["one", "two"] {
            let Value::Object(record) = json!({"event": event}) else {
                unreachable!()
            };
            folder.open(&path).unwrap().write(&record);
        }
        assert_eq!(
            std::fs::read_to_string(&path).unwrap(),
            "{\"event\":\"one\"}\n{\"event\":\"two\"}\n"
        );
        let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&path), mode(path.parent().unwrap())), (0o640, 0o700));
    }

    #[test]
    fn what_a_full_disk_does_not_take_is_kept_to_the_byte() {
        let mut log = LogFile {
            // Takes nothing: what is written gives ENOSPC.
            file: OpenOptions::new().write(true).open("/dev/full").unwrap(),
            path: "/dev/full".into(),
            failed: false,
            spill: None,
        };
        let record = |event: &str| json!({ "event": event }).as_object().unwrap().clone();
        log.write(&record("lost"));
        log.failed = false;
        let spill = log.spill();
        log.write(&record("one"));
        log.write(&record("two"));
        let kept = String::from_utf8(spill.take()).unwrap();
        assert_eq!(kept, "{\"event\":\"one\"}\n{\"event\":\"two\"}\n");
        assert!(spill.take().is_empty());
    }

    #[test]
    fn a_log_path_never_leads_out_of_the_folder() {
        let folder = folder(Path::new("/logs"));
        for path in ["", "../x", "a/../../x", "/etc/passwd"] {
            assert!(folder.path(path).is_err(), "{path}");
        }
    }
}
