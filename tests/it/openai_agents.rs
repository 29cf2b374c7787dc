//! Agents written with the OpenAI Agents SDK, against what the real SDK asks, answers and tells of its spans.
//!
//! `tests/fixtures/openai_agents/recorded.jsonl` is what `tests/servers/openai_agents.py` prints under the real SDK; an
//! end-to-end test makes sure that it still does.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use pretty_assertions::assert_eq;
use serde_json::{Value, json};
use tokio::runtime::Runtime;
use wiremock::matchers::method;
use wiremock::{Mock, MockServer, Request, Respond, ResponseTemplate};

use crate::local_run::{dag_file, repository, run_with, task, updraft};

fn folder() -> PathBuf {
    repository().join("tests/fixtures/openai_agents")
}

/// The agents of the fixture, by their names.
fn recorded() -> BTreeMap<String, Value> {
    let text = std::fs::read_to_string(folder().join("recorded.jsonl")).unwrap();
    text.lines()
        .skip(1)
        .map(|line| {
            let agent: Value = serde_json::from_str(line).unwrap();
            (agent["name"].as_str().unwrap().to_owned(), agent)
        })
        .collect()
}

/// Answers each agent as the scripted model did, and notes what it is asked.
struct Recorded {
    agents: BTreeMap<String, Value>,
    asked: Mutex<BTreeMap<String, Vec<Value>>>,
}

impl Respond for &'static Recorded {
    fn respond(&self, request: &Request) -> ResponseTemplate {
        let path = request.url.path().trim_start_matches('/');
        let (name, rest) = path.split_once('/').unwrap();
        let query = request.url.query().map(|query| format!("?{query}"));
        let mut asked = self.asked.lock().unwrap();
        let asked = asked.entry(name.to_owned()).or_default();
        let team = request.headers.get("x-team");
        let team = team.map(|team| json!({ "x-team": team.to_str().unwrap() }));
        asked.push(json!({
            "path": format!("/{rest}{}", query.unwrap_or_default()),
            "headers": team.unwrap_or_else(|| json!({})),
            "request": request.body_json::<Value>().unwrap(),
        }));
        let exchange = &self.agents[name]["exchanges"][asked.len() - 1];
        let status = exchange["status"].as_u64().unwrap_or(500);
        ResponseTemplate::new(u16::try_from(status).unwrap()).set_body_raw(
            exchange["answer"].as_str().unwrap_or("asked too often"),
            exchange["type"].as_str().unwrap_or("text/plain"),
        )
    }
}

/// Spans that overlap end in an order that nobody can foresee.
fn ended(agent: &Value) -> Vec<String> {
    let ended = agent["ended"].as_array().unwrap();
    let mut ended: Vec<String> = ended.iter().map(ToString::to_string).collect();
    ended.sort();
    ended
}

fn sorted(value: &Value) -> Value {
    match value {
        Value::Object(map) => {
            let map: BTreeMap<_, _> = map.iter().map(|(k, v)| (k.clone(), sorted(v))).collect();
            json!(map)
        }
        Value::Array(items) => items.iter().map(sorted).collect(),
        other => other.clone(),
    }
}

/// A server whose POSTs are answered by this, and what it runs on.
pub(crate) fn served(answers: impl Respond + 'static) -> (Runtime, MockServer) {
    let runtime = Runtime::new().unwrap();
    let server = runtime.block_on(async {
        let server = MockServer::start().await;
        Mock::given(method("POST"))
            .respond_with(answers)
            .mount(&server)
            .await;
        server
    });
    (runtime, server)
}

