//! Capabilities of agents, and what else `agent_params` hold.

use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use crate::local_run::{dag_file, run, task};

/// Runs a Dag with this task, whose model says these turns; the report, and the first request.
fn play(task: &str, turns: &Value) -> (Value, Value) {
    let source = format!(
        "from airflow.providers.common.ai.operators.agent import AgentOperator\n\
         from airflow.sdk import DAG, task\n\
         from pydantic_ai import Agent\n\
         from pydantic_ai.capabilities import (\n    \
         CombinedCapability, Hooks, MCP, PrefixTools, Thinking, Toolset, ToolSearch, WebSearch\n)\n\
         from pydantic_ai.toolsets import FunctionToolset\n\n\
         def tide(port: str) -> str:\n    \"\"\"The tide at a port.\"\"\"\n    return f\"high at {{port}}\"\n\n\
         def berth(n: int) -> int:\n    \"\"\"A berth.\"\"\"\n    return n + 1\n\n\
         with DAG(\"made\"):\n{task}\n"
    );
    let (folder, file) = dag_file(
        &source,
        &[("made.transcript.json", json!({ "turns": turns }))],
    );
    let recording = folder.path().join("recording.jsonl");
    let (_, report) = run(&file, &["--record", &recording.display().to_string()]);
    let text = std::fs::read_to_string(&recording).unwrap_or_default();
    let first = text.lines().next().unwrap_or("null");
    let exchange: Value = serde_json::from_str(first).unwrap();
    (report, exchange["request"].clone())
}

fn ask(arguments: &str) -> String {
    format!("    AgentOperator(task_id=\"ask\", llm_conn_id=\"none\", prompt=\"Go.\", {arguments})")
}

fn names(request: &Value) -> Vec<&str> {
    let tools = request["tools"].as_array().unwrap();
    tools
        .iter()
        .map(|tool| tool["name"].as_str().unwrap())
        .collect()
}

#[test]
fn capabilities_come_to_settings_tools_of_the_provider_and_toolsets() {
    let capabilities = "capabilities=[Thinking(effort=\"high\"), WebSearch(max_uses=2, allowed_domains=[\"example.org\"]), \
         PrefixTools(wrapped=CombinedCapability([Toolset(FunctionToolset([tide])), Thinking(effort=\"low\")]), \
         prefix=\"port\"), ToolSearch()], toolsets=[FunctionToolset([berth])], \
         agent_params={\"model_settings\": {\"thinking\": False, \"temperature\": 0.5}}";
    let turns = json!([
        {"tool_calls": [{"name": "port_tide", "args": {"port": "north"}}]},
        {"text": "High."},
    ]);
    let (report, request) = play(&ask(capabilities), &turns);
    let ask = task(&report, "ask", -1);
    assert_eq!(ask["xcoms"]["return_value"], "High.", "{report:#}");
    assert_eq!(ask["xcoms"]["usage"]["tool_calls"], 1);
    assert_eq!(names(&request), ["berth", "port_tide"]);
    assert_eq!(
        request["settings"],
        json!({"thinking": "low", "temperature": 0.5})
    );
    assert_eq!(
        request["native_tools"],
        json!([{"web_search": {
            "search_context_size": null, "user_location": null, "blocked_domains": null,
            "allowed_domains": ["example.org"], "max_uses": 2,
        }}])
    );
}

#[test]
fn agent_params_may_hold_capabilities_and_tools_in_place_of_the_arguments() {
    let params =
        "agent_params={\"tools\": [tide], \"capabilities\": [Thinking()], \"name\": \"pilot\"}";
    let turns = json!([
        {"tool_calls": [{"name": "tide", "args": {"port": "north"}}]},
        {"text": "High."},
    ]);
    let (report, request) = play(&ask(params), &turns);
    let asked = task(&report, "ask", -1);
    assert_eq!(asked["xcoms"]["return_value"], "High.", "{report:#}");
    assert_eq!(asked["xcoms"]["usage"]["tool_calls"], 1);
    assert_eq!(request["settings"], json!({"thinking": true}));

    let both = "capabilities=[Thinking()], agent_params={\"capabilities\": [Thinking()]}";
    let (report, _) = play(&ask(both), &json!([]));
    let error = task(&report, "ask", -1)["error"].to_string();
    assert!(
        error
            .contains("Pass capabilities either as capabilities=... or in agent_params, not both."),
        "{error}"
    );
}

#[test]
fn a_capability_that_does_not_run_here_is_named() {
    for (capability, name) in [
        ("Hooks()", "the capability Hooks is not run natively yet"),
        (
            "Toolset(FunctionToolset([tide]), defer_loading=True)",
            "the capability Toolset(defer_loading=True) is not run natively yet",
        ),
        (
            "WebSearch(native=False)",
            "the capability WebSearch(native=False)",
        ),
        (
            "MCP(\"http://localhost:1/mcp\", native=True)",
            "the capability MCP(native=...)",
        ),
        ("PrefixTools(Hooks(), \"x\")", "the capability Hooks"),
    ] {
        let (report, _) = play(&ask(&format!("capabilities=[{capability}]")), &json!([]));
        let error = task(&report, "ask", -1)["error"].to_string();
        assert!(error.contains(name), "{capability}: {error}");
    }
}

#[test]
fn an_agent_of_dag_code_has_capabilities_too() {
    let body = "    @task\n    def ask():\n        \
        agent = Agent(\"openai-chat:gpt-5\", capabilities=[Toolset(FunctionToolset([tide])), Thinking(effort=\"low\")])\n        \
        return agent.run_sync(\"Go.\", model=PydanticAIHook(llm_conn_id=\"none\").get_conn()).output\n\n    ask()";
    let body = body.replace(
        "        agent",
        "        from airflow.providers.common.ai.hooks.pydantic_ai import PydanticAIHook\n        agent",
    );
    let turns = json!([
        {"tool_calls": [{"name": "tide", "args": {"port": "south"}}]},
        {"text": "High."},
    ]);
    let (report, request) = play(&body, &turns);
    assert_eq!(
        task(&report, "ask", -1)["xcoms"]["return_value"],
        "High.",
        "{report:#}"
    );
    assert_eq!(names(&request), ["tide"]);
    assert_eq!(request["settings"], json!({"thinking": "low"}));
}
