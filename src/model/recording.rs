//! The exchange of a run with its model, written to a file and played back from it: how Dag authors test an agent
//! without a network, a key, or a model that answers otherwise each time.
//!
//! A recording is a file of JSON lines, one exchange a line:
//!
//! ```json
//! {"task": "ask", "try": 1, "model": "gpt-5", "provider": "openai",
//!  "request": {"messages": [{"request": {"parts": [{"user_prompt": "How many orders?"}]}}], "tools": [], "settings": {}},
//!  "response": {"parts": [{"text": "Twelve."}], "usage": {"input_tokens": 40, "output_tokens": 9}}}
//! ```
//!
//! - `task`: the task's id, with `[map index]` for one of several instances.
//! - `request.messages`: what the model had not been told before.
//! - `error` in place of `response`: what the provider said instead of answering.
//!
//! Known secrets are masked. Folders that lie elsewhere on another machine are named by what they are for, in requests and
//! in responses; a response that is played back has this machine's folders again.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use regex::Regex;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::agent::message::{Message, ModelResponse};
use crate::agent::model::RequestParameters;
use crate::agent::{Model, ModelError};
use crate::secrets::Masker;

/// Differences between two requests that are told.
const MOST_TOLD: usize = 5;
/// Characters of a text that are shown from the first difference on, and before it.
const SHOWN: usize = 80;
const SHOWN_BEFORE: usize = 20;

/// A recording that can't be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RecordingError {
    /// The file can't be opened.
    #[error("the recording {} can't be opened: {source}", path.display())]
    Unreadable {
        path: PathBuf,
        #[source]
        source: std::io::Error,
    },
    /// A line is not an exchange.
    #[error("{} is not a recording of `updraft run --record`: line {line}: {source}", path.display())]
    Malformed {
        path: PathBuf,
        line: usize,
        #[source]
        source: serde_json::Error,
    },
    /// Nothing was recorded of this try.
    #[error(
        "the recording {} has no exchange of try {try_number} of task {task} ({known}): record it again with --record",
        path.display()
    )]
    NoExchange {
        path: PathBuf,
        task: String,
        try_number: i64,
        known: String,
    },
}

/// Whose exchange it is, and what of it must not be written down.
pub struct Scope {
    /// The task's id, with `[map index]` for one of several instances.
    pub task: String,
    pub try_number: i64,
    /// The folder of the Dag files.
    pub dag_folder: PathBuf,
    /// How the names of private temporary folders begin; clones of skills lie in them.
    pub private_folders: &'static str,
    pub masker: Masker,
}

#[derive(Serialize, Deserialize)]
struct Exchange {
    task: String,
    r#try: i64,
    model: String,
    provider: String,
    request: Value,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    response: Option<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    error: Option<RecordedError>,
}

/// A request that was not answered.
#[derive(Serialize, Deserialize)]
struct RecordedError {
    /// The provider's HTTP status, when it refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    status: Option<u16>,
    text: String,
}

/// Writes requests down, and how much of them the model knew before.
struct Described {
    scope: Scope,
    /// Of this machine, with what they are called in a recording.
    folders: Vec<(String, &'static str)>,
    /// Clones of skills lie in a new folder each time.
    clones: Option<Regex>,
    told: Mutex<usize>,
}

impl Described {
    fn new(scope: Scope) -> Self {
        let temporary = std::env::temp_dir();
        let temporary = temporary.canonicalize().unwrap_or(temporary);
        let pattern = format!(
            r"{}/{}\w+",
            regex::escape(&temporary.display().to_string()),
            regex::escape(scope.private_folders)
        );
        let mut folders = vec![(scope.dag_folder.display().to_string(), "<dags>")];
        // Skills and data often lie beside the Dag folder.
        if let Some(parent) = scope.dag_folder.parent()
            && parent.parent().is_some()
        {
            folders.push((format!("{}/", parent.display()), "<dags>/../"));
        }
        Self {
            scope,
            folders,
            clones: Regex::new(&pattern).ok(),
            told: Mutex::new(0),
        }
    }