#[test]
fn agents_ask_and_answer_and_tell_of_their_spans_as_under_the_real_sdk() {
    let recorded: &'static Recorded = Box::leak(Box::new(Recorded {
        agents: recorded(),
        asked: Mutex::default(),
    }));
    let (_runtime, server) = served(recorded);
    let url = PathBuf::from(server.uri());
    let file = folder().join("task_of_cases.py");
    let (_, report) = run_with(&file, &[], &[("CASES_URL", &url)]);
    let told = task(&report, "told", -1);
    assert_eq!(told["state"], "success", "{}", told["error"]);
    let here = server.uri().replace("http://", "");
    let came = told["xcoms"]["return_value"].to_string();
    let came: Value = serde_json::from_str(&came.replace(&here, "model")).unwrap();
    let asked = recorded.asked.lock().unwrap();
    let mut differences = Vec::new();
    for (name, agent) in &recorded.agents {
        let exchanges = agent["exchanges"].as_array().unwrap();
        let expected: Vec<Value> = exchanges
            .iter()
            .map(|one| json!({ "path": one["path"], "headers": one["headers"], "request": one["request"] }))
            .collect();
        let own = asked.get(name).cloned().unwrap_or_default();
        if sorted(&json!(own)) != sorted(&json!(expected)) {
            differences.push(format!(
                "{name} asked {:#}\nand the SDK {:#}",
                json!(own),
                json!(expected)
            ));
        }
        let (mine, its) = (sorted(&came[name]), sorted(agent));
        for part in ["outcome", "begun"] {
            if mine[part] != its[part] {
                differences.push(format!(
                    "{name}: {part} {:#}\nand of the SDK {:#}",
                    mine[part], its[part]
                ));
            }
        }
        if ended(&mine) != ended(&its) {
            differences.push(format!(
                "{name}: ended {:#?}\nand of the SDK {:#?}",
                ended(&mine),
                ended(&its)
            ));
        }
    }
    assert!(differences.is_empty(), "{}", differences.join("\n\n"));
    assert!(recorded.agents.len() >= 80, "{}", recorded.agents.len());
}

#[test]
fn a_module_of_the_dags_own_goes_over_the_sdk_of_its_name() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("agents")).unwrap();
    std::fs::write(
        folder.path().join("agents/__init__.py"),
        "KIND = 'secret'\n",
    )
    .unwrap();
    let file = folder.path().join("made.py");
    let source = "from airflow.sdk import DAG, task\nimport agents\n\nwith DAG('made'):\n    @task\n    def kind():\n        \
                  return agents.KIND\n    kind()\n";
    std::fs::write(&file, source).unwrap();
    let (_, report) = run_with(&file, &[], &[("HOME", Path::new("/nonexistent"))]);
    assert_eq!(
        task(&report, "kind", -1)["xcoms"]["return_value"],
        "secret",
        "{report:#}"
    );
}

#[test]
fn what_needs_a_shell_a_screen_or_a_sandbox_is_named_before_it_runs() {
    let source = r#"
from airflow.providers.common.ai.toolsets import SandboxToolset
from airflow.sdk import DAG, task

with DAG("made"):

    @task
    def shell():
        from agents import Agent, Runner, ShellTool

        return Runner.run_sync(Agent(name="a", tools=[ShellTool(executor=print)]), "Go.").final_output

    @task
    def screen():
        from agents import Agent, ComputerTool

        return Agent(name="a", tools=[ComputerTool(computer=None)])

    @task
    def voice():
        from agents.voice import VoicePipeline

        return VoicePipeline()

    @task
    def realtime():
        from agents.realtime import RealtimeAgent

        return RealtimeAgent(name="a")

    @task
    def sandbox():
        with SandboxToolset(None) as made:
            return made.airflow_tools()

    @task
    def plain():
        from agents import Agent, Runner, WebSearchTool, function_tool

        return Runner.run_sync(Agent(name="a", tools=[WebSearchTool()]), "Go.").final_output

    shell(), screen(), voice(), realtime(), sandbox(), plain()
"#;
    let (_folder, file) = dag_file(source, &[]);
    let output = updraft(&["check", "--json", &file.display().to_string()]);
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let tasks = report["files"][0]["dags"][0]["tasks"].as_array().unwrap();
    let reason = |task_id: &str| {
        let task = tasks
            .iter()
            .find(|task| task["task_id"] == task_id)
            .unwrap();
        task["reason"].as_str().unwrap_or_default().to_owned()
    };
    for (task_id, named) in [
        ("shell", "agents.ShellTool"),
        ("screen", "agents.ComputerTool"),
        ("voice", "agents.voice"),
        ("realtime", "agents.realtime"),
        ("sandbox", "SandboxToolset"),
        ("plain", ""),
    ] {
        let reason = reason(task_id);
        assert!(reason.contains(named), "{task_id}: {reason}");
        assert_eq!(reason.is_empty(), named.is_empty(), "{task_id}: {reason}");
    }
}
