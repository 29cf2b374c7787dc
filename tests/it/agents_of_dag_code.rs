//! Agents that a task's function builds and runs itself.

use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use crate::dag_files::example_dags;
use crate::local_run::{dag_file, run, run_with, task};

fn returned(report: &Value, task_id: &str) -> Value {
    let task = task(report, task_id, -1);
    assert_eq!(task["state"], "success", "{report:#}");
    task["xcoms"]["return_value"].clone()
}

fn turns(turns: Value) -> [(&'static str, Value); 1] {
    [("made.transcript.json", json!({ "turns": turns }))]
}

const HARBOUR: &str = r#"
from airflow.providers.common.ai.hooks.pydantic_ai import PydanticAIHook
from airflow.sdk import DAG, get_current_context, task
from pydantic import BaseModel
from pydantic_ai import Agent, ModelRetry, RunContext


class Ship(BaseModel):
    """A ship."""

    name: str
    berth: int


with DAG("made"):

    @task
    def harbour():
        agent = PydanticAIHook(llm_conn_id="none").create_agent(
            output_type=Ship, instructions="Be brief.", deps_type=dict, retries=3, system_prompt="You are exact."
        )

        @agent.system_prompt
        def who():
            return "You are the harbour master."

        @agent.instructions
        async def dated(ctx: RunContext[dict]) -> str:
            return f"It is {ctx.deps['day']}, and the question was {ctx.prompt!r}."

        @agent.tool
        def berths(ctx: RunContext[dict], quay: str) -> list:
            """Free berths of a quay."""
            return [ctx.deps[quay], ctx.tool_name, get_current_context()["ti"].task_id]

        @agent.tool_plain
        async def tide(hour: int) -> str:
            if hour > 23:
                raise ModelRetry("a day has 24 hours")
            return "high"

        @agent.output_validator
        def is_known(ctx: RunContext[dict], ship: Ship) -> Ship:
            if ship.berth != ctx.deps["north"]:
                raise ModelRetry("that berth is taken")
            return ship

        first = agent.run_sync("Which ship?", deps={"north": 4, "day": "Monday"})
        brief = Agent(PydanticAIHook.get_hook("none").get_conn(), instructions="Say yes or no.")
        second = brief.run_sync("Is it big?", message_history=first.all_messages(), usage=first.usage)
        return {
            "ship": [type(first.output).__name__, first.output.name, first.output.berth],
            "kinds": [message.kind for message in second.all_messages()],
            "new": [[part.part_kind for part in message.parts] for message in second.new_messages()],
            "answer": [second.output, second.response.parts[0].content],
            "usage": [second.usage.requests, first.usage is second.usage],
            "same conversation": first.conversation_id == second.conversation_id,
            "names": [agent.name, brief.name],
        }

    harbour()
"#;

fn harbour_turns() -> Value {
    let call = |name: &str, args: Value| json!({ "name": name, "args": args });
    let ship = |berth: Value| {
        let args = json!({ "name": "Aurora", "berth": berth });
        json!({ "tool_calls": [call("final_result", args)] })
    };
    json!([
        { "tool_calls": [call("berths", json!({ "quay": "north" })), call("tide", json!({ "hour": 25 }))] },
        { "tool_calls": [call("tide", json!({ "hour": 3 }))] },
        ship(json!("x")),
        ship(json!(5)),
        ship(json!("4")),
        { "text": "Yes." },
    ])
}

#[test]
fn functions_of_the_task_are_tools_instructions_and_checks_of_its_agent() {
    let (folder, file) = dag_file(HARBOUR, &turns(harbour_turns()));
    let recording = folder.path().join("recording.jsonl");
    let recorded = recording.display().to_string();
    let (_, report) = run(&file, &["--record", &recorded]);
    let expected = json!({
        "ship": ["Ship", "Aurora", 4],
        "kinds": ["request", "response", "request", "response", "request", "response", "request", "response",
            "request", "response", "request", "request", "response"],
        "new": [["user-prompt"], ["text"]],
        "answer": ["Yes.", "Yes."],
        "usage": [6, true],
        "same conversation": true,
        "names": ["agent", "brief"],
    });
    assert_eq!(returned(&report, "harbour"), expected);

    let text = std::fs::read_to_string(&recording).unwrap();
    let exchanges: Vec<Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(exchanges.len(), 6, "{text}");
    let first = &exchanges[0]["request"]["messages"][0]["request"];
    assert_eq!(
        *first,
        json!({
            "parts": [
                { "system_prompt": "You are exact." },
                { "system_prompt": "You are the harbour master." },
                { "user_prompt": "Which ship?" },
            ],
            "instructions": ["Be brief.", "It is Monday, and the question was 'Which ship?'."],
        })
    );
    for words in [
        "[4,\"berths\",\"harbour\"]",
        "a day has 24 hours",
        "that berth is taken",
        "Free berths of a quay.",
    ] {
        assert!(text.contains(words), "{words} is not in {text}");
    }
    assert!(!exchanges[5].to_string().contains("Be brief."));

    // The recording answers in the model's place, run after run.
    std::fs::remove_file(folder.path().join("made.transcript.json")).unwrap();
    let (_, report) = run(&file, &["--replay", &recorded]);
    assert_eq!(returned(&report, "harbour"), expected);
    std::fs::write(
        &recording,
        format!("{text}{}\n", text.lines().last().unwrap()),
    )
    .unwrap();
    let (status, report) = run(&file, &["--replay", &recorded]);
    assert_eq!(status, 1, "{report:#}");
}

#[test]
fn what_ends_a_run_is_raised_where_it_was_asked_for() {
    let source = r#"
from airflow.exceptions import AirflowSkipException
from airflow.providers.common.ai.hooks.pydantic_ai import PydanticAIHook
from airflow.sdk import DAG, task
from pydantic_ai import Agent, UsageLimitExceeded, UsageLimits, UserError, UnexpectedModelBehavior


class Storm(Exception):
    pass


def weather(place: str) -> str:
    raise Storm(place)


def harbour_is_closed() -> str:
    raise AirflowSkipException("closed")


with DAG("made"):

    @task
    def raises():
        agent = PydanticAIHook(llm_conn_id="none").create_agent(instructions="-", tools=[weather], retries=0)
        told = []
        for limits, kind in ((None, Storm), (UsageLimits(request_limit=0), UsageLimitExceeded)):
            try:
                agent.run_sync("Go.", usage_limits=limits)
            except kind as error:
                told.append(f"{kind.__name__}: {error}")
        try:
            Agent(instructions="-").run_sync("Go.")
        except UserError as error:
            told.append(str(error))
        try:
            agent.run_sync("Go.", toolsets=None)
        except UnexpectedModelBehavior as error:
            told.append(str(error))
        try:
            agent.run_sync("Go.", foo=1)
        except TypeError as error:
            told.append(str(error))
        try:
            Agent("openai:gpt-5").run_sync("Go.")
        except ValueError as error:
            told.append("OPENAI_API_KEY" in str(error))
        return told

    @task
    def skips():
        PydanticAIHook(llm_conn_id="none").create_agent(instructions="-", tools=[harbour_is_closed]).run_sync("Go.")

    raises(); skips()
"#;
    let call = |name: &str, args: Value| json!({ "tool_calls": [{ "name": name, "args": args }] });
    let transcript = json!({
        "raises": { "turns": [call("weather", json!({ "place": "north" })), call("nope", json!({}))] },
        "skips": { "turns": [call("harbour_is_closed", json!({}))] },
    });
    let (_folder, file) = dag_file(source, &[("made.transcript.json", transcript)]);
    let (_, report) = run(&file, &[]);
    assert_eq!(
        returned(&report, "raises"),
        json!([
            "Storm: north",
            "UsageLimitExceeded: The next request would exceed the request_limit of 0. Consider raising the limit, or see the \
             docs on usage limits for budget-aware patterns: \
             https://pydantic.dev/docs/ai/core-concepts/agent/#usage-limits",
            "`model` must either be set on the agent or included when calling it.",
            "Tool 'nope' exceeded max retries count of 0. Consider raising the retry limit, or see the docs on tool \
             retries: https://pydantic.dev/docs/ai/tools-toolsets/tools-advanced/#tool-retries",
            "AbstractAgent.run_sync() got an unexpected keyword argument 'foo'",
            true,
        ])
    );
    assert_eq!(task(&report, "skips", -1)["state"], "skipped", "{report:#}");
}

#[test]
fn toolsets_of_the_worker_and_of_the_dag_serve_an_agent_of_dag_code() {
    let source = r#"
import asyncio
from pathlib import Path
from airflow.providers.common.ai.hooks.pydantic_ai import PydanticAIHook
from airflow.providers.common.ai.toolsets import ObjectStorageToolset
from airflow.sdk import DAG, task
from pydantic_ai.toolsets import WrapperToolset


class Loud(WrapperToolset):
    async def call_tool(self, name, tool_args, ctx, tool):
        return f"{ctx.deps}: {await super().call_tool(name, tool_args, ctx, tool)}".upper()


with DAG("made"):

    @task
    def reads():
        files = ObjectStorageToolset(f"file://{Path(__file__).parent}")
        agent = PydanticAIHook(llm_conn_id="none").create_agent(
            instructions="-", toolsets=[Loud(files).prefixed("loud"), files]
        )
        async def both():
            return (await agent.run("Go.", deps="deps")).output
        result = agent.run_sync("Go.", deps="deps")
        contents = [part.content for m in result.all_messages() for part in m.parts if part.part_kind == "tool-return"]
        return [asyncio.run(both()), contents]

    reads()
"#;
    let call = |name: &str| json!({ "name": name, "args": { "path": "note.txt" } });
    let (folder, file) = dag_file(
        source,
        &turns(json!([
            { "tool_calls": [call("loud_read_file"), call("read_file")] },
            { "text": "Read." },
            { "text": "Again." },
        ])),
    );
    std::fs::write(folder.path().join("note.txt"), "Fog.\n").unwrap();
    let (_, report) = run(&file, &[]);
    assert_eq!(
        returned(&report, "reads"),
        json!(["Again.", ["DEPS: FOG.", "Fog."]])
    );
}

/// The provider's own examples, as they are installed.
#[test]
fn the_documents_own_agents_in_tasks_run_unmodified() {
    let example = example_dags().join("example_pydantic_ai_hook.py");
    let folder = tempfile::tempdir().unwrap();
    let transcript = folder.path().join("transcript.json");
    let whole = json!({
        "generate_summary": { "turns": [{ "text": "Short." }] },
        "generate_sql": { "turns": [{ "tool_calls": [{ "name": "final_result",
            "args": { "query": "SELECT 1", "explanation": "One." } }] }] },
        "analyze_revenue": { "turns": [{ "tool_calls": [{ "name": "list_tables", "args": {} }] }, { "text": "Ada." }] },
        "summarize_from_spec": { "turns": [{ "text": "Brief." }] },
        "summarize_with_additional_instructions": { "turns": [{ "text": "Briefer." }] },
    });
    std::fs::write(&transcript, whole.to_string()).unwrap();
    let database = folder.path().join("shop.db");
    std::fs::write(&database, "").unwrap();
    let connection = json!({ "conn_type": "sqlite", "host": database }).to_string();
    let env = [
        ("UPDRAFT_TRANSCRIPT", transcript.as_path()),
        (
            "AIRFLOW_CONN_MY_DATABASE",
            std::path::Path::new(&connection),
        ),
    ];
    for (dag_id, task_id, expected) in [
        (
            "example_pydantic_ai_hook",
            "generate_summary",
            json!("Short."),
        ),
        (
            "example_pydantic_ai_structured_output",
            "generate_sql",
            json!({ "query": "SELECT 1", "explanation": "One." }),
        ),
        (
            "example_task_with_toolsets",
            "analyze_revenue",
            json!("Ada."),
        ),
        (
            "example_pydantic_ai_spec_file",
            "summarize_from_spec",
            json!("Brief."),
        ),
        (
            "example_pydantic_ai_spec_file",
            "summarize_with_additional_instructions",
            json!("Briefer."),
        ),
    ] {
        let (_, report) = run_with(&example, &[task_id, "--dag-id", dag_id], &env);
        assert_eq!(returned(&report, task_id), expected, "{task_id}");
    }
}
