//! `AirflowTools`: Airflow's toolsets for an agent of the OpenAI Agents SDK, in the words of the provider's documentation.

use std::path::Path;
use std::sync::{Arc, Mutex};

use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use crate::dag_files::example_dags;
use crate::local_run::{events, repository, run_with, task};
use crate::openai_agents::served;
use crate::openai_agents_durable::Model;

/// A database with customers, and a folder of reports beside a payroll.
fn data(folder: &Path) -> Value {
    let database = folder.join("crm.db");
    rusqlite::Connection::open(&database)
        .unwrap()
        .execute_batch(
            "CREATE TABLE customers (name TEXT, arr INTEGER); INSERT INTO customers VALUES ('Ada', 5), ('Bob', 7);
             CREATE TABLE salaries (employee TEXT, salary INTEGER);",
        )
        .unwrap();
    std::fs::create_dir_all(folder.join("reports/finance")).unwrap();
    std::fs::write(folder.join("reports/finance/q1.md"), "Revenue: 12").unwrap();
    json!({
        "crm": { "conn_type": "sqlite", "host": database },
        "sql_default": { "conn_type": "sqlite", "host": database },
        "keys": { "conn_type": "generic", "password": "made-up-secret" },
    })
}

struct Played {
    report: Value,
    asked: Vec<Value>,
}

impl Played {
    fn value(&self, task_id: &str) -> Value {
        let played = task(&self.report, task_id, -1);
        assert_eq!(played["state"], "success", "{:#}", self.report);
        played["xcoms"]["return_value"].clone()
    }

    /// What the tools gave, as the last request tells it.
    fn given(&self) -> Vec<&str> {
        let messages = self.asked.last().unwrap()["messages"].as_array().unwrap();
        let tools = messages.iter().filter(|one| one["role"] == "tool");
        tools.map(|one| one["content"].as_str().unwrap()).collect()
    }
}

fn play_file(file: &Path, connections: &Value, plan: &Value) -> Played {
    let asked: Arc<Mutex<Vec<Value>>> = Arc::default();
    let model = Model {
        plan: plan.as_array().unwrap().clone(),
        refuses: Vec::new(),
        asked: Arc::clone(&asked),
    };
    let (_runtime, server) = served(model);
    let mut connections = connections.clone();
    let url = format!("{}/v1", server.uri());
    connections["openai_default"] =
        json!({ "conn_type": "openai", "host": url, "password": "sk-made-up" });
    std::fs::write(
        file.with_extension("connections.json"),
        connections.to_string(),
    )
    .unwrap();
    let folder = file.parent().unwrap();
    let (_, report) = run_with(file, &[], &[("MODEL_URL", url.as_ref()), ("DATA", folder)]);
    let asked = asked.lock().unwrap().clone();
    Played { report, asked }
}

fn play(body: &str, plan: &Value) -> Played {
    let folder = tempfile::tempdir().unwrap();
    let connections = data(folder.path());
    let body = body.trim().replace('\n', "\n        ");
    let source = format!(
        r#"
import os

from airflow.sdk import DAG, BaseHook, task

with DAG("made"):

    @task
    def ask():
        from agents import Agent, OpenAIChatCompletionsModel, Runner
        from openai import AsyncOpenAI

        from airflow.providers.common.ai.tools import AirflowTool, ToolCallError, ToolResult
        from airflow.providers.common.ai.tools.openai_agents import AirflowTools
        from airflow.providers.common.ai.toolsets import MCPToolset, ObjectStorageToolset, SQLToolset

        client = AsyncOpenAI(api_key="sk-made-up", base_url=os.environ["MODEL_URL"], max_retries=0)
        model = OpenAIChatCompletionsModel(model="small", openai_client=client)
        {body}

    ask()
"#
    );
    let file = folder.path().join("made.py");
    std::fs::write(&file, source).unwrap();
    play_file(&file, &connections, plan)
}

const HINT: &str = "Use the list_tables and get_schema tools to inspect the database, then fix the query and try again.";

fn query(sql: &str) -> Value {
    json!([["query", { "sql": sql }]])
}

#[test]
fn the_model_is_told_what_it_can_mend_and_reads_what_the_database_says() {
    let body = r#"
agent = Agent(name="analyst", model=model, tools=AirflowTools(SQLToolset(db_conn_id="crm")))
return Runner.run_sync(agent, "Which customer has the highest ARR?").final_output
"#;
    let plan = json!([
        query("SELECT revenue FROM customers"),
        query("SELECT name FROM customers ORDER BY arr DESC LIMIT 1"),
        query("DELETE FROM customers"),
        [["list_tables", {}]],
        "Bob.",
    ]);
    let played = play(body, &plan);
    assert_eq!(played.value("ask"), "Bob.");
    assert_eq!(
        played.given()[..3],
        [
            format!("{{\"error\": \"The query tool failed: no such column: revenue\\n{HINT}\"}}"),
            r#"{"columns":["name"],"rows":[["Bob"]],"row_count":1}"#.to_owned(),
            format!(
                "{{\"error\": \"The query tool failed: Statement type 'Delete' is not allowed. Allowed types: Select, \
                 Union, Intersect, Except, Describe, Show\\n{HINT}\"}}"
            ),
        ]
    );
    assert!(played.given()[3].contains("customers"));
    assert!(
        played
            .report
            .to_string()
            .contains("::group::Tool call: query")
    );
    let log = events(task(&played.report, "ask", -1)).join("\n");
    assert!(log.contains("Tool query returned an error in 0."), "{log}");
    assert!(log.contains("Tool list_tables returned in 0."), "{log}");
    let tools = played.asked[0]["tools"].as_array().unwrap();
    assert_eq!(
        tools[0]["function"],
        json!({
            "name": "list_tables", "description": "List available table names in the database.",
            "parameters": { "type": "object", "properties": {} }, "strict": false,
        })
    );
}