    fn request(&self, messages: &[Message], parameters: &RequestParameters) -> Value {
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        let new = messages.get(*told..).unwrap_or(messages);
        // The answer to this one is known as well.
        *told = messages.len() + 1;
        let mut described = json!({
            "messages": new,
            "tools": parameters.tools,
            "settings": told_settings(&parameters.settings),
        });
        if let Value::Object(described) = &mut described {
            if !parameters.native_tools.is_empty() {
                described.insert("native_tools".to_owned(), json!(parameters.native_tools));
            }
            if !parameters.output_tools.is_empty() {
                described.insert("output_tools".to_owned(), json!(parameters.output_tools));
            }
            if let Some(object) = &parameters.output_object {
                described.insert("output_object".to_owned(), json!(object));
            }
        }
        self.anywhere(self.scope.masker.mask_value(described))
    }

    /// What [`Self::anywhere`] has made of folders, undone; clones of skills have no name until they are made.
    fn here(&self, value: Value) -> Value {
        match value {
            Value::String(text) => self.text_here(&text).into(),
            Value::Array(items) => items.into_iter().map(|item| self.here(item)).collect(),
            Value::Object(map) => map
                .into_iter()
                .map(|(key, item)| (key, self.here(item)))
                .collect(),
            other => other,
        }
    }

    fn text_here(&self, text: &str) -> String {
        // The longer name first.
        let folders = self.folders.iter().rev();
        folders.fold(text.to_owned(), |text, (folder, name)| {
            text.replace(name, folder)
        })
    }

    fn text_anywhere(&self, text: &str) -> String {
        let folders = self.folders.iter();
        let text = folders.fold(text.to_owned(), |text, (folder, name)| {
            text.replace(folder, name)
        });
        match &self.clones {
            Some(clones) => clones.replace_all(&text, "<skills>").into_owned(),
            None => text,
        }
    }

    fn error_anywhere(&self, text: &str) -> String {
        self.text_anywhere(&self.scope.masker.mask_str(text))
    }

    /// With folders as they are called on every machine.
    fn anywhere(&self, value: Value) -> Value {
        match value {
            Value::String(text) => self.text_anywhere(&text).into(),
            Value::Array(items) => items.into_iter().map(|item| self.anywhere(item)).collect(),
            Value::Object(map) => map
                .into_iter()
                .map(|(key, item)| (key, self.anywhere(item)))
                .collect(),
            other => other,
        }
    }
}

/// The settings but for those that change only what the provider keeps of a request.
fn told_settings(settings: &Map<String, Value>) -> Map<String, Value> {
    let told = settings
        .iter()
        .filter(|(name, _)| !name.contains("_cache_"));
    told.map(|(name, value)| (name.clone(), value.clone()))
        .collect()
}

/// A model whose exchange is written down.
pub struct Recorder {
    inner: Arc<dyn Model>,
    described: Described,
    path: PathBuf,
    file: Mutex<File>,
}

impl Recorder {
    /// Goes on at the end of the file.
    ///
    /// # Errors
    /// The file can't be opened for writing.
    pub fn new(inner: Arc<dyn Model>, path: &Path, scope: Scope) -> Result<Self, RecordingError> {
        let file = File::options().append(true).create(true).open(path);
        Ok(Self {
            inner,
            described: Described::new(scope),
            path: path.to_owned(),
            file: Mutex::new(file.map_err(|source| RecordingError::Unreadable {
                path: path.to_owned(),
                source,
            })?),
        })
    }

    fn write(&self, exchange: &Exchange) -> std::io::Result<()> {
        let mut line = serde_json::to_vec(exchange)?;
        line.push(b'\n');
        // One write: the lines of processes that run side by side do not mix.
        self.file
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .write_all(&line)
    }
}

#[async_trait]
impl Model for Recorder {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn provider(&self) -> &str {
        self.inner.provider()
    }

    fn server(&self) -> Option<(String, u16)> {
        self.inner.server()
    }

    fn is_replayed(&self) {
        self.inner.is_replayed();
    }

