//! The task's log: `tracing` events and Dag code's records become JSON lines on the logs socket.
//!
//! Airflow's supervisor is unforgiving about these lines (3.3.2): a line without a known lower-case `level`, a bad
//! `timestamp` or one of a few key names ends the supervisor or loses the line.

use std::fmt;
use std::io::Write;
use std::net::{SocketAddr, TcpStream};
use std::sync::mpsc::{self, Sender};
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;

use chrono::{SecondsFormat, Utc};
use serde_json::{Map, Value};
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::Context;

use crate::airflow::config::Config;
use crate::airflow::execution::TaskInstance;
use crate::secrets::Masker;

/// Keys that Airflow's supervisor hands to Python functions with parameters of these names, or reads specially.
const RESERVED: &[&str] = &[
    "target",
    "msg",
    "self",
    "method_name",
    "positional_args",
    "exc_info",
    "stack_info",
    "error_detail",
];

/// A longer event is cut: no reader of a task log wants it, and the supervisor holds every line in memory.
const MAX_EVENT_BYTES: usize = 256 * 1024;

/// How grave a record is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LogLevel {
    Debug,
    Info,
    Warning,
    Error,
    Critical,
}

impl LogLevel {
    fn name(self) -> &'static str {
        match self {
            Self::Debug => "debug",
            Self::Info => "info",
            Self::Warning => "warning",
            Self::Error => "error",
            Self::Critical => "critical",
        }
    }

    /// Reads Python's level names in any case; anything else is information.
    #[must_use]
    pub fn parse(name: &str) -> Self {
        match name.to_ascii_lowercase().as_str() {
            "debug" | "trace" | "notset" => Self::Debug,
            "warning" | "warn" => Self::Warning,
            "error" | "exception" => Self::Error,
            "critical" | "fatal" => Self::Critical,
            _ => Self::Info,
        }
    }
}

/// `[logging] logging_level` and `[logging] namespace_levels`.
#[derive(Clone, Debug)]
pub struct Levels {
    default: LogLevel,
    /// Logger name and level, longest name first.
    namespaces: Vec<(String, LogLevel)>,
}

impl Levels {
    /// From the configuration; what can't be read counts as unset.
    #[must_use]
    pub fn from_config(config: &Config) -> Self {
        let get = |key| {
            config
                .get("logging", key)
                .ok()
                .flatten()
                .unwrap_or_default()
        };
        let mut namespaces: Vec<_> = get("namespace_levels")
            .split([',', ' ', '\n', '\t'])
            .filter_map(|pair| pair.split_once('='))
            .map(|(name, level)| (name.trim().to_owned(), LogLevel::parse(level.trim())))
            .collect();
        namespaces.sort_by_key(|(name, _)| std::cmp::Reverse(name.len()));
        Self {
            default: LogLevel::parse(&get("logging_level")),
            namespaces,
        }
    }

    /// Is a record of this logger and level wanted?
    #[must_use]
    pub fn allow(&self, logger: &str, level: LogLevel) -> bool {
        let under = |name: &str| {
            logger == name
                || logger
                    .strip_prefix(name)
                    .is_some_and(|rest| rest.starts_with('.'))
        };
        let least = self
            .namespaces
            .iter()
            .find(|(name, _)| under(name))
            .map_or(self.default, |(_, level)| *level);
        level >= least
    }
}

enum Line {
    Text(String),
    End,
}

struct Shared {
    lines: Sender<Line>,
    levels: Levels,
    masker: Masker,
    /// `ti_id`, `dag_id` ... once it is known what runs.
    bound: OnceLock<Map<String, Value>>,
}

/// Writes the task's log. Cheap to clone.
#[derive(Clone)]
pub struct TaskLogger(Arc<Shared>);

impl fmt::Debug for TaskLogger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TaskLogger")
    }
}

/// Sends the lines; waits for the last of them when it is asked to.
#[derive(Debug)]
pub struct LogThread {
    lines: Sender<Line>,
    thread: JoinHandle<()>,
}

impl LogThread {
    /// Waits until everything that was logged until now has been sent, and closes the socket.
    pub fn finish(self) {
        if self.lines.send(Line::End).is_ok() {
            // A thread that panicked has nothing left to send.
            let _ = self.thread.join();
        }
    }
}

impl TaskLogger {
    /// Connects to the supervisor's logs socket.
    ///
    /// # Errors
    /// There is no connection, or no thread.
    pub fn connect(
        address: SocketAddr,
        levels: Levels,
        masker: Masker,
    ) -> std::io::Result<(Self, LogThread)> {
        let stream = TcpStream::connect(address)?;
        Self::over(stream, levels, masker)
    }

