//! How reading a Dag file, or running code of it, goes wrong.

/// Why a Dag file could not be loaded.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoadError {
    /// No such file.
    #[error("Dag file {file} is not there: is the bundle the one the Dag was scheduled from?")]
    NotThere { file: String },
    /// The operating system refused, or it is not a file.
    #[error("Dag file {file} can't be read: {source}")]
    NotReadable {
        file: String,
        #[source]
        source: std::io::Error,
    },
    /// Larger than [`max_file_bytes`](super::LoadOptions::max_file_bytes).
    #[error(
        "Dag file {file} is too large: {size} bytes, and at most {limit} are read; move data out of the Dag file"
    )]
    TooLarge { file: String, size: u64, limit: u64 },
    /// `offset`: the first byte that is not UTF-8, from 0.
    #[error("Dag file {file} is not UTF-8 at byte {offset}: save it as UTF-8")]
    NotUtf8 { file: String, offset: usize },
    /// `offset`: the null byte, from 0.
    #[error("Dag file {file} holds a null byte at byte {offset}: is it a Python file?")]
    NullByte { file: String, offset: usize },
    /// An encoding other than UTF-8, ASCII and Latin-1.
    #[error(
        "Dag file {file} declares the encoding {encoding}, which is not supported: save it as UTF-8"
    )]
    Encoding { file: String, encoding: String },
    /// Nested so deeply that compiling it would overflow the native stack.
    #[error("Dag file {file} has {what}: break it up")]
    TooDeep { file: String, what: &'static str },
    /// SyntaxError or one of its subclasses, in the Dag file or in a module that it imports. Lines count from 1.
    #[error("{file}:{line}: {class}: {message}")]
    Syntax {
        file: String,
        line: u32,
        class: String,
        message: String,
    },
    /// Longer than [`timeout`](super::LoadOptions::timeout).
    #[error(
        "Dag file {file} was still loading after {seconds} s{}: make it faster, or raise [core] dagbag_import_timeout",
        at.as_ref().map(|at| format!(", at {at}")).unwrap_or_default()
    )]
    TimedOut {
        file: String,
        seconds: f64,
        /// Where it was, when it could be stopped.
        at: Option<TraceFrame>,
    },
    /// RecursionError.
    #[error("Dag file {file} calls itself without end: {error}")]
    Recursion {
        file: String,
        error: Box<PythonError>,
    },
    /// Any other exception.
    #[error("Dag file {file} could not be loaded: {error}")]
    Exception {
        file: String,
        error: Box<PythonError>,
    },
    /// A fault of Updraft.
    #[error("Dag file {file} could not be loaded, by a fault of Updraft: {message}")]
    Internal { file: String, message: String },
}

/// An exception that Python code raised.
#[derive(Clone, Debug, Default, PartialEq, serde::Deserialize, thiserror::Error)]
#[serde(default)]
#[error("{}{}{}{}", self.name(), if self.message.is_empty() { "" } else { ": " }, self.message, self.place())]
pub struct PythonError {
    /// Module and name: `airflow.sdk.exceptions.AirflowSkipException`; built-in exceptions have no module.
    pub class: String,
    /// Its base classes, nearest first, written like `class`.
    pub bases: Box<[String]>,
    /// `str()` of it.
    pub message: String,
    /// Outermost call first.
    pub trace: Vec<TraceFrame>,
    /// `__cause__`, or the exception that was being handled.
    pub cause: Option<Box<PythonError>>,
    /// What few exceptions have, or few readers want.
    #[serde(flatten)]
    pub more: Box<More>,
}

/// The rest of a [`PythonError`].
#[derive(Clone, Debug, Default, PartialEq, serde::Deserialize)]
#[serde(default)]
pub struct More {
    /// SyntaxError: the file.
    pub file: Option<String>,
    /// SyntaxError: the line.
    pub line: Option<u32>,
    /// By which the interpreter knows the exception object again, as long as no other was raised after it.
    pub kept: Option<u64>,
    /// What the exception asks for, when it is one of those that mean more than a failure.
    pub data: serde_json::Value,
}

/// One call in a traceback.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(default)]
pub struct TraceFrame {
    /// The path; a name without `/` for code of the interpreter itself.
    pub filename: String,
    /// From 1.
    pub lineno: u32,
    /// The function's name.
    pub name: String,
}

impl std::fmt::Display for TraceFrame {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{} in {}", self.filename, self.lineno, self.name)
    }
}

impl PythonError {
    /// A fault of Updraft, told like an exception.
    pub(super) fn internal(message: impl Into<String>) -> Self {
        Self {
            class: "updraft.InternalError".to_owned(),
            message: message.into(),
            ..Self::default()
        }
    }

    /// The class's name without its module.
    pub fn name(&self) -> &str {
        self.class.rsplit('.').next().unwrap_or(&self.class)
    }

    /// Is it an exception of `class` (module and name, as in `PythonError::class`), or of one derived from it?
    pub fn is(&self, class: &str) -> bool {
        self.class == class || self.bases.iter().any(|base| base == class)
    }

    /// Leaves out the calls of the import machinery and of our own modules: they tell the author nothing.
    pub(super) fn tidy(&mut self) {
        let ours =
            |file: &str| file.starts_with("updraft_") || file.starts_with("_frozen_importlib");
        if self.trace.iter().any(|frame| !ours(&frame.filename)) {
            self.trace.retain(|frame| !ours(&frame.filename));
        }
        if let Some(cause) = &mut self.cause {
            cause.tidy();
        }
    }

    /// The innermost call in a file of the author's: a stand-in's file is a module name.
    fn place(&self) -> String {
        let own = |frame: &&TraceFrame| frame.filename.contains('/');
        self.trace
            .iter()
            .rev()
            .find(own)
            .or(self.trace.last())
            .map(|frame| format!(" ({frame})"))
            .unwrap_or_default()
    }
}
