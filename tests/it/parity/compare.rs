//! What counts as the same; the rules are in `tests/corpus/parity/README.md`.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use regex::Regex;
use serde_json::{Map, Value};

/// What a run did.
pub struct Observed {
    pub requests: Vec<Value>,
    pub fallback_requests: Vec<Value>,
    pub xcoms: Map<String, Value>,
    pub error: Option<String>,
    pub skipped: BTreeSet<String>,
    pub log: Vec<String>,
}

static DURATION: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"\b\d+\.\d\ds\b").unwrap());
static MADE_UP_ID: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"pyd_ai_[0-9a-f]+").unwrap());
static UUID: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}").unwrap()
});
static TIME: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z").unwrap());
/// What a parser says, in its own words, up to the end of the sentence it stands in.
static PARSER: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(
        r#"(?s)(?:Invalid JSON: )[^"]*|(?:SQL parse error: |Error tokenizing ).*?(\\nUse the|\nUse the|"\}|$)"#,
    )
    .unwrap()
});

static QUOTED: LazyLock<Regex> = LazyLock::new(|| Regex::new("'[^']*'").unwrap());

/// Classes of errors whose texts are Python's own, or hold a dump.
const PYTHONS_OWN: [&str; 4] = [
    "builtins.IndexError",
    "ContentFilterError",
    "FallbackExceptionGroup",
    "ValidationError",
];

/// Everything in which a run differs from its recording, one line each.
pub fn differences(recorded: &Value, observed: &Observed, renders: bool) -> Vec<String> {
    let mut out = Vec::new();
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    requests(
        "request",
        &list(&recorded["requests"]),
        &observed.requests,
        &mut out,
    );
    requests(
        "fallback request",
        &list(&recorded["fallback_requests"]),
        &observed.fallback_requests,
        &mut out,
    );

    let result = &recorded["result"];
    let mut xcoms = result["xcom"].as_object().cloned().unwrap_or_default();
    let mut seen = observed.xcoms.clone();
    if recorded["python"]["kwargs"]["do_xcom_push"] == Value::Bool(false) {
        // The operator returned it; a task runner would not have pushed it.
        xcoms.remove("return_value");
    }
    // The recorder kept None; a task runner does not push it.
    xcoms.retain(|key, value| key != "return_value" || !value.is_null());
    let run_id = seen
        .get("run_id")
        .and_then(Value::as_str)
        .unwrap_or_default()
        .to_owned();
    if let Some(Value::String(history)) = seen.get_mut("message_history") {
        *history = without_times_and_ids(history, &run_id, &recorded.to_string());
    }
    // The task runner pushes one for each extra link of the operator; no task runner took part in the recordings.
    seen.retain(|key, _| !key.starts_with("_link_"));
    for xcoms in [&mut xcoms, &mut seen] {
        if let Some(run_id) = xcoms.get_mut("run_id").filter(|id| id.is_string()) {
            *run_id = "<ti_id>".into();
        }
    }
    json(
        "xcom",
        &Value::Object(xcoms),
        &Value::Object(seen),
        &mut out,
    );

    let message = result["error"]["message"].as_str();
    match (message, observed.error.as_deref()) {
        (None, None) => {}
        (Some(_), Some(_))
            if PYTHONS_OWN
                .iter()
                .any(|class| result["error"]["type"].to_string().contains(class)) => {}
        (Some(expected), Some(error)) if error.ends_with(expected) => {}
        (expected, error) => out.push(format!("error: {error:?} instead of {expected:?}")),
    }

    let skipped: BTreeSet<String> = list(&result["skipped"])
        .iter()
        .filter_map(|task| task[0].as_str().map(str::to_owned))
        .collect();
    if skipped != observed.skipped {
        out.push(format!(
            "skipped: {:?} instead of {skipped:?}",
            observed.skipped
        ));
    }

    let kept = |line: &String| {
        !line.starts_with("Using explicit credentials")
            && !line.starts_with("Registered object store for schema: file://")
            && !line.starts_with("Running statement: SELECT name FROM pragma_")
            && !line.starts_with("Running statement: SELECT id, \"from\"")
            && !line.starts_with("Running statement: SELECT i.name, c.name")
            && (renders || !line.starts_with("Rendered toolset "))
    };
    let normal = |line: &String| {
        let line = in_one_order(line);
        PARSER
            .replace_all(&DURATION.replace_all(&line, "0.00s"), "<parser>$1")
            .into_owned()
    };
    let mut expected: Vec<String> = list(&recorded["log"])
        .iter()
        .filter_map(|line| line.as_str().map(str::to_owned))
        .filter(kept)
        .map(|line| normal(&line))
        .collect();
    let mut log: Vec<String> = observed
        .log
        .iter()
        .filter(|line| kept(line))
        .map(normal)
        .collect();
    if calls_overlap(recorded) {
        expected.sort();
        log.sort();
    }
    for index in 0..expected.len().max(log.len()) {
        let (expected, line) = (expected.get(index), log.get(index));
        if expected != line {
            out.push(format!(
                "log line {index}: {line:?} instead of {expected:?}"
            ));
            break;
        }
    }
    out
}

