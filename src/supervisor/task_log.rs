//! The log of one task: whatever the task process says becomes a record of Airflow's task log, masked.

use std::sync::{Arc, Mutex, PoisonError};

use chrono::{DateTime, SecondsFormat, Utc};
use serde_json::{Map, Value, json};

use crate::secrets::Masker;

/// Takes the finished records of a task log, in order: a file, a channel.
pub trait LogSink: Send {
    /// Keeps one record. `timestamp`, `level` and `event` are there and stand first.
    fn write(&mut self, record: &Map<String, Value>);
}

/// The log of one task. Cheap to clone.
#[derive(Clone)]
pub struct TaskLog {
    sink: Arc<Mutex<Box<dyn LogSink>>>,
    masker: Masker,
}

impl TaskLog {
    /// A log that goes to `sink` with every secret that `masker` knows replaced.
    #[must_use]
    pub fn new(sink: Box<dyn LogSink>, masker: Masker) -> Self {
        Self {
            sink: Arc::new(Mutex::new(sink)),
            masker,
        }
    }

    /// The masker of this task.
    #[must_use]
    pub fn masker(&self) -> &Masker {
        &self.masker
    }

    /// Takes one line of the logs socket: a JSON object with `level` and `event`. Anything else is kept as text, so
    /// that nothing a task says is lost.
    pub fn forward(&self, line: &[u8]) {
        if line.iter().all(u8::is_ascii_whitespace) {
            return;
        }
        match serde_json::from_slice(line) {
            Ok(Value::Object(fields)) => self.write(fields),
            _ => self.captured("task", "info", line),
        }
    }

    /// Takes one line of the process's stdout (`task.stdout`, info) or stderr (`task.stderr`, error).
    pub fn captured(&self, logger: &str, level: &str, line: &[u8]) {
        let text = String::from_utf8_lossy(line);
        let text = text.trim_end();
        if text.is_empty() {
            return;
        }
        self.write(object(
            json!({"level": level, "event": text, "logger": logger}),
        ));
    }

    /// The supervisor's own word.
    pub fn say(&self, level: &str, event: &str, fields: Value) {
        let mut record = object(json!({"level": level, "event": event}));
        if let Value::Object(fields) = fields {
            record.extend(fields);
        }
        record
            .entry("logger")
            .or_insert_with(|| "supervisor".into());
        self.write(record);
    }

    fn write(&self, fields: Map<String, Value>) {
        let record = self.masker.redact_log(finish(fields, Utc::now()));
        self.sink
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .write(&record);
    }
}

fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(map) => map,
        _ => Map::new(),
    }
}

/// Makes a record of Airflow's task log out of what a task process sent: `timestamp`, `level`, `event` first and
/// sound, `exception` renamed to `error_detail` and always an array (the UI shows no log at all otherwise).
fn finish(mut fields: Map<String, Value>, now: DateTime<Utc>) -> Map<String, Value> {
    let timestamp = fields
        .shift_remove("timestamp")
        .as_ref()
        .and_then(Value::as_str)
        .and_then(|text| DateTime::parse_from_rfc3339(text).ok())
        .map_or(now, |datetime| datetime.to_utc());
    let level = level_name(
        fields
            .shift_remove("level")
            .as_ref()
            .and_then(Value::as_str)
            .unwrap_or_default(),
    );
    let event = match fields.shift_remove("event") {
        Some(Value::String(text)) => text,
        None | Some(Value::Null) => String::new(),
        Some(other) => other.to_string(),
    };
    let mut record = Map::with_capacity(fields.len() + 3);
    record.insert(
        "timestamp".into(),
        timestamp
            .to_rfc3339_opts(SecondsFormat::Micros, true)
            .into(),
    );
    record.insert("level".into(), level.into());
    record.insert("event".into(), event.into());
    let error = fields
        .shift_remove("exception")
        .or_else(|| fields.shift_remove("error_detail"));
    record.extend(fields);
    match error {
        None | Some(Value::Null) => {}
        Some(Value::Array(items))
            if items
                .iter()
                .all(|item| item.get("frames").is_some_and(Value::is_array)) =>
        {
            record.insert("error_detail".into(), Value::Array(items));
        }
        Some(other) => {
            let text = other
                .as_str()
                .map_or_else(|| other.to_string(), str::to_owned);
            record.insert(
                "error_detail".into(),
                json!([{"exc_type": "", "exc_value": text, "exc_notes": [], "syntax_error": null,
                    "is_cause": false, "frames": [], "is_group": false, "exceptions": []}]),
            );
        }
    }
    record
}

