//! Records of Airflow's task log: one JSON object a line, read by the API server and shown by the UI.

use std::error::Error;
use std::fmt;
use std::str::FromStr;

use chrono::{DateTime, SecondsFormat, Utc};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// How grave a record is. Airflow writes these names, in lower case.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    Debug,
    Info,
    Warning,
    Error,
    Critical,
}

impl Level {
    /// The name in a log line.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Debug => "debug",
            Self::Info => "info",
            Self::Warning => "warning",
            Self::Error => "error",
            Self::Critical => "critical",
        }
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A text that names no level.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a log level: use DEBUG, INFO, WARNING, ERROR or CRITICAL")]
pub struct UnknownLevel(String);

impl FromStr for Level {
    type Err = UnknownLevel;

    /// Reads Python's names, in any case.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(match text.trim().to_lowercase().as_str() {
            "debug" | "notset" => Self::Debug,
            "info" => Self::Info,
            "warning" | "warn" => Self::Warning,
            "error" | "exception" => Self::Error,
            "critical" | "fatal" => Self::Critical,
            _ => return Err(UnknownLevel(text.to_owned())),
        })
    }
}

/// One exception of `error_detail`. The UI maps over `frames`: without that list it shows no log at all.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ErrorDetail {
    pub exc_type: String,
    pub exc_value: String,
    #[serde(default)]
    pub exc_notes: Vec<String>,
    #[serde(default)]
    pub syntax_error: Option<Value>,
    /// The exception before it in the list was raised from this one.
    #[serde(default)]
    pub is_cause: bool,
    #[serde(default)]
    pub frames: Vec<Frame>,
    #[serde(default)]
    pub is_group: bool,
    #[serde(default)]
    pub exceptions: Vec<Value>,
}

/// A line of a traceback.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Frame {
    pub filename: String,
    pub lineno: u32,
    /// The function.
    pub name: String,
}

impl ErrorDetail {
    /// An exception without a traceback.
    #[must_use]
    pub fn new(exc_type: impl Into<String>, exc_value: impl Into<String>) -> Self {
        Self {
            exc_type: exc_type.into(),
            exc_value: exc_value.into(),
            ..Self::default()
        }
    }

    /// An error and its sources, outermost first. A source whose text the error above already ends with is left out.
    #[must_use]
    pub fn chain(exc_type: &str, error: &(dyn Error + 'static)) -> Vec<Self> {
        let mut details = vec![Self::new(exc_type, error.to_string())];
        let mut above = error.to_string();
        let mut source = error.source();
        while let Some(error) = source {
            let text = error.to_string();
            if !above.ends_with(&text) {
                details.push(Self {
                    is_cause: true,
                    ..Self::new("Error", text.clone())
                });
            }
            above = text;
            source = error.source();
        }
        details
    }
}

/// One record. `event` is the message.
#[derive(Clone, Debug, PartialEq)]
pub struct TaskLogRecord {
    pub timestamp: DateTime<Utc>,
    pub level: Level,
    pub event: String,
    pub logger: Option<String>,
    /// Outermost exception first; empty for a record without one.
    pub error_detail: Vec<ErrorDetail>,
    /// Further fields, shown after the message.
    pub fields: Map<String, Value>,
}

/// Field names that Airflow's supervisor can't take: they clash with its own arguments, and it dies of them.
const CLASHING: [&str; 7] = [
    "target",
    "msg",
    "self",
    "method_name",
    "positional_args",
    "exc_info",
    "stack_info",
];

impl TaskLogRecord {
    /// A record of this moment.
    #[must_use]
    pub fn new(level: Level, event: impl Into<String>) -> Self {
        Self {
            timestamp: Utc::now(),
            level,
            event: event.into(),
            logger: None,
            error_detail: Vec::new(),
            fields: Map::new(),
        }
    }

    /// The same record, from this logger.
    #[must_use]
    pub fn from_logger(mut self, logger: impl Into<String>) -> Self {
        self.logger = Some(logger.into());
        self
    }

    /// The same record with one more field.
    #[must_use]
    pub fn with_field(mut self, name: impl Into<String>, value: impl Into<Value>) -> Self {
        self.fields.insert(name.into(), value.into());
        self
    }