/// The lines of a branch name the items of sets, whose order is Python's own.
fn in_one_order(line: &str) -> String {
    let Some(said) = ["Following branch ", "Skipping tasks "]
        .iter()
        .find(|said| line.starts_with(**said))
    else {
        return line.to_owned();
    };
    let ids: BTreeSet<&str> = QUOTED.find_iter(line).map(|id| id.as_str()).collect();
    format!("{said}{ids:?}")
}

/// Several calls in one turn of tools that are not barriers to each other: their lines come in any order.
fn calls_overlap(recorded: &Value) -> bool {
    let toolsets = recorded["python"]["kwargs"]["toolsets"].to_string();
    let parallel = ["ObjectStorageToolset", "MCPToolset", "AgentSkillsToolset"]
        .iter()
        .any(|class| toolsets.contains(class));
    let several = recorded["responses"].as_array().is_some_and(|responses| {
        responses.iter().any(|response| {
            let body = &response["body"];
            [
                &body["choices"][0]["message"]["tool_calls"],
                &body["candidates"][0]["content"]["parts"],
            ]
            .iter()
            .any(|calls| calls.as_array().is_some_and(|calls| calls.len() > 1))
        })
    });
    parallel && several
}

fn requests(what: &str, expected: &[Value], seen: &[Value], out: &mut Vec<String>) {
    if expected.len() != seen.len() {
        out.push(format!(
            "{what}s: {} instead of {}",
            seen.len(),
            expected.len()
        ));
    }
    for (index, (expected, seen)) in expected.iter().zip(seen).enumerate() {
        let mut expected = expected.clone();
        if let Some(headers) = expected["headers"].as_object_mut() {
            headers.remove("user-agent");
            headers.remove("anthropic-version");
        }
        json(&format!("{what} {index}"), &expected, seen, out);
    }
}

/// A conversation with placeholders for what differs from run to run. Times that the scenario gives stay.
fn without_times_and_ids(history: &str, run_id: &str, recorded: &str) -> String {
    let text = history.replace(run_id, "<ti_id>");
    let text = UUID.replace_all(&text, "<uuid>");
    TIME.replace_all(&text, |time: &regex::Captures<'_>| {
        if recorded.contains(&time[0]) {
            time[0].to_owned()
        } else {
            "<timestamp>".to_owned()
        }
    })
    .into_owned()
}

/// The first place at which two values differ.
fn json(path: &str, expected: &Value, seen: &Value, out: &mut Vec<String>) {
    match (expected, seen) {
        (Value::Object(a), Value::Object(b)) => {
            for (key, value) in a {
                match b.get(key) {
                    Some(other) => json(&format!("{path}.{key}"), value, other, out),
                    None => out.push(format!("{path}.{key}: missing; {value} was recorded")),
                }
            }
            for (key, value) in b.iter().filter(|(key, _)| !a.contains_key(*key)) {
                out.push(format!("{path}.{key}: {value} was not recorded"));
            }
        }
        (Value::Array(a), Value::Array(b)) => {
            if a.len() != b.len() {
                out.push(format!("{path}: {} items instead of {}", b.len(), a.len()));
            }
            for (index, (a, b)) in a.iter().zip(b).enumerate() {
                json(&format!("{path}[{index}]"), a, b, out);
            }
        }
        (Value::Number(a), Value::Number(b)) if a == b || a.as_f64() == b.as_f64() => {}
        (Value::String(a), Value::String(b)) => {
            let normal = |text: &str| {
                PARSER
                    .replace_all(&MADE_UP_ID.replace_all(text, "pyd_ai_<hex>"), "<parser>$1")
                    .into_owned()
            };
            if normal(a) != normal(b) && !is_same_listing(a, b) {
                out.push(format!("{path}: {b:?} instead of {a:?}"));
            }
        }
        (a, b) if a == b => {}
        (a, b) => out.push(format!("{path}: {b} instead of {a}")),
    }
}

/// `list_skills` gives names and descriptions in the order of the file system.
fn is_same_listing(a: &str, b: &str) -> bool {
    let listing = |text| {
        let entries: Option<Map<String, Value>> = serde_json::from_str(text).ok();
        entries.filter(|entries| entries.values().all(Value::is_string))
    };
    matches!((listing(a), listing(b)), (Some(a), Some(b)) if a == b)
}
