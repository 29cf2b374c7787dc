//! A task's log file on the worker, where the API server's path for it says.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Component, Path, PathBuf};

use serde_json::{Map, Value};

use crate::supervisor::LogSink;

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
        })
    }
}

/// An open task log: one JSON object a line.
#[derive(Debug)]
pub struct LogFile {
    file: File,
    path: PathBuf,
    failed: bool,
}

impl LogSink for LogFile {
    fn write(&mut self, record: &Map<String, Value>) {
        let Ok(mut line) = serde_json::to_vec(record) else {
            return;
        };
        line.push(b'\n');
        // In one write each, so that a reader never sees half a line.
        if let Err(error) = self.file.write_all(&line)
            && !std::mem::replace(&mut self.failed, true)
        {
            tracing::error!(%error, path = %self.path.display(), "a task log can't be written; lines are lost");
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
    fn a_log_path_never_leads_out_of_the_folder() {
        let folder = folder(Path::new("/logs"));
        for path in ["", "../x", "a/../../x", "/etc/passwd"] {
            assert!(folder.path(path).is_err(), "{path}");
        }
    }
}