    fn over(
        mut stream: impl Write + Send + 'static,
        levels: Levels,
        masker: Masker,
    ) -> std::io::Result<(Self, LogThread)> {
        let (lines, inbox) = mpsc::channel();
        let thread = std::thread::Builder::new()
            .name("task-log".to_owned())
            .spawn(move || {
                let mut buffer = Vec::new();
                while let Ok(Line::Text(first)) = inbox.recv() {
                    buffer.clear();
                    buffer.extend_from_slice(first.as_bytes());
                    let mut last = false;
                    while let Ok(line) = inbox.try_recv() {
                        match line {
                            Line::Text(text) => buffer.extend_from_slice(text.as_bytes()),
                            Line::End => {
                                last = true;
                                break;
                            }
                        }
                        if buffer.len() > 1 << 20 {
                            break;
                        }
                    }
                    // When the supervisor is gone there is nobody left to tell.
                    if stream
                        .write_all(&buffer)
                        .and_then(|()| stream.flush())
                        .is_err()
                        || last
                    {
                        break;
                    }
                }
            })?;
        let shared = Shared {
            lines: lines.clone(),
            levels,
            masker,
            bound: OnceLock::new(),
        };
        Ok((Self(Arc::new(shared)), LogThread { lines, thread }))
    }

    /// From now on every record says which task instance it belongs to, as Airflow's records do.
    pub fn bind(&self, ti: &TaskInstance) {
        let fields = [
            ("ti_id", Value::from(ti.id.as_str())),
            ("dag_id", ti.dag_id.as_str().into()),
            ("task_id", ti.task_id.as_str().into()),
            ("run_id", ti.run_id.as_str().into()),
            ("try_number", ti.try_number.into()),
            ("map_index", ti.map_index.into()),
        ];
        // A second call changes nothing: a process runs one task instance.
        let _ = self.0.bound.set(
            fields
                .into_iter()
                .map(|(key, value)| (key.to_owned(), value))
                .collect(),
        );
    }

    /// The masker that every record goes through.
    #[must_use]
    pub fn masker(&self) -> &Masker {
        &self.0.masker
    }

    /// Is a record of this logger and level wanted?
    #[must_use]
    pub fn allows(&self, logger: &str, level: LogLevel) -> bool {
        self.0.levels.allow(logger, level)
    }

    /// Writes one record.
    pub fn write(&self, logger: &str, level: LogLevel, event: &str, fields: Map<String, Value>) {
        if !self.allows(logger, level) {
            return;
        }
        let mut record = Map::new();
        record.insert(
            "timestamp".to_owned(),
            Utc::now()
                .to_rfc3339_opts(SecondsFormat::Micros, true)
                .into(),
        );
        record.insert("level".to_owned(), level.name().into());
        // Masked first: of a secret that is cut in two nothing may be left.
        let event = cut(&self.0.masker.mask_str(event));
        record.insert("event".to_owned(), event.into());
        record.insert("logger".to_owned(), logger.into());
        for (key, value) in self.0.bound.get().into_iter().flatten() {
            record.insert(key.clone(), value.clone());
        }
        for (key, value) in fields {
            match key.as_str() {
                "timestamp" | "level" | "event" | "logger" => {
                    record.insert(format!("{key}_"), value)
                }
                key if RESERVED.contains(&key) => record.insert(format!("{key}_"), value),
                "exception" if !is_error_detail(&value) => {
                    record.insert("exception_text".to_owned(), value)
                }
                _ => record.insert(key, value),
            };
        }
        let mut line = Value::Object(self.0.masker.redact_log(record)).to_string();
        line.push('\n');
        // Once the thread has ended nobody reads any more.
        let _ = self.0.lines.send(Line::Text(line));
    }

    /// An informational record of the task runner itself.
    pub fn info(&self, event: &str) {
        self.write("task", LogLevel::Info, event, Map::new());
    }
}

/// The user interface maps over the frames of each error, and shows no log at all when they are missing.
fn is_error_detail(value: &Value) -> bool {
    value.as_array().is_some_and(|errors| {
        errors
            .iter()
            .all(|error| error.get("frames").is_some_and(Value::is_array))
    })
}

fn cut(event: &str) -> String {
    if event.len() <= MAX_EVENT_BYTES {
        return event.to_owned();
    }
    let end = event.floor_char_boundary(MAX_EVENT_BYTES);
    format!(
        "{}... ({} bytes in all)",
        event.get(..end).unwrap_or_default(),
        event.len()
    )
}

/// Sends `tracing` events to the task log: all of Updraft's, and warnings of the libraries.
///
/// The field `logger` names the Python logger that a record stands for.
#[derive(Debug)]
pub struct TaskLogLayer(pub TaskLogger);

