//! `run_durably_sync`: what a retry takes from the journal of an agent of the OpenAI Agents SDK, and what it does again.

use std::sync::{Arc, Mutex};

use pretty_assertions::assert_eq;
use serde_json::{Value, json};
use wiremock::{Request, Respond, ResponseTemplate};

use crate::local_run::{dag_file, events, run_with, task};
use crate::openai_agents::served;

/// A model that follows the conversation: it calls the next tool of its list, and answers when there is none left.
pub struct Model {
    pub plan: Vec<Value>,
    /// Requests that are refused, by their number from 1.
    pub refuses: Vec<usize>,
    pub asked: Arc<Mutex<Vec<Value>>>,
}

impl Respond for Model {
    fn respond(&self, request: &Request) -> ResponseTemplate {
        let body: Value = request.body_json().unwrap();
        let mut asked = self.asked.lock().unwrap();
        asked.push(body.clone());
        if self.refuses.contains(&asked.len()) {
            return ResponseTemplate::new(500).set_body_string("gone");
        }
        let said = body["messages"].as_array().unwrap();
        let turn = said.iter().filter(|one| one["role"] == "assistant").count();
        let message = match self.plan.get(turn) {
            Some(Value::String(text)) => json!({ "role": "assistant", "content": text }),
            Some(calls) => {
                let calls = calls.as_array().unwrap().iter().enumerate();
                let calls: Vec<Value> = calls
                    .map(|(n, call)| {
                        json!({
                            "id": format!("call_{turn}_{n}"), "type": "function",
                            "function": { "name": call[0], "arguments": call[1].to_string() },
                        })
                    })
                    .collect();
                json!({ "role": "assistant", "content": null, "tool_calls": calls })
            }
            None => json!({ "role": "assistant", "content": "Done." }),
        };
        ResponseTemplate::new(200).set_body_json(json!({
            "id": "chatcmpl-1", "object": "chat.completion", "created": 1_790_000_000, "model": "scripted",
            "choices": [{ "index": 0, "message": message, "finish_reason": "stop" }],
            "usage": { "prompt_tokens": 10, "completion_tokens": 2, "total_tokens": 12 },
        }))
    }
}

/// A Dag whose task runs this code; its value and what it noted are the task's.
fn source(body: &str) -> String {
    let body = body.trim().replace('\n', "\n        ");
    format!(
        r#"
import json
import os

from airflow.sdk import DAG, Variable, get_current_context, task


def noted():
    return json.loads(Variable.get("noted", default="[]"))


def note(what):
    Variable.set("noted", json.dumps([*noted(), what]))


def first_try():
    return get_current_context()["ti"].try_number == 1


with DAG("made"):

    @task(retries=2, retry_delay=0)
    def durable():
        from agents import Agent, ModelSettings, OpenAIChatCompletionsModel, RunConfig, Runner, SQLiteSession
        from agents import function_tool, handoff, output_guardrail, GuardrailFunctionOutput
        from openai import AsyncOpenAI

        from airflow.providers.common.ai.durable.openai_agents import run_durably, run_durably_sync

        client = AsyncOpenAI(api_key="sk-made-up", base_url=os.environ["MODEL_URL"] + "/v1", max_retries=0)

        def model(name="small"):
            return OpenAIChatCompletionsModel(model=name, openai_client=client)

        def tool(name, fails=False, **options):
            @function_tool(name_override=name, **{{"failure_error_function": None, **options}})
            def made(n: int) -> str:
                note(f"{{name}} {{n}}")
                if fails and first_try():
                    raise RuntimeError(f"{{name}} broke")
                return f"{{name}} gave {{n}}"

            return made

        {body}

    durable()
"#
    )
}

struct Played {
    report: Value,
    asked: Vec<Value>,
}

impl Played {
    fn value(&self) -> &Value {
        let durable = task(&self.report, "durable", -1);
        assert_eq!(durable["state"], "success", "{:#}", self.report);
        &durable["xcoms"]["return_value"]
    }

    fn log(&self) -> Vec<&str> {
        events(task(&self.report, "durable", -1))
    }
}