    async fn request(
        &self,
        messages: &[Message],
        parameters: &RequestParameters,
    ) -> Result<ModelResponse, ModelError> {
        let request = self.described.request(messages, parameters);
        let answer = self.inner.request(messages, parameters).await;
        let scope = &self.described.scope;
        let mut exchange = Exchange {
            task: scope.task.clone(),
            r#try: scope.try_number,
            model: self.inner.name().to_owned(),
            provider: self.inner.provider().to_owned(),
            request,
            response: None,
            error: None,
        };
        match &answer {
            Ok(response) => {
                let masked = scope.masker.mask_value(json!(response));
                exchange.response = Some(self.described.anywhere(masked));
            }
            Err(error) => {
                exchange.error = Some(RecordedError {
                    status: match error {
                        ModelError::Http { status, .. } => Some(*status),
                        _ => None,
                    },
                    text: match error {
                        ModelError::Http { body, .. } => self.described.error_anywhere(body),
                        other => self.described.error_anywhere(&other.to_string()),
                    },
                });
            }
        }
        self.write(&exchange).map_err(|error| {
            ModelError::Configuration(format!(
                "the recording {} can't be written: {error}",
                self.path.display()
            ))
        })?;
        answer
    }
}

/// A model that answers from a recording, as long as it is asked the same.
pub struct Replay {
    path: PathBuf,
    described: Described,
    exchanges: Vec<Exchange>,
    next: Mutex<usize>,
    name: String,
    provider: String,
}

impl Replay {
    /// Reads what was recorded of one try of one task.
    ///
    /// # Errors
    /// See [`RecordingError`].
    pub fn open(path: &Path, scope: Scope) -> Result<Self, RecordingError> {
        let text = std::fs::read_to_string(path).map_err(|source| RecordingError::Unreadable {
            path: path.to_owned(),
            source,
        })?;
        let mut exchanges: Vec<Exchange> = Vec::new();
        let mut known = BTreeSet::new();
        for (index, line) in text.lines().enumerate() {
            if line.trim().is_empty() {
                continue;
            }
            let exchange: Exchange =
                serde_json::from_str(line).map_err(|source| RecordingError::Malformed {
                    path: path.to_owned(),
                    line: index + 1,
                    source,
                })?;
            if exchange.task == scope.task && exchange.r#try == scope.try_number {
                exchanges.push(exchange);
            } else {
                known.insert(format!("try {} of {}", exchange.r#try, exchange.task));
            }
        }
        let Some(first) = exchanges.first() else {
            let known: Vec<_> = known.into_iter().collect();
            return Err(RecordingError::NoExchange {
                path: path.to_owned(),
                task: scope.task,
                try_number: scope.try_number,
                known: match known.as_slice() {
                    [] => "it is empty".to_owned(),
                    known => format!("only of {}", known.join(", ")),
                },
            });
        };
        Ok(Self {
            path: path.to_owned(),
            name: first.model.clone(),
            provider: first.provider.clone(),
            described: Described::new(scope),
            exchanges,
            next: Mutex::new(0),
        })
    }

    /// What a run that ended left of the recording, as a sentence.
    #[must_use]
    pub fn left_over(&self) -> Option<String> {
        let played = *self.next.lock().unwrap_or_else(PoisonError::into_inner);
        let left = self.exchanges.len().saturating_sub(played);
        (left > 0).then(|| {
            format!(
                "the run ended after request {played}, and the recording {} has {left} more of {}; record it again if \
                 that is wanted",
                self.path.display(),
                self.who()
            )
        })
    }

    fn who(&self) -> String {
        let scope = &self.described.scope;
        format!("task {}, try {}", scope.task, scope.try_number)
    }
}

#[async_trait]
impl Model for Replay {
    fn name(&self) -> &str {
        &self.name
    }

    fn provider(&self) -> &str {
        &self.provider
    }

    async fn request(
        &self,
        messages: &[Message],
        parameters: &RequestParameters,
    ) -> Result<ModelResponse, ModelError> {
        let request = self.described.request(messages, parameters);
        let index = {
            let mut next = self.next.lock().unwrap_or_else(PoisonError::into_inner);
            *next += 1;
            *next - 1
        };
        let path = self.path.display();
        let Some(exchange) = self.exchanges.get(index) else {
            return Err(ModelError::Replay(format!(
                "request {} is one more than the recording {path} has of {}; record it again if that is wanted",
                index + 1,
                self.who()
            )));
        };
        let mut differences = Differences::default();
        differences.find("", &exchange.request, &request);
        if let Some(told) = differences.told() {
            return Err(ModelError::Replay(format!(
                "request {} differs from the recording {path} of {}; record it again if that is wanted:\n{told}",
                index + 1,
                self.who()
            )));
        }
        match (&exchange.response, &exchange.error) {
            (Some(response), _) => {
                let response = self.described.here(response.clone());
                serde_json::from_value(response).map_err(|error| {
                    ModelError::Replay(format!(
                        "response {} of {} in the recording {path} can't be read: {error}",
                        index + 1,
                        self.who()
                    ))
                })
            }
            (
                None,
                Some(RecordedError {
                    status: Some(status),
                    text,
                }),
            ) => Err(ModelError::Http {
                status: *status,
                model_name: exchange.model.clone(),
                body: self.described.text_here(text),
            }),
            (None, Some(error)) => Err(ModelError::UnexpectedBehavior(
                self.described.text_here(&error.text),
            )),
            (None, None) => Err(ModelError::Replay(format!(
                "exchange {} of {} in the recording {path} has neither response nor error",
                index + 1,
                self.who()
            ))),
        }
    }
}

/// What one request has and another has not.
#[derive(Default)]
struct Differences {
    lines: Vec<String>,
    more: usize,
}

impl Differences {
    fn find(&mut self, place: &str, recorded: &Value, now: &Value) {
        match (recorded, now) {
            (Value::Object(recorded), Value::Object(now)) => {
                let keys: BTreeSet<_> = recorded.keys().chain(now.keys()).collect();
                for key in keys {
                    let place = match place {
                        "" => key.clone(),
                        place => format!("{place}.{key}"),
                    };
                    self.pair(&place, recorded.get(key), now.get(key));
                }
            }
            (Value::Array(recorded), Value::Array(now)) => {
                for index in 0..recorded.len().max(now.len()) {
                    let place = format!("{place}[{index}]");
                    self.pair(&place, recorded.get(index), now.get(index));
                }
            }
            _ if recorded == now => {}
            _ => self.tell(place, Some(recorded), Some(now)),
        }
    }

