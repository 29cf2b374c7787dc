//! What a person sees of a local run: each model turn and tool call as it happens, then the answer.

use std::io::IsTerminal;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use serde_json::{Map, Value};

use super::trigger_rules::State;
use crate::agent::events;

/// Longest line of a tool's arguments or result, in characters.
const WIDTH: usize = 140;

/// Longest answer, in characters.
const LONGEST_ANSWER: usize = 20_000;

/// Prints the run: with a spinner on a terminal, as plain lines into a pipe, or not at all.
pub struct Display {
    silent: bool,
    verbose: bool,
    spinner: Option<Mutex<ProgressBar>>,
}

impl Display {
    /// For a person.
    pub fn new(verbose: bool) -> Self {
        let terminal = std::io::stdout().is_terminal() && std::io::stderr().is_terminal();
        Self {
            silent: false,
            verbose,
            spinner: terminal.then(|| Mutex::new(ProgressBar::hidden())),
        }
    }

    /// For `--json`.
    pub fn silent() -> Self {
        Self {
            silent: true,
            verbose: false,
            spinner: None,
        }
    }

    fn line(&self, text: &str) {
        if self.silent {
            return;
        }
        match &self.spinner {
            Some(spinner) => spinner
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .suspend(|| outln!("{text}")),
            None => outln!("{text}"),
        }
    }

    fn spin(&self, text: &str) {
        let Some(spinner) = &self.spinner else { return };
        let mut spinner = spinner.lock().unwrap_or_else(PoisonError::into_inner);
        if spinner.is_hidden() || spinner.is_finished() {
            *spinner = ProgressBar::new_spinner();
            if let Ok(style) = ProgressStyle::with_template("{spinner} {msg} {elapsed}") {
                spinner.set_style(style);
            }
            spinner.enable_steady_tick(Duration::from_millis(100));
        }
        spinner.set_message(text.to_owned());
    }

    fn still(&self) {
        if let Some(spinner) = &self.spinner {
            spinner
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .finish_and_clear();
        }
    }

    /// The run begins.
    pub fn run_starts(&self, dag_id: &str, run_id: &str) {
        self.line(&format!("Dag {dag_id}, run {run_id}"));
    }

    /// A try of a task begins.
    pub fn task_starts(&self, task: &str, try_number: u32) {
        let again = if try_number > 1 {
            format!(" (try {try_number})")
        } else {
            String::new()
        };
        self.line(&format!("\n{task}{again}"));
        self.spin(task);
    }

    /// A task that must not run.
    pub fn task_left_out(&self, task: &str, state: State) {
        self.line(&format!("\n{task}: {}", state.as_str().replace('_', " ")));
    }

    /// A record of the task's log.
    pub fn record(&self, record: &Map<String, Value>) {
        if self.silent {
            return;
        }
        let text = |key: &str| record.get(key).and_then(Value::as_str).unwrap_or_default();
        let number = |key: &str| record.get(key).and_then(Value::as_u64).unwrap_or_default();
        if text("logger") == events::TARGET {
            match text("event") {
                "model_request" => self.spin(&format!(
                    "turn {}: asking {}",
                    number("turn"),
                    text("model")
                )),
                "model_response" => {
                    let calls = number("tool_calls");
                    let said = match (one_line(text("text")), calls) {
                        (said, 0) if said.is_empty() => "says nothing".to_owned(),
                        // The answer is shown whole when the task ends.
                        (_, 0) => "answers".to_owned(),
                        (said, 1) if said.is_empty() => "calls a tool".to_owned(),
                        (said, n) if said.is_empty() => format!("calls {n} tools"),
                        (said, _) => said,
                    };
                    self.line(&format!(
                        "  turn {} {} ({} tokens in, {} out): {said}",
                        number("turn"),
                        text("model"),
                        number("input_tokens"),
                        number("output_tokens"),
                    ));
                }
                "tool_call" => {
                    self.line(&format!(
                        "    -> {} {}",
                        text("tool"),
                        one_line(text("args"))
                    ));
                    self.spin(&format!("turn {}: {}", number("turn"), text("tool")));
                }
                "tool_return" => {
                    let how = match text("outcome") {
                        "success" => String::new(),
                        other => format!(" {other}:"),
                    };
                    self.line(&format!(
                        "    <- {}{how} {}",
                        text("tool"),
                        one_line(text("result"))
                    ));
                }
                _ => {}
            }
            return;
        }
        for line in trace(record) {
            self.line(&format!("  {line}"));
        }
        let event = text("event");
        let level = text("level");
        if self.verbose {
            self.line(&format!("  [{level}] {}: {event}", text("logger")));
        } else if text("logger") == "task.stdout" {
            self.line(&format!("  | {event}"));
        } else if event.contains("the scripted model answers") {
            self.line(&format!("  {event}"));
        } else if matches!(level, "warning" | "error" | "critical")
            && !record.contains_key("error_detail")
        {
            self.line(&format!("  {level}: {event}"));
        }
    }

