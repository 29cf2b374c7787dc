//! Plays the recorded runs of `tests/corpus/parity` and compares.

mod calls;
mod child;
mod compare;
mod scenario;
mod server;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{LazyLock, Mutex};
use std::thread;

use regex::Regex;
use serde_json::{Map, Value};

use compare::{Observed, differences};
use scenario::Scenario;
use server::Server;

/// When a file of the scenario was made, within JSON that is itself text.
static MODIFIED: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r#"(modified\\": \\")[0-9T:.+-]+"#).unwrap());
static DAG_MODULE: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"unusual_prefix_[0-9a-f]{40}_parity_dag").unwrap());

fn corpus() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus/parity")
}

#[test]
fn recorded_runs_are_repeated_to_the_letter() {
    let not_yet: BTreeMap<String, String> =
        serde_json::from_str(&fs::read_to_string(corpus().join("not_yet.json")).unwrap()).unwrap();
    let only = std::env::var("PARITY_ONLY").unwrap_or_default();
    let mut files: Vec<PathBuf> = fs::read_dir(corpus())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| {
            path.extension()
                .is_some_and(|extension| extension == "json")
        })
        .filter(|path| !path.ends_with("not_yet.json") && path.to_string_lossy().contains(&only))
        .collect();
    files.sort();
    assert!(!files.is_empty(), "no recordings");
    for name in not_yet.keys().filter(|_| only.is_empty()) {
        assert!(
            files.iter().any(|path| path.ends_with(name)),
            "not_yet.json lists {name}, which is not there"
        );
    }

    let queue = Mutex::new(files.into_iter());
    let failures = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                loop {
                    let Some(path) = queue.lock().unwrap().next() else {
                        return;
                    };
                    let scenario = Scenario::read(&path);
                    let differences = play(&scenario);
                    let verdict = match (differences.is_empty(), not_yet.get(&scenario.name)) {
                        (true, None) | (false, Some(_)) => continue,
                        (true, Some(_)) => vec!["passes: take it out of not_yet.json".to_owned()],
                        (false, None) => differences,
                    };
                    failures.lock().unwrap().push(format!(
                        "{}\n    {}",
                        scenario.name,
                        verdict.join("\n    ")
                    ));
                }
            });
        }
    });
    let mut failures = failures.into_inner().unwrap();
    failures.sort();
    assert!(
        failures.is_empty(),
        "{} recordings differ:\n{}",
        failures.len(),
        failures.join("\n")
    );
}

/// Runs a scenario; what differs from the recording.
fn play(scenario: &Scenario) -> Vec<String> {
    let folder = tempfile::tempdir().unwrap();
    scenario.set_up(folder.path());
    let server = Server::start(scenario.list("responses"));
    let fallback = Server::start(scenario.list("fallback_responses"));
    let path = folder.path().to_string_lossy().into_owned();
    let replace = |text: &str| {
        let text = if text.contains("<python>") {
            text.replace("<python>", &crate::mcp::python())
        } else {
            text.to_owned()
        };
        text.replace("<url>", &server.url)
            .replace("<url2>", &fallback.url)
            .replace("<path>", &path)
    };
    let restore = |value: Value| {
        // A port may begin with the digits of the other one, so the longer address goes first.
        let mut text = value.to_string().replace(&path, "<path>");
        // A Dag file's classes carry the name of its module, which holds a hash of its path.
        text = DAG_MODULE.replace_all(&text, "parity_dag").into_owned();
        let mut addresses = [(&server.url, "<url>"), (&fallback.url, "<url2>")];
        addresses.sort_by_key(|(url, _)| std::cmp::Reverse(url.len()));
        for (url, placeholder) in addresses {
            text = text.replace(url, placeholder);
        }
        let text = MODIFIED.replace_all(&text, "$1<timestamp>");
        serde_json::from_str(&text).unwrap()
    };
    let run = child::run(scenario, folder.path(), scenario.connections(replace));
    let observed = Observed {
        requests: server.requests().into_iter().map(restore).collect(),
        fallback_requests: fallback.requests().into_iter().map(restore).collect(),
        xcoms: match restore(Value::Object(run.xcoms)) {
            Value::Object(xcoms) => xcoms,
            _ => Map::new(),
        },
        error: run.error.map(|error| error.replace(&path, "<path>")),
        skipped: run.skipped,
        log: run
            .log
            .into_iter()
            .map(|line| line.replace(&path, "<path>"))
            .collect(),
    };
    let recorded = restore(scenario.recorded.clone());
    let mut out = differences(&recorded, &observed, scenario.renders());
    out.extend(scenario.database_difference(folder.path()));
    out.extend(server.faults());
    out.extend(fallback.faults());
    out
}