    fn pair(&mut self, place: &str, recorded: Option<&Value>, now: Option<&Value>) {
        match (recorded, now) {
            (Some(recorded), Some(now)) => self.find(place, recorded, now),
            _ => self.tell(place, recorded, now),
        }
    }

    fn tell(&mut self, place: &str, recorded: Option<&Value>, now: Option<&Value>) {
        if self.lines.len() == MOST_TOLD {
            self.more += 1;
            return;
        }
        let (recorded, now) = excerpts(&shown(recorded), &shown(now));
        self.lines.push(format!(
            "  {place}\n    recorded: {recorded}\n    now:      {now}"
        ));
    }

    fn told(mut self) -> Option<String> {
        if self.lines.is_empty() {
            return None;
        }
        if self.more > 0 {
            self.lines.push(format!("  and {} more", self.more));
        }
        Some(self.lines.join("\n"))
    }
}

fn shown(value: Option<&Value>) -> String {
    value.map_or_else(|| "(nothing)".to_owned(), ToString::to_string)
}

/// Both texts around the place where they part.
fn excerpts(one: &str, other: &str) -> (String, String) {
    let same = one
        .chars()
        .zip(other.chars())
        .take_while(|(one, other)| one == other)
        .count();
    let start = same.saturating_sub(SHOWN_BEFORE);
    let cut = |text: &str| {
        let mut excerpt: String = text
            .chars()
            .skip(start)
            .take(SHOWN + SHOWN_BEFORE)
            .collect();
        if text.chars().count() > start + SHOWN + SHOWN_BEFORE {
            excerpt.push('…');
        }
        if start > 0 {
            excerpt.insert(0, '…');
        }
        excerpt
    };
    (cut(one), cut(other))
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;
    use serde_json::Map;

    use super::*;
    use crate::agent::ToolDefinition;
    use crate::agent::message::{ModelRequest, RequestPart, UserContent};
    use crate::model::scripted::Scripted;

    fn scope(try_number: i64) -> Scope {
        let masker = Masker::new();
        masker.add_secret("made-up-password");
        Scope {
            task: "ask[2]".to_owned(),
            try_number,
            dag_folder: "/home/someone/dags".into(),
            private_folders: "updraft_task_",
            masker,
        }
    }

    fn prompt(text: &str) -> Vec<Message> {
        vec![Message::Request(ModelRequest {
            parts: vec![RequestPart::UserPrompt(UserContent::Text(text.to_owned()))],
            instructions: vec![format!(
                "Skills lie in /home/someone/dags/skills, /home/someone/more and {}/updraft_task_x1/repo.",
                std::env::temp_dir().canonicalize().unwrap().display()
            )],
            ..ModelRequest::default()
        })]
    }

    fn offering(tool: &str) -> RequestParameters {
        RequestParameters {
            tools: vec![ToolDefinition {
                name: tool.to_owned(),
                description: None,
                parameters: json!({"type": "object"}),
                sequential: true,
                max_retries: None,
            }],
            allow_text_output: true,
            settings: Map::new(),
            ..RequestParameters::default()
        }
    }

    /// A run of two requests with the scripted model.
    async fn recorded(folder: &Path) -> (PathBuf, Vec<ModelResponse>) {
        let path = folder.join("run.jsonl");
        let transcript = r#"[{"tool_calls": [{"name": "query", "args": {"sql": "made-up-password"}}],
            "usage": {"input_tokens": 7}}, {"text": "Twelve: see /home/someone/dags/a and /home/someone/b."}]"#;
        let model = Arc::new(Scripted::from_text(transcript, "t").unwrap());
        let recorder = Recorder::new(model, &path, scope(1)).unwrap();
        let mut messages = prompt("The key is made-up-password.");
        let mut responses = Vec::new();
        for _ in 0..2 {
            let response = recorder
                .request(&messages, &offering("query"))
                .await
                .unwrap();
            messages.push(Message::Response(Box::new(response.clone())));
            messages.extend(prompt("Go on."));
            responses.push(response);
        }
        (path, responses)
    }

