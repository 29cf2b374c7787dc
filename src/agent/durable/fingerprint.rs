//! What a step asked, as a digest: a step is replayed only where the same was asked.

use std::sync::Arc;

use aws_lc_rs::digest::{SHA256, digest};
use serde_json::{Map, Value, json};

use crate::agent::message::Message;
use crate::agent::model::{Model, RequestParameters};
use crate::airflow::python_text::{JsonStyle, dumps};

/// What the names of settings begin with that change how a request travels, or what of it the provider keeps for the
/// next, and not what is answered.
const NOT_ASKED: [&str; 4] = [
    "timeout",
    "anthropic_cache",
    "bedrock_cache",
    "openrouter_cache",
];

/// What of a model request is the same on every attempt: secrets are masked, folders of one attempt have one name.
pub type RequestText = Arc<dyn Fn(Value) -> Value + Send + Sync>;

/// Of a tool call: the provider's own digest, so it can be told from outside which call a record is of.
pub(super) fn of_tool_call(name: &str, args: &Map<String, Value>, tool_call_id: &str) -> String {
    hex_digest(&json!({ "name": name, "args": args, "tool_call_id": tool_call_id }))
}

/// Of a model request: everything that can change the answer.
pub(super) fn of_model_request(
    model: &dyn Model,
    messages: &[Message],
    parameters: &RequestParameters,
    same_everywhere: &RequestText,
) -> String {
    let mut settings = parameters.settings.clone();
    settings.retain(|name, value| {
        !value.is_null() && !NOT_ASKED.iter().any(|prefix| name.starts_with(prefix))
    });
    let mut messages = json!(messages);
    for message in messages.as_array_mut().into_iter().flatten() {
        // The time at which an answer came says nothing about what was asked.
        if let Some(response) = message.get_mut("response").and_then(Value::as_object_mut) {
            response.remove("timestamp");
        }
    }
    let asked = same_everywhere(json!({
        "messages": messages,
        "params": {
            "tools": parameters.tools,
            "output_tools": parameters.output_tools,
            "output_object": parameters.output_object,
            "allow_text_output": parameters.allow_text_output,
        },
    }));
    hex_digest(&json!({
        "model": format!("{}:{}", model.provider(), model.name()),
        "settings": settings,
        "asked": asked,
    }))
}

/// SHA-256 of `json.dumps(value, sort_keys=True)`.
fn hex_digest(value: &Value) -> String {
    let text = dumps(&sorted(value), JsonStyle::LOOSE);
    let sum = digest(&SHA256, text.as_bytes());
    sum.as_ref()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

fn sorted(value: &Value) -> Value {
    match value {
        Value::Array(items) => items.iter().map(sorted).collect(),
        Value::Object(map) => {
            let mut entries: Vec<(&String, &Value)> = map.iter().collect();
            // Python sorts by code points, which UTF-8 keeps in order.
            entries.sort_by_key(|(key, _)| key.as_str());
            let entries = entries.into_iter();
            entries
                .map(|(key, item)| (key.clone(), sorted(item)))
                .collect()
        }
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use async_trait::async_trait;
    use pretty_assertions::assert_eq;

    use super::*;
    use crate::agent::ModelError;
    use crate::agent::message::{ModelRequest, ModelResponse, RequestPart, UserContent};

    struct Named(&'static str);

    #[async_trait]
    impl Model for Named {
        fn name(&self) -> &str {
            self.0
        }

        fn provider(&self) -> &str {
            "openai"
        }

        async fn request(
            &self,
            _: &[Message],
            _: &RequestParameters,
        ) -> Result<ModelResponse, ModelError> {
            Err(ModelError::Connection("nobody is there".to_owned()))
        }
    }

    #[test]
    fn the_digest_of_a_tool_call_is_the_providers() {
        let args = |value: Value| value.as_object().cloned().unwrap();
        assert!(
            of_tool_call("list_tables", &args(json!({})), "a").starts_with("8e6e2664eb08"),
            "the digest that the Python provider writes"
        );
        // hashlib.sha256(json.dumps({...}, sort_keys=True).encode()).hexdigest(), of Python 3.11.
        assert_eq!(
            of_tool_call(
                "query",
                &args(json!({"sql": "SELECT 'ß'", "b": {"z": 1.50, "a": [1, null]}})),
                "c1"
            ),
            "fff3b222742daf05f289da03d66afd429014992ea0aca5bbe94d15f8f9b3dfa8"
        );
    }

    fn prompt(text: &str) -> Vec<Message> {
        vec![Message::Request(ModelRequest {
            parts: vec![RequestPart::UserPrompt(UserContent::Text(text.to_owned()))],
            instructions: vec!["Be brief.".to_owned()],
            timestamp: "2026-01-01T00:00:00Z".to_owned(),
        })]
    }

    fn answered(timestamp: &str) -> Vec<Message> {
        let mut messages = prompt("How many?");
        messages.push(Message::Response(Box::new(ModelResponse {
            timestamp: timestamp.to_owned(),
            ..ModelResponse::default()
        })));
        messages
    }

    #[test]
    fn a_model_request_is_told_from_another_by_what_can_change_its_answer() {
        let same: RequestText = Arc::new(|value| value);
        let of = |model: &str, messages: &[Message], settings: Value| {
            let parameters = RequestParameters {
                settings: settings.as_object().cloned().unwrap(),
                ..RequestParameters::default()
            };
            let model: &'static str = if model == "gpt-5" { "gpt-5" } else { "gpt-6" };
            of_model_request(&Named(model), messages, &parameters, &same)
        };
        let asked = of("gpt-5", &prompt("How many?"), json!({"temperature": 0.5}));
        let again =
            json!({"timeout": 3, "temperature": 0.5, "top_p": null, "anthropic_cache": true});
        assert_eq!(of("gpt-5", &prompt("How many?"), again), asked);
        for other in [
            of("gpt-6", &prompt("How many?"), json!({"temperature": 0.5})),
            of("gpt-5", &prompt("How much?"), json!({"temperature": 0.5})),
            of("gpt-5", &prompt("How many?"), json!({"temperature": 0.6})),
            of("gpt-5", &answered("1"), json!({"temperature": 0.5})),
        ] {
            assert_ne!(other, asked);
        }
        assert_eq!(
            of("gpt-5", &answered("1"), json!({})),
            of("gpt-5", &answered("2"), json!({}))
        );
    }

    #[test]
    fn what_differs_between_attempts_can_be_taken_out() {
        let without_folder: RequestText = Arc::new(|value| {
            serde_json::from_str(
                &value
                    .to_string()
                    .replace("/tmp/x1", "<folder>")
                    .replace("/tmp/x2", "<folder>"),
            )
            .unwrap()
        });
        let of = |text: &str| {
            of_model_request(
                &Named("gpt-5"),
                &prompt(text),
                &RequestParameters::default(),
                &without_folder,
            )
        };
        assert_eq!(of("read /tmp/x1/SKILL.md"), of("read /tmp/x2/SKILL.md"));
    }
}