fn play(body: &str, plan: &Value, refuses: &[usize]) -> Played {
    let asked: Arc<Mutex<Vec<Value>>> = Arc::default();
    let model = Model {
        plan: plan.as_array().unwrap().clone(),
        refuses: refuses.to_vec(),
        asked: Arc::clone(&asked),
    };
    let (_runtime, server) = served(model);
    let (_folder, file) = dag_file(&source(body), &[]);
    let url = server.uri();
    let (_, report) = run_with(&file, &[], &[("MODEL_URL", url.as_ref())]);
    let asked = asked.lock().unwrap().clone();
    Played { report, asked }
}

fn two_tools() -> Value {
    json!([[["tide", {"n": 1}]], [["wind", {"n": 2}]], "High and calm."])
}

const TWO_TOOLS: &str = r#"
agent = Agent(name="pilot", model=model(), tools=[tool("tide", TIDE), tool("wind", WIND)])
result = run_durably_sync(agent, "Tide and wind?", run_config=RunConfig(tracing_disabled=True))
return {"final": result.final_output, "noted": noted(), "requests": result.context_wrapper.usage.requests}
"#;

fn two_tools_that_fail(tide: &str, wind: &str) -> String {
    TWO_TOOLS.replace("TIDE", tide).replace("WIND", wind)
}

#[test]
fn a_try_that_fails_at_any_step_leaves_the_steps_before_it_to_the_retry() {
    let once = json!(["tide 1", "wind 2"]);
    // The step that fails in the first try, the requests of both tries, what the tools were called for, and the requests
    // that the retry counts: a replayed answer costs nothing.
    let cases = [
        ("nothing", vec![], "False", "False", 3, once.clone(), 3),
        (
            "the first request",
            vec![1],
            "False",
            "False",
            4,
            once.clone(),
            3,
        ),
        (
            "the first tool",
            vec![],
            "True",
            "False",
            3,
            json!(["tide 1", "tide 1", "wind 2"]),
            2,
        ),
        (
            "the second request",
            vec![2],
            "False",
            "False",
            4,
            once.clone(),
            2,
        ),
        (
            "the second tool",
            vec![],
            "False",
            "True",
            3,
            json!(["tide 1", "wind 2", "wind 2"]),
            1,
        ),
        ("the last request", vec![3], "False", "False", 4, once, 1),
    ];
    for (step, refuses, tide, wind, requests, noted, counted) in cases {
        let played = play(&two_tools_that_fail(tide, wind), &two_tools(), &refuses);
        let expected = json!({ "final": "High and calm.", "noted": noted, "requests": counted });
        assert_eq!(*played.value(), expected, "{step}");
        assert_eq!(
            played.asked.len(),
            requests,
            "{step}: {:#}",
            json!(played.asked)
        );
    }
}

#[test]
fn what_was_recorded_goes_when_the_run_has_succeeded_and_not_when_the_task_has() {
    let body = two_tools_that_fail("False", "False").replace(
        "return {",
        "note('done')\nif first_try():\n    raise RuntimeError('could not be written')\nreturn {",
    );
    let played = play(&body, &two_tools(), &[]);
    assert_eq!(
        played.value()["noted"],
        json!(["tide 1", "wind 2", "done", "tide 1", "wind 2", "done"])
    );
    assert_eq!(played.asked.len(), 6);
}