    #[tokio::test]
    async fn a_recording_answers_as_the_model_did_and_holds_no_secret() {
        let folder = tempfile::tempdir().unwrap();
        let (path, responses) = recorded(folder.path()).await;
        let text = std::fs::read_to_string(&path).unwrap();
        assert_eq!(text.lines().count(), 2, "{text}");
        assert!(!text.contains("made-up-password"), "{text}");
        assert!(!text.contains("/home/someone"), "{text}");
        assert!(text.contains("see <dags>/a and <dags>/../b."), "{text}");
        assert!(
            text.contains("Skills lie in <dags>/skills, <dags>/../more and <skills>/repo."),
            "{text}"
        );

        let replay = Replay::open(&path, scope(1)).unwrap();
        let first = replay
            .request(&prompt("The key is made-up-password."), &offering("query"))
            .await
            .unwrap();
        assert_eq!(first.usage, responses[0].usage);
        assert_eq!(first.timestamp, responses[0].timestamp);
        assert_eq!(
            replay.left_over().unwrap(),
            format!(
                "the run ended after request 1, and the recording {} has 1 more of task ask[2], try 1; record it again \
                 if that is wanted",
                path.display()
            )
        );
        let mut messages = prompt("The key is made-up-password.");
        messages.push(Message::Response(Box::new(first)));
        messages.extend(prompt("Go on."));
        let second = replay.request(&messages, &offering("query")).await.unwrap();
        assert_eq!(second, responses[1]);
        assert_eq!(replay.left_over(), None);
        let one_more = replay.request(&messages, &offering("query")).await;
        assert!(
            one_more
                .unwrap_err()
                .to_string()
                .starts_with("request 3 is one more than the recording"),
        );
    }

    #[tokio::test]
    async fn a_request_that_differs_is_told_by_place() {
        let folder = tempfile::tempdir().unwrap();
        let (path, _) = recorded(folder.path()).await;
        let replay = Replay::open(&path, scope(1)).unwrap();
        let told = replay
            .request(&prompt("The door is green."), &offering("list_tables"))
            .await
            .unwrap_err()
            .to_string();
        assert_eq!(
            told.split_once(":\n").unwrap().1,
            "  messages[0].request.parts[0].user_prompt\n    \
             recorded: \"The key is ***.\"\n    \
             now:      \"The door is green.\"\n  \
             tools[0].name\n    recorded: \"query\"\n    now:      \"list_tables\""
        );
    }

    #[test]
    fn what_is_no_recording_of_this_task_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("run.jsonl");
        let refusal = |text: &str, try_number| {
            std::fs::write(&path, text).unwrap();
            match Replay::open(&path, scope(try_number)) {
                Ok(_) => "nothing was wrong".to_owned(),
                Err(error) => error.to_string(),
            }
        };
        assert!(refusal("{}\n", 1).contains("line 1: missing field `task`"));
        assert!(refusal("", 1).contains("no exchange of try 1 of task ask[2] (it is empty)"));
        let other = r#"{"task": "ask[0]", "try": 1, "model": "m", "provider": "p", "request": {}}"#;
        assert!(
            refusal(other, 2).contains("(only of try 1 of ask[0])"),
            "{}",
            refusal(other, 2)
        );
    }

    #[test]
    fn long_texts_are_shown_where_they_part() {
        let same = "x".repeat(300);
        let (one, other) = excerpts(&format!("{same}a"), &format!("{same}b{same}"));
        assert_eq!(one, format!("…{}a", "x".repeat(20)));
        assert!(other.starts_with(&format!("…{}b", "x".repeat(20))) && other.ends_with('…'));
    }
}