#[test]
fn a_tool_that_keeps_failing_fails_the_task_with_its_own_error() {
    let body = r#"
agent = Agent(name="analyst", model=model, tools=AirflowTools(SQLToolset(db_conn_id="crm")))
try:
    Runner.run_sync(agent, "Which?")
except ToolCallError as error:
    first = str(error)
lead = Agent(name="lead", model=model, tools=AirflowTools(SQLToolset(db_conn_id="crm", max_retries=3)))
try:
    Runner.run_sync(lead, "Which?", max_turns=3)
except Exception as error:
    second = f"{type(error).__name__}: {error}"
Runner.run_sync(agent, "Which?")
"#;
    let plan = json!(vec![query("SELECT revenue FROM customers"); 9]);
    let played = play(body, &plan);
    let ask = task(&played.report, "ask", -1);
    assert_eq!(ask["state"], "failed");
    let text = format!(
        "query kept failing after 1 correction(s): The query tool failed: no such column: revenue\n{HINT}"
    );
    assert!(
        ask["error"].as_str().unwrap().contains(&text),
        "{}",
        ask["error"]
    );
    // Two requests of the agent, three of the one with more patience, and two of the agent's next run.
    assert_eq!(played.asked.len(), 7);
}

#[test]
fn connections_that_are_missing_are_told_like_any_other_error_of_a_database() {
    let body = r#"
agent = Agent(name="analyst", model=model, tools=AirflowTools(SQLToolset(db_conn_id="crm_missing")))
return Runner.run_sync(agent, "Which?").final_output
"#;
    let played = play(body, &json!([[["list_tables", {}]], "None."]));
    assert_eq!(
        played.given(),
        [format!(
            "{{\"error\": \"The list_tables tool failed: The conn_id `crm_missing` isn't defined\\n{HINT}\"}}"
        )]
    );
}

#[test]
fn a_refusal_that_is_final_is_told_and_not_counted() {
    let body = r#"
warehouse = SQLToolset(db_conn_id="crm", allowed_tables=["customers"], max_rows=100)
reports = ObjectStorageToolset("file://" + os.environ["DATA"] + "/reports/finance/")
agent = Agent(name="revenue_analyst", model=model, tools=AirflowTools(warehouse, reports))
return Runner.run_sync(agent, "Revenue?").final_output
"#;
    let outside = json!([["read_file", { "path": "../payroll/salaries.csv" }]]);
    let plan = json!([
        outside, outside, outside,
        query("SELECT employee, salary FROM salaries"),
        [["read_file", { "path": "q1.md" }]],
        "12",
    ]);
    let played = play(body, &plan);
    assert_eq!(played.value("ask"), "12");
    let refused =
        r#"{"error": "'../payroll/salaries.csv' leaves the storage root; '..' is not allowed."}"#;
    let given = played.given();
    assert_eq!(given[..3], [refused; 3]);
    assert_eq!(
        given[3],
        format!(
            "{{\"error\": \"The query tool failed: Query references tables that are not in the allowed tables list: \
             salaries. Use list_tables to see the allowed tables.\\n{HINT}\"}}"
        )
    );
    assert!(given[4].contains("Revenue: 12"), "{}", given[4]);
}

#[test]
fn functions_of_ones_own_are_masked_and_say_what_the_model_can_mend() {
    let body = r#"
secret = BaseHook.get_connection("keys").password

async def lookup(arguments: dict) -> ToolResult:
    if arguments["customer_id"] == 0:
        return ToolResult(content=f"no customer 0 for {secret}", is_error=True)
    if arguments["customer_id"] == 9:
        raise KeyError(secret)
    return ToolResult(content={"id": arguments["customer_id"], "token": [secret]})

lookup_customer = AirflowTool(
    name="lookup_customer",
    description="Look up one customer in the CRM by id.",
    parameters={"type": "object", "properties": {"customer_id": {"type": "integer"}}, "required": ["customer_id"]},
    function=lookup,
)
agent = Agent(name="support", model=model, tools=AirflowTools(SQLToolset(db_conn_id="crm"), lookup_customer))
try:
    Runner.run_sync(agent, "Look.")
except ToolCallError as error:
    return [str(error), error.__cause__ is None, isinstance(lookup_customer, AirflowTool)]
"#;
    let call = |id: u32| json!([["lookup_customer", { "customer_id": id }]]);
    let raw = json!([["lookup_customer", [1]]]);
    let played = play(body, &json!([call(7), call(0), call(0), raw, call(9)]));
    assert_eq!(
        played.given(),
        [
            r#"{"id": 7, "token": ["***"]}"#,
            r#"{"error": "no customer 0 for ***"}"#,
            r#"{"error": "no customer 0 for ***"}"#,
            r#"{"error": "The arguments must be a JSON object."}"#,
        ]
    );
    assert_eq!(
        played.value("ask"),
        json!(["lookup_customer failed: KeyError: '***'", true, true])
    );
}