    /// A try of a task has ended.
    pub fn task_ends(
        &self,
        state: &str,
        took: Duration,
        xcoms: &Map<String, Value>,
        error: Option<&str>,
    ) {
        self.still();
        if self.silent {
            return;
        }
        if let Some(answer) = xcoms.get("return_value") {
            let answer = match answer {
                Value::String(text) => text.clone(),
                other => one_line(&other.to_string()),
            };
            // An answer is shown whole, a data dump is not.
            let end = answer
                .char_indices()
                .nth(LONGEST_ANSWER)
                .map(|(end, _)| end);
            for line in answer
                .get(..end.unwrap_or(answer.len()))
                .unwrap_or_default()
                .lines()
            {
                self.line(&format!("  {line}"));
            }
            if end.is_some() {
                self.line(&format!("  ... ({} bytes in all)", answer.len()));
            }
        }
        if let Some(error) = error {
            self.line(&format!("  {error}"));
        }
        let usage = xcoms.get("usage").map_or_else(String::new, |usage| {
            let number = |key: &str| usage.get(key).and_then(Value::as_u64).unwrap_or_default();
            format!(
                ", {}, {}, {} tokens in, {} out",
                counted(number("requests"), "request"),
                counted(number("tool_calls"), "tool call"),
                number("input_tokens"),
                number("output_tokens")
            )
        });
        self.line(&format!("  {state} in {:.2} s{usage}", took.as_secs_f64()));
    }

    /// Something to know about the run.
    pub fn note(&self, text: &str) {
        self.line(&format!("  {text}"));
    }

    /// The run has ended.
    pub fn run_ends(&self, state: &str, took: Duration) {
        self.line(&format!("\nDag run {state} in {:.2} s", took.as_secs_f64()));
    }
}

/// Where in the author's own files an exception was raised, outermost call first, and what caused it.
fn trace(record: &Map<String, Value>) -> Vec<String> {
    let exceptions = record.get("error_detail").and_then(Value::as_array);
    let mut lines = Vec::new();
    for (index, exception) in exceptions.into_iter().flatten().enumerate() {
        let text = |of: &Value, key: &str| {
            let value = of.get(key).and_then(Value::as_str).unwrap_or_default();
            value.to_owned()
        };
        if index > 0 {
            lines.push(format!(
                "caused by {}: {}",
                text(exception, "exc_type"),
                one_line(&text(exception, "exc_value"))
            ));
        }
        let frames = exception.get("frames").and_then(Value::as_array);
        lines.extend(frames.into_iter().flatten().filter_map(|frame| {
            let file = text(frame, "filename");
            // The file of one of our own modules is a module name.
            file.contains('/').then(|| {
                let line = frame
                    .get("lineno")
                    .and_then(Value::as_u64)
                    .unwrap_or_default();
                format!("at {}:{line} in {}", beside_us(&file), text(frame, "name"))
            })
        }));
    }
    lines
}

fn counted(number: u64, what: &str) -> String {
    let ending = if number == 1 { "" } else { "s" };
    format!("{number} {what}{ending}")
}

/// A path as it reads from the current folder.
fn beside_us(file: &str) -> String {
    let here = std::env::current_dir().unwrap_or_default();
    let path = std::path::Path::new(file);
    path.strip_prefix(here)
        .unwrap_or(path)
        .display()
        .to_string()
}

fn one_line(text: &str) -> String {
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match text.char_indices().nth(WIDTH) {
        Some((end, _)) => format!("{}...", text.get(..end).unwrap_or_default()),
        None => text,
    }
}