#[test]
fn parallel_calls_keep_their_places_and_only_the_one_that_raised_is_made_again() {
    let plan = json!([[["tide", {"n": 1}], ["wind", {"n": 2}], ["tide", {"n": 3}]], "All."]);
    let played = play(&two_tools_that_fail("False", "True"), &plan, &[]);
    let mut noted: Vec<&str> = played.value()["noted"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(Value::as_str)
        .collect();
    noted.sort_unstable();
    assert_eq!(
        noted.iter().filter(|one| **one == "wind 2").count(),
        2,
        "{noted:?}"
    );
    assert_eq!(
        noted.iter().filter(|one| **one == "tide 1").count(),
        1,
        "{noted:?}"
    );
    assert_eq!(played.asked.len(), 2);
}

#[test]
fn a_retry_that_asks_something_else_runs_live_from_there_on() {
    let body = two_tools_that_fail("False", "False").replace(
        "\"Tide and wind?\"",
        "\"Try \" + (\"one\" if first_try() else \"two\")",
    );
    let played = play(&body, &two_tools(), &[3]);
    assert_eq!(
        played.value()["noted"],
        json!(["tide 1", "wind 2", "tide 1", "wind 2"])
    );
    assert_eq!(played.asked.len(), 6);
    let log = played.log().join("\n");
    assert!(
        log.contains("the run took a different path from the previous attempt"),
        "{log}"
    );
}

#[test]
fn answers_that_failed_the_run_are_asked_for_again_from_the_last_request_on() {
    let body = r#"
@output_guardrail
def fine(ctx, agent, output):
    note(f"checked {output}")
    return GuardrailFunctionOutput(output_info=None, tripwire_triggered=first_try())

agent = Agent(name="pilot", model=model(), tools=[tool("tide")], output_guardrails=[fine])
return [run_durably_sync(agent, "Tide?").final_output, noted()]
"#;
    let played = play(body, &json!([[["tide", {"n": 1}]], "High."]), &[]);
    assert_eq!(
        *played.value(),
        json!(["High.", ["tide 1", "checked High.", "checked High."]])
    );
    assert_eq!(played.asked.len(), 3);
    let turns = r#"
agent = Agent(name="pilot", model=model(), tools=[tool("tide")])
return [run_durably_sync(agent, "Tide?", max_turns=1 if first_try() else 5).final_output, noted()]
"#;
    let played = play(turns, &json!([[["tide", {"n": 1}]], "High."]), &[]);
    assert_eq!(played.asked.len(), 3, "{:#}", played.report);
    assert_eq!(played.value()[0], "High.");
}

#[test]
fn a_failure_that_the_model_was_told_of_is_made_again_and_an_error_of_airflows_tools_is_not() {
    let body = r#"
from airflow.providers.common.ai.tools import AirflowTool, ToolResult
from airflow.providers.common.ai.tools.openai_agents import AirflowTools

async def look(arguments):
    note(f"look {arguments['n']}")
    return ToolResult(content="not there", is_error=True)

schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
told = tool("told", True, failure_error_function=lambda ctx, error: f"it says: {error}")
agent = Agent(name="pilot", model=model(), tools=[told, *AirflowTools(AirflowTool("look", "Looks.", schema, look))])
return [run_durably_sync(agent, "Look.").final_output, noted()]
"#;
    let plan = json!([[["look", {"n": 1}]], [["told", {"n": 2}]], "Seen."]);
    let played = play(body, &plan, &[3]);
    assert_eq!(
        *played.value(),
        json!(["Seen.", ["look 1", "told 2", "told 2"]])
    );
    // What the tool gave differs now, and so does the last request.
    assert_eq!(played.asked.len(), 4);
    let last = played.asked.last().unwrap()["messages"].as_array().unwrap();
    assert_eq!(last[2]["content"], "{\"error\": \"not there\"}");
    assert_eq!(last[4]["content"], "told gave 2");
}

#[test]
fn an_agent_as_a_tool_replays_as_one_call_and_agents_behind_handoffs_replay_too() {
    let body = r#"
pilot = Agent(name="pilot", model=model("pilot"), instructions="Pilot.", tools=[tool("tide")])
clerk = Agent(name="clerk", model=model("clerk"), tools=[tool("wind", True)])
lead = Agent(name="lead", model=model("lead"), tools=[pilot.as_tool("ask_pilot", "Ask.", failure_error_function=None)],
             handoffs=[clerk])
return [run_durably_sync(lead, "Go.").final_output, noted()]
"#;
    // The pilot's own conversation has two turns, the lead's and the clerk's four.
    let plan = json!([[["ask_pilot", {"input": "?"}]], [["transfer_to_clerk", {}]], [["wind", {"n": 2}]], "Calm."]);
    let asked_pilot = json!([[["tide", {"n": 1}]], "High."]);
    let played = play_with_pilot(body, &plan, &asked_pilot);
    assert_eq!(
        *played.value(),
        json!(["Calm.", ["tide 1", "wind 2", "wind 2"]])
    );
    assert_eq!(played.asked.len(), 6, "{:#}", json!(played.asked));
}

/// As `play`, with a plan of its own for the model `pilot`.
fn play_with_pilot(body: &str, plan: &Value, pilots: &Value) -> Played {
    struct Two(Model, Model);
    impl Respond for Two {
        fn respond(&self, request: &Request) -> ResponseTemplate {
            let body: Value = request.body_json().unwrap();
            if body["model"] == "pilot" {
                self.1.respond(request)
            } else {
                self.0.respond(request)
            }
        }
    }
    let asked: Arc<Mutex<Vec<Value>>> = Arc::default();
    let model = |plan: &Value| Model {
        plan: plan.as_array().unwrap().clone(),
        refuses: Vec::new(),
        asked: Arc::clone(&asked),
    };
    let two = Two(model(plan), model(pilots));
    let (_runtime, server) = served(two);
    let (_folder, file) = dag_file(&source(body), &[]);
    let url = server.uri();
    let (_, report) = run_with(&file, &[], &[("MODEL_URL", url.as_ref())]);
    let asked = asked.lock().unwrap().clone();
    Played { report, asked }
}

#[test]
fn what_always_runs_live_runs_again() {
    // A function that decides whether a call needs approval has to see the call.
    let approval = r#"
async def needed(ctx, arguments, call_id):
    return False

agent = Agent(name="pilot", model=model(), tools=[tool("tide", needs_approval=needed), tool("wind")])
return [run_durably_sync(agent, "Go.").final_output, noted()]
"#;
    let played = play(approval, &two_tools(), &[3]);
    assert_eq!(
        *played.value(),
        json!(["High and calm.", ["tide 1", "wind 2", "tide 1"]])
    );
    // The tools of an agent behind `handoff()`.
    let behind = r#"
clerk = Agent(name="clerk", model=model("clerk"), tools=[tool("tide")])
lead = Agent(name="lead", model=model("lead"), handoffs=[handoff(clerk)])
return [run_durably_sync(lead, "Go.").final_output, noted()]
"#;
    let plan = json!([[["transfer_to_clerk", {}]], [["tide", {"n": 1}]], "High."]);
    let played = play(behind, &plan, &[3]);
    assert_eq!(*played.value(), json!(["High.", ["tide 1", "tide 1"]]));
    // Everything, when the run has a session that knows of the failed try.
    let session = r#"
import json as j

class Kept(SQLiteSession):
    async def get_items(self, limit=None):
        return j.loads(Variable.get("session", default="[]"))

    async def add_items(self, items):
        Variable.set("session", j.dumps([*j.loads(Variable.get("session", default="[]")), *items]))

agent = Agent(name="pilot", model=model(), tools=[tool("tide")])
return [run_durably_sync(agent, "Go.", session=Kept("s")).final_output, noted()]
"#;
    let played = play(session, &json!([[["tide", {"n": 1}]], "High."]), &[2]);
    assert_eq!(played.asked.len(), 3, "{:#}", json!(played.asked));
}

#[test]
fn a_conversation_that_the_server_keeps_is_refused() {
    let body = r#"
import asyncio

agent = Agent(name="pilot", model=model())
told = []
for name in ("previous_response_id", "conversation_id", "auto_previous_response_id"):
    try:
        run_durably_sync(agent, "Go.", **{name: "x"})
    except ValueError as error:
        told.append(str(error))
result = asyncio.run(run_durably(agent, "Go."))
return [told, result.final_output]
"#;
    let played = play(body, &json!([]), &[]);
    let told = |name: &str| {
        format!(
            "run_durably() cannot replay a run that keeps its conversation on OpenAI's servers ({name}): a replayed \
             model call never reaches it."
        )
    };
    assert_eq!(
        *played.value(),
        json!([
            [
                told("previous_response_id"),
                told("conversation_id"),
                told("auto_previous_response_id")
            ],
            "Done."
        ])
    );
}

#[test]
fn secrets_do_not_reach_the_journal() {
    let body = r#"
from airflow.sdk.log import mask_secret

mask_secret("made-up-secret")

@function_tool(failure_error_function=None)
def tell() -> str:
    """Tells."""
    note("tell")
    return "it is made-up-secret"

agent = Agent(name="pilot", model=model(), tools=[tell])
result = run_durably_sync(agent, "Go.")
return [result.final_output, noted(), result.to_input_list()[2]["output"]]
"#;
    let played = play(body, &json!([[["tell", {}]], "Told."]), &[2]);
    assert_eq!(*played.value(), json!(["Told.", ["tell"], "it is ***"]));
    assert_eq!(played.asked.len(), 3);
}
