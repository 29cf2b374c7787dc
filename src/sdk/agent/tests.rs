use futures::FutureExt as _;
use pretty_assertions::assert_eq;
use serde::Serialize;

use super::*;
use crate::model::scripted::Scripted;

/// A model that plays these turns.
fn model(turns: Value) -> Arc<dyn Model> {
    let text = json!({ "turns": turns }).to_string();
    Arc::new(Scripted::from_text(&text, "made up").unwrap())
}

#[derive(Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
struct Berth {
    quay: String,
    number: u32,
}

#[derive(Deserialize, JsonSchema)]
struct Ship {
    name: String,
}

fn find() -> Tool {
    Tool::new("find", "Finds a ship.", |ship: Ship| async move {
        match ship.name.as_str() {
            "Aurora" => Ok(Berth {
                quay: "A".to_owned(),
                number: 3,
            }),
            _ => Err(ToolError::Retry("there is no such ship".to_owned())),
        }
    })
}

#[tokio::test]
async fn a_structured_answer_is_asked_for_again_until_it_fits() {
    let model = model(json!([
        {"tool_calls": [{"name": "find", "args": {"name": "Borealis"}}]},
        {"tool_calls": [{"name": "find", "args": {"name": "Aurora"}}]},
        {"tool_calls": [{"name": "final_result", "args": {"quay": "A", "number": "three"}}]},
        {"tool_calls": [{"name": "final_result", "args": {"quay": "A", "number": 3}}]},
    ]));
    let agent = Agent::builder("harbour", model)
        .tool(find())
        .output::<Berth>()
        .build();
    let answer = agent.run("Where is the Aurora?").await.unwrap();
    assert_eq!(
        answer.output,
        Berth {
            quay: "A".to_owned(),
            number: 3
        }
    );
    assert_eq!((answer.usage.requests, answer.usage.tool_calls), (4, 1));
}

#[tokio::test]
async fn answers_that_are_no_objects_are_structured_too() {
    let model = model(json!([
        {"tool_calls": [{"name": "final_result", "args": {"response": [1, 2]}}]}
    ]));
    let agent = Agent::builder("counter", model)
        .output::<Vec<u32>>()
        .build();
    assert_eq!(agent.run("Count.").await.unwrap().output, [1, 2]);
}

#[tokio::test]
async fn a_conversation_is_handed_on_and_back_with_the_tools_of_who_has_it() {
    let triage = model(json!([
        {"tool_calls": [{"name": "transfer_to_pilot", "args": {}}]},
        {"text": "Berth A3, as the pilot says."},
    ]));
    let pilot = model(json!([
        {"tool_calls": [{"name": "find", "args": {"name": "Aurora"}}]},
        {"tool_calls": [{"name": "transfer_to_triage", "args": {}}]},
    ]));
    let pilot = Agent::builder("pilot", pilot)
        .instructions("You know the ships.")
        .handoff_to("triage")
        .tool(find())
        .build();
    let triage = Agent::builder("triage", triage)
        .instructions("You ask others.")
        .handoff(pilot)
        .build();
    let answer = triage.run("Where is the Aurora?").await.unwrap();
    assert_eq!(answer.output, "Berth A3, as the pilot says.");
    assert_eq!(answer.agent, "triage");
    let told: Vec<_> = answer
        .messages
        .iter()
        .filter_map(|message| match message {
            Message::Request(request) => Some(request.instructions.join(" ")),
            Message::Response(_) => None,
        })
        .collect();
    assert_eq!(
        told,
        [
            "You ask others.",
            "You know the ships.",
            "You know the ships.",
            "You ask others."
        ]
    );
}

#[tokio::test]
async fn an_agent_is_a_tool_of_another() {
    let inner = model(json!([{"text": "At quay A."}]));
    let outer = model(json!([
        {"tool_calls": [{"name": "ask_pilot", "args": {"input": "Where?"}}]},
        {"text": "At A."},
    ]));
    let pilot = Agent::builder("pilot", inner).build();
    let agent = Agent::builder("triage", outer)
        .tool(pilot.into_tool("ask_pilot", "Knows the ships."))
        .build();
    assert_eq!(agent.run("Where is she?").await.unwrap().output, "At A.");
}

#[tokio::test]
async fn guardrails_end_a_run_before_and_after_the_model() {
    let agent = |turns: Value| {
        Agent::builder("guarded", model(turns))
            .input_guardrail("no_pirates", |prompt| {
                async move {
                    match prompt.contains("treasure") {
                        true => Err("it is about treasure".to_owned()),
                        false => Ok(()),
                    }
                }
                .boxed()
            })
            .output_guardrail("polite", |answer: &String| {
                async move {
                    match answer.starts_with("Arr") {
                        true => Err("it is rude".to_owned()),
                        false => Ok(()),
                    }
                }
                .boxed()
            })
            .build()
    };
    let refused = agent(json!([])).run("Where is the treasure?").await;
    assert_eq!(
        refused.unwrap_err().to_string(),
        "the input guardrail no_pirates refuses the prompt: it is about treasure"
    );
    let refused = agent(json!([{"text": "Arr."}])).run("Hello.").await;
    assert_eq!(
        refused.unwrap_err().to_string(),
        "the output guardrail polite refuses the answer: it is rude"
    );
    let answer = agent(json!([{"text": "Hello."}])).run("Hello.").await;
    assert_eq!(answer.unwrap().output, "Hello.");
}

#[tokio::test]
async fn limits_and_settings_count() {
    let model = model(json!([{"tool_calls": [{"name": "find", "args": {"name": "Aurora"}}]}]));
    let limits = UsageLimits {
        request_limit: Some(1),
        ..UsageLimits::default()
    };
    let agent = Agent::builder("short", model)
        .tool(find())
        .limits(limits)
        .build();
    let error = agent.run("Where is the Aurora?").await.unwrap_err();
    assert!(
        matches!(error, RunError::Agent(AgentError::UsageLimitExceeded(_))),
        "{error}"
    );
}