/// Airflow's name of a level; what it does not know is information.
fn level_name(level: &str) -> &'static str {
    match level.to_ascii_lowercase().as_str() {
        "critical" | "fatal" => "critical",
        "error" | "exception" => "error",
        "warning" | "warn" => "warning",
        "debug" | "trace" => "debug",
        _ => "info",
    }
}

#[cfg(test)]
pub(super) mod tests {
    use pretty_assertions::assert_eq;

    use super::*;

    /// Keeps the records for a test to look at.
    #[derive(Clone, Default)]
    pub(crate) struct Kept(Arc<Mutex<Vec<Map<String, Value>>>>);

    impl Kept {
        pub(crate) fn records(&self) -> Vec<Map<String, Value>> {
            self.0.lock().unwrap().clone()
        }

        pub(crate) fn events(&self) -> Vec<String> {
            self.records()
                .iter()
                .map(|record| record["event"].as_str().unwrap().to_owned())
                .collect()
        }

        pub(crate) fn log(&self) -> TaskLog {
            TaskLog::new(Box::new(self.clone()), Masker::new())
        }
    }

    impl LogSink for Kept {
        fn write(&mut self, record: &Map<String, Value>) {
            self.0.lock().unwrap().push(record.clone());
        }
    }

    fn only(kept: &Kept) -> Value {
        let mut records = kept.records();
        assert_eq!(records.len(), 1);
        Value::Object(records.remove(0))
    }

    #[test]
    fn a_line_of_the_logs_socket_becomes_a_record_with_the_three_keys_first() {
        let kept = Kept::default();
        kept.log().forward(
            br#"{"model":"m","event":"Calling model","level":"info","timestamp":"2026-01-02T03:04:05.678901234Z"}"#,
        );
        let expected = json!({"timestamp": "2026-01-02T03:04:05.678901Z", "level": "info",
            "event": "Calling model", "model": "m"});
        assert_eq!(only(&kept).to_string(), expected.to_string());
    }

    #[test]
    fn an_exception_becomes_error_detail_whatever_its_form() {
        let kept = Kept::default();
        kept.log().forward(
            br#"{"level":"error","event":"e","exception":[{"exc_type":"E","frames":[]}]}"#,
        );
        kept.log()
            .forward(br#"{"level":"error","event":"e","exception":"boom"}"#);
        let records = kept.records();
        assert_eq!(
            records[0]["error_detail"],
            json!([{"exc_type": "E", "frames": []}])
        );
        assert_eq!(records[1]["error_detail"][0]["exc_value"], "boom");
        assert!(records[1]["error_detail"][0]["frames"].is_array());
        assert!(
            records
                .iter()
                .all(|record| !record.contains_key("exception"))
        );
    }

    #[test]
    fn what_is_not_a_json_object_is_kept_as_text() {
        let kept = Kept::default();
        for line in [b"not json".as_slice(), b"[1]", b"  \r", b"\xff\xfe"] {
            kept.log().forward(line);
        }
        assert_eq!(kept.events(), ["not json", "[1]", "\u{fffd}\u{fffd}"]);
    }

    #[test]
    fn missing_levels_bad_timestamps_and_odd_levels_do_no_harm() {
        let kept = Kept::default();
        kept.log().forward(br#"{"event":1,"timestamp":5}"#);
        kept.log().forward(br#"{"level":"WARN"}"#);
        let records = kept.records();
        assert_eq!(
            (&records[0]["level"], &records[0]["event"]),
            (&json!("info"), &json!("1"))
        );
        assert_eq!(
            (&records[1]["level"], &records[1]["event"]),
            (&json!("warning"), &json!(""))
        );
        assert!(DateTime::parse_from_rfc3339(records[0]["timestamp"].as_str().unwrap()).is_ok());
    }
}