#[test]
fn what_airflow_tools_can_not_take_is_refused_when_they_are_built() {
    let body = r#"
told = []
for make in (
    lambda: AirflowTools(SQLToolset(db_conn_id="crm"), SQLToolset(db_conn_id="crm")),
    lambda: AirflowTools(MCPToolset("weather")),
    lambda: AirflowTools(SQLToolset(db_conn_id="crm").filtered(lambda ctx, tool: True)),
    lambda: AirflowTools(SQLToolset(db_conn_id="crm").approval_required()),
):
    try:
        make()
    except Exception as error:
        told.append(f"{type(error).__module__}.{type(error).__name__}: {error}")
return told
"#;
    let played = play(body, &json!([]));
    assert_eq!(
        played.value("ask"),
        json!([
            "builtins.ValueError: More than one tool is named check_query, get_schema, list_tables, query. Give the \
             toolsets different tool_prefix values, where they take one, so the model can call each of them.",
            "airflow.providers.common.ai.exceptions.MCPToolsetNotSupportedError: MCPToolset works in Pydantic AI agents \
             and through the LangChain bridge, not through AirflowTools. Pass the server to the agent's mcp_servers with \
             one of the SDK's MCPServer classes, such as MCPServerStreamableHttp, instead.",
            "builtins.AttributeError: 'FilteredToolset' object has no attribute 'airflow_tools'",
            "builtins.AttributeError: 'ApprovalRequiredToolset' object has no attribute 'airflow_tools'",
        ])
    );
}

#[test]
fn an_mcp_server_is_the_agents_for_a_block() {
    let body = r#"
import asyncio
from agents.mcp import MCPServerStdio, create_static_tool_filter

async def go():
    kept = create_static_tool_filter(allowed_tool_names=["hello", "calculate"])
    params = {"command": "PYTHON", "args": ["SCRIPT"]}
    server = MCPServerStdio(params=params, client_session_timeout_seconds=60, tool_filter=kept, name="weather")
    agent = Agent(name="weather", model=model, mcp_servers=[server])
    try:
        await Runner.run(agent, "Hello?")
    except Exception as error:
        before = f"{type(error).__name__}: {error}"
    async with server:
        return [before, (await Runner.run(agent, "Hello?")).final_output]

return asyncio.run(go())
"#;
    let script = repository().join("tests/servers/mcp_weather.py");
    let body = body
        .replace("PYTHON", &crate::mcp::python())
        .replace("SCRIPT", &script.display().to_string());
    let plan = json!([
        [["hello", { "name": "Ada" }], ["calculate", { "base": 2, "exponent": 5 }]],
        "Hello and 32.",
    ]);
    let played = play(&body, &plan);
    assert_eq!(
        played.value("ask"),
        json!([
            "UserError: Server not initialized. Make sure you call `connect()` first.",
            "Hello and 32."
        ])
    );
    let tools = played.asked[0]["tools"].as_array().unwrap();
    let names: Vec<&Value> = tools.iter().map(|tool| &tool["function"]["name"]).collect();
    assert_eq!(names, ["hello", "calculate"]);
    let messages = played.asked[1]["messages"].as_array().unwrap();
    assert_eq!(
        messages[2]["content"],
        json!([{ "type": "text", "text": "Hello, Ada!" }])
    );
    assert_eq!(messages[3]["content"][0]["text"], "32");
}

#[test]
fn the_providers_examples_run_as_they_are() {
    for (example, task_id) in [
        ("example_openai_agents_agent", "run_openai_agent"),
        ("example_openai_agents_durable", "run_durable_openai_agent"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let connections = data(folder.path());
        let file = folder.path().join(format!("{example}.py"));
        std::fs::copy(example_dags().join(format!("{example}.py")), &file).unwrap();
        let plan = json!([
            [["list_tables", {}]],
            query("SELECT name FROM customers ORDER BY arr DESC LIMIT 1"),
            "Bob has the highest ARR.",
        ]);
        let played = play_file(&file, &connections, &plan);
        assert_eq!(
            played.value(task_id),
            "Bob has the highest ARR.",
            "{example}"
        );
        assert_eq!(played.asked.len(), 3);
        assert!(played.given()[1].contains("Bob"), "{:?}", played.given());
    }
}
