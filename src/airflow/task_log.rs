//! Exceptions in records of Airflow's task log (`error_detail`), as the API server reads and the UI shows them.

use std::error::Error;

use serde::{Deserialize, Serialize};
use serde_json::Value;

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

    #[test]
    fn an_exception_reads_as_airflow_writes_it() {
        let detail = ErrorDetail {
            frames: vec![Frame {
                filename: "d.py".to_owned(),
                lineno: 7,
                name: "run".to_owned(),
            }],
            ..ErrorDetail::new("ValueError", "bad")
        };
        assert_eq!(
            serde_json::to_string(&detail).unwrap(),
            r#"{"exc_type":"ValueError","exc_value":"bad","exc_notes":[],"syntax_error":null,"is_cause":false,"frames":[{"filename":"d.py","lineno":7,"name":"run"}],"is_group":false,"exceptions":[]}"#
        );
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