    /// The same record with an exception and its causes.
    #[must_use]
    pub fn with_error(mut self, details: Vec<ErrorDetail>) -> Self {
        self.error_detail = details;
        self
    }

    /// The object as it stands in a log file: `timestamp`, `level`, `event` first.
    #[must_use]
    pub fn for_file(self) -> Map<String, Value> {
        self.object("error_detail")
    }

    /// The object as the supervisor protocol's logs socket takes it: the exception is named `exception` there.
    #[must_use]
    pub fn for_socket(self) -> Map<String, Value> {
        self.object("exception")
    }

    fn object(self, error_key: &str) -> Map<String, Value> {
        let mut object = Map::with_capacity(self.fields.len() + 5);
        let timestamp = self.timestamp.to_rfc3339_opts(SecondsFormat::Micros, true);
        object.insert("timestamp".to_owned(), timestamp.into());
        object.insert("level".to_owned(), self.level.as_str().into());
        object.insert("event".to_owned(), self.event.into());
        if let Some(logger) = self.logger {
            object.insert("logger".to_owned(), logger.into());
        }
        for (mut name, value) in self.fields {
            if CLASHING.contains(&name.as_str()) {
                name.push('_');
            }
            object.entry(name).or_insert(value);
        }
        if !self.error_detail.is_empty() {
            let details = self
                .error_detail
                .into_iter()
                .filter_map(|detail| serde_json::to_value(detail).ok());
            object.insert(error_key.to_owned(), details.collect());
        }
        object
    }
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;

    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("the query failed")]
    struct Outer(#[source] Middle);
    #[derive(Debug, thiserror::Error)]
    #[error("connection: {0}")]
    struct Middle(#[source] Inner);
    #[derive(Debug, thiserror::Error)]
    #[error("refused")]
    struct Inner;

    fn record() -> TaskLogRecord {
        let mut record = TaskLogRecord::new(Level::Error, "Task failed with exception")
            .from_logger("task")
            .with_field("model", "x")
            .with_error(vec![ErrorDetail {
                frames: vec![Frame {
                    filename: "d.py".to_owned(),
                    lineno: 7,
                    name: "run".to_owned(),
                }],
                ..ErrorDetail::new("ValueError", "bad")
            }]);
        record.timestamp = "2026-01-02T03:04:05.678901Z".parse().unwrap();
        record
    }

    #[test]
    fn a_line_of_the_file_reads_as_airflow_writes_it() {
        assert_eq!(
            Value::Object(record().for_file()).to_string(),
            r#"{"timestamp":"2026-01-02T03:04:05.678901Z","level":"error","event":"Task failed with exception","logger":"task","model":"x","error_detail":[{"exc_type":"ValueError","exc_value":"bad","exc_notes":[],"syntax_error":null,"is_cause":false,"frames":[{"filename":"d.py","lineno":7,"name":"run"}],"is_group":false,"exceptions":[]}]}"#
        );
    }

    #[test]
    fn the_socket_names_the_exception_differently_and_gets_no_field_that_kills_the_supervisor() {
        let object = record()
            .with_field("target", "t")
            .with_field("level", "x")
            .for_socket();
        assert!(object.contains_key("exception") && !object.contains_key("error_detail"));
        assert_eq!(object["target_"], "t");
        assert_eq!(object["level"], "error");
        assert!(!object.contains_key("target"));
    }

    #[test]
    fn levels_are_read_as_python_names_them() {
        for (text, level) in [
            ("INFO", Level::Info),
            ("warn", Level::Warning),
            ("Fatal", Level::Critical),
        ] {
            assert_eq!(text.parse(), Ok(level));
        }
        assert!(
            "trace"
                .parse::<Level>()
                .unwrap_err()
                .to_string()
                .contains("use DEBUG")
        );
        assert!(Level::Debug < Level::Info && Level::Error < Level::Critical);
    }

    #[test]
    fn an_error_chain_says_each_thing_once() {
        let chain = ErrorDetail::chain("SQLError", &Outer(Middle(Inner)));
        let texts: Vec<_> = chain
            .iter()
            .map(|d| (d.exc_type.as_str(), d.exc_value.as_str(), d.is_cause))
            .collect();
        assert_eq!(
            texts,
            [
                ("SQLError", "the query failed", false),
                ("Error", "connection: refused", true)
            ]
        );
    }
}