impl<S: Subscriber> Layer<S> for TaskLogLayer {
    fn on_event(&self, event: &Event<'_>, _context: Context<'_, S>) {
        let metadata = event.metadata();
        let own =
            metadata.target().starts_with("updraft") || metadata.target().starts_with("airflow");
        let level = match *metadata.level() {
            Level::ERROR => LogLevel::Error,
            Level::WARN => LogLevel::Warning,
            Level::INFO => LogLevel::Info,
            Level::DEBUG | Level::TRACE => LogLevel::Debug,
        };
        if !own && level < LogLevel::Warning || *metadata.level() == Level::TRACE {
            return;
        }
        let mut fields = Fields::default();
        event.record(&mut fields);
        if fields.message.is_empty()
            && let Some(Value::String(event)) = fields.rest.shift_remove("event")
        {
            fields.message = event;
        }
        let logger = fields
            .logger
            .unwrap_or_else(|| metadata.target().replace("::", "."));
        self.0.write(&logger, level, &fields.message, fields.rest);
    }
}

#[derive(Default)]
struct Fields {
    message: String,
    logger: Option<String>,
    rest: Map<String, Value>,
}

impl Fields {
    fn put(&mut self, field: &Field, value: Value) {
        match (field.name(), value) {
            ("message", Value::String(text)) => self.message = text,
            ("logger", Value::String(text)) => self.logger = Some(text),
            ("error_detail", Value::String(text)) => {
                let value = serde_json::from_str(&text).unwrap_or(Value::String(text));
                self.rest.insert("exception".to_owned(), value);
            }
            (name, value) => {
                self.rest.insert(name.to_owned(), value);
            }
        }
    }
}

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.put(field, format!("{value:?}").into());
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.put(field, value.into());
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.put(field, value.into());
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.put(field, value.into());
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.put(field, value.into());
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.put(field, value.into());
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use pretty_assertions::assert_eq;
    use serde_json::json;

    use super::*;
    use crate::airflow::config::Environment;

    #[derive(Clone, Default)]
    struct Sink(Arc<Mutex<Vec<u8>>>);

    impl Write for Sink {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    fn logged(levels: &[(&str, &str)], write: impl FnOnce(&TaskLogger)) -> Vec<Value> {
        let config = Config::new(
            levels
                .iter()
                .copied()
                .chain([("AIRFLOW_HOME", "/nowhere")])
                .collect::<Environment>(),
        );
        let masker = Masker::new();
        masker.add_secret("hunter2-secret");
        let sink = Sink::default();
        let (logger, thread) =
            TaskLogger::over(sink.clone(), Levels::from_config(&config), masker).unwrap();
        write(&logger);
        thread.finish();
        let text = String::from_utf8(sink.0.lock().unwrap().clone()).unwrap();
        text.lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }

    #[test]
    fn no_line_can_upset_the_supervisor() {
        let lines = logged(&[], |logger| {
            let fields =
                json!({"target": 1, "msg": 2, "level": "x", "timestamp": 5, "exception": "text"});
            logger.write(
                "a",
                LogLevel::Warning,
                "hunter2-secret\nsecond line",
                fields.as_object().unwrap().clone(),
            );
        });
        let [line] = lines.as_slice() else {
            panic!("one line")
        };
        assert_eq!(line["level"], "warning");
        assert_eq!(line["event"], "***\nsecond line");
        assert_eq!(line["target_"], 1);
        assert_eq!(line["exception_text"], "text");
        for key in ["target", "msg", "exception"] {
            assert!(line.get(key).is_none(), "{key}");
        }
    }

    #[test]
    fn levels_are_those_of_the_configuration() {
        let environment = [
            ("AIRFLOW__LOGGING__LOGGING_LEVEL", "WARNING"),
            ("AIRFLOW__LOGGING__NAMESPACE_LEVELS", "my.mod=DEBUG"),
        ];
        let lines = logged(&environment, |logger| {
            for name in ["task", "my.mod.inner", "my.module"] {
                logger.write(name, LogLevel::Debug, name, Map::new());
                logger.write(name, LogLevel::Error, name, Map::new());
            }
        });
        let seen: Vec<_> = lines
            .iter()
            .map(|line| format!("{} {}", line["level"], line["event"]))
            .collect();
        assert_eq!(
            seen,
            [
                r#""error" "task""#,
                r#""debug" "my.mod.inner""#,
                r#""error" "my.mod.inner""#,
                r#""error" "my.module""#
            ]
        );
    }

    #[test]
    fn an_event_without_end_is_cut() {
        let lines = logged(&[], |logger| logger.info(&"x".repeat(50_000_000)));
        assert!(
            lines[0]["event"]
                .as_str()
                .unwrap()
                .ends_with("(50000000 bytes in all)")
        );
    }
}
