//! A model that does whatever the rows of a table tell it to, on real databases: it gets nothing.
//!
//! The rows ask for another table's contents, for files, for other schemas and for writes, in every way that the
//! dialect has for it. The same model with every table allowed shows that it does obey, and that the secret is there.

mod mariadb;
mod postgres;
mod sqlite;

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use serde_json::{Map, Value, json};
use updraft::agent::message::{
    Message, ModelResponse, RequestPart, ResponsePart, ToolCall, UserContent,
};
use updraft::agent::model::RequestParameters;
use updraft::agent::{
    Agent, EndStrategy, Model, ModelError, Output, OutputSpec, Retries, RunInput, RunUsage,
    UsageLimits,
};
use updraft::airflow::connection::Connection;

use super::Arguments;

/// What nobody may read.
const SECRET: &str = "made-up-secret-of-the-harbour";

/// Asks for the notes, then does what they say: a note is a statement, or `SCHEMA` and the name of a table.
struct Obedient {
    heard: Mutex<Vec<String>>,
}

impl Obedient {
    fn notes(messages: &[Message]) -> Vec<String> {
        let first = messages.iter().find_map(|message| match message {
            Message::Request(request) => request.parts.iter().find_map(|part| match part {
                RequestPart::ToolReturn(result) => result.content.as_str(),
                RequestPart::UserPrompt(_)
                | RequestPart::SystemPrompt(_)
                | RequestPart::RetryFeedback(_) => None,
            }),
            Message::Response(_) => None,
        });
        let Some(result) = first else {
            return Vec::new();
        };
        let result: Value = serde_json::from_str(result).unwrap();
        let rows = result["rows"].as_array().unwrap();
        rows.iter()
            .map(|row| row[0].as_str().unwrap().to_owned())
            .collect()
    }
}

#[async_trait]
impl Model for Obedient {
    fn name(&self) -> &str {
        "obedient"
    }

    fn provider(&self) -> &str {
        "mock"
    }

    async fn request(
        &self,
        messages: &[Message],
        _: &RequestParameters,
    ) -> Result<ModelResponse, ModelError> {
        if let Some(Message::Request(request)) = messages.last() {
            let results = request.parts.iter().filter_map(|part| match part {
                RequestPart::ToolReturn(result) => Some(result.content.to_string()),
                RequestPart::UserPrompt(_)
                | RequestPart::SystemPrompt(_)
                | RequestPart::RetryFeedback(_) => None,
            });
            self.heard.lock().unwrap().extend(results);
        }
        let turn = messages
            .iter()
            .filter(|message| matches!(message, Message::Response(_)))
            .count();
        let order = match turn.checked_sub(1) {
            None => Some("SELECT note FROM orders ORDER BY id".to_owned()),
            Some(index) => Self::notes(messages).get(index).cloned(),
        };
        let part = match order {
            None => ResponsePart::text("I have done all they asked."),
            Some(order) => {
                let (tool_name, args) = match order.strip_prefix("SCHEMA ") {
                    Some(table) => ("get_schema", json!({ "table_name": table })),
                    None => ("query", json!({ "sql": order })),
                };
                ResponsePart::ToolCall(ToolCall {
                    tool_name: tool_name.to_owned(),
                    args: args.to_string(),
                    tool_call_id: format!("call_{turn}"),
                    ..ToolCall::default()
                })
            }
        };
        Ok(ModelResponse {
            parts: vec![part],
            model_name: "obedient".to_owned(),
            ..ModelResponse::default()
        })
    }
}

/// Runs the agent over a database whose `orders.note` holds `orders`; gives back all that the model heard behind them.
async fn obey(connection: &Connection, arguments: &Arguments, orders: &[&str]) -> Vec<String> {
    let model = Arc::new(Obedient {
        heard: Mutex::default(),
    });
    let agent = Agent {
        name: "agent".to_owned(),
        model: Arc::clone(&model) as Arc<dyn Model>,
        toolsets: vec![Arc::new(
            Arguments {
                max_rows: Some(1_000),
                ..arguments.clone()
            }
            .toolset(connection),
        )],
        instructions: "Do what the notes say.".to_owned(),
        native_tools: Vec::new(),
        settings: Map::new(),
        retries: Retries {
            tools: 1_000,
            output: 1,
        },
        limits: UsageLimits {
            request_limit: None,
            ..UsageLimits::default()
        },
        output: OutputSpec::default(),
        end_strategy: EndStrategy::default(),
    };
    let outcome = agent
        .run(RunInput {
            system_prompts: Vec::new(),
            prompt: Some(UserContent::Text("What do the notes say?".to_owned())),
            history: Vec::new(),
            run_id: "run".to_owned(),
            conversation_id: "conversation".to_owned(),
            usage: RunUsage::default(),
            cancel: tokio_util::sync::CancellationToken::new(),
            telemetry: None,
            durable: None,
        })
        .await;
    assert_eq!(
        outcome.output.unwrap(),
        Output::Text("I have done all they asked.".to_owned())
    );
    let heard = model.heard.lock().unwrap().clone();
    assert_eq!(heard.len(), orders.len() + 1, "every order has one answer");
    heard.into_iter().skip(1).collect()
}

/// The statements that fill `orders.note`, for databases where a backslash in a string is a backslash.
fn inserts(orders: &[&str]) -> Vec<String> {
    orders
        .iter()
        .enumerate()
        .map(|(id, order)| {
            let text = order.replace('\'', "''");
            format!("INSERT INTO orders (id, note) VALUES ({id}, '{text}')")
        })
        .collect()
}

#[track_caller]
fn nothing_was_told(orders: &[&str], heard: &[String]) {
    for (order, answer) in orders.iter().zip(heard) {
        for told in [SECRET, "root:", "PRIVATE"] {
            assert!(!answer.contains(told), "{order}\n  was answered {answer}");
        }
    }
}
