//! pydantic-ai's `test` model: it calls every tool once with the least that the tool's schema asks for, and answers with
//! what the tools gave. Dag authors see with it that a Dag runs, without a provider and its key.

use std::sync::LazyLock;

use async_trait::async_trait;
use chrono::{SecondsFormat, Utc};
use regex::Regex;
use serde_json::{Map, Number, Value, json};

use super::conversation::refuse_native_tools;
use crate::agent::message::{
    Message, ModelResponse, RequestPart, ResponsePart, ToolCall, ToolOutcome, UserContent, UserPart,
};
use crate::agent::model::RequestParameters;
use crate::agent::pydantic_json::compact_json;
use crate::agent::render::tool_result_text;
use crate::agent::usage::RequestUsage;
use crate::agent::{Model, ModelError, ToolDefinition};

const NAME: &str = "test";
/// Tokens that a request is taken to have beside its words.
const OVERHEAD: u64 = 50;

/// The model.
pub struct TestModel;

impl TestModel {
    fn parts(messages: &[Message], parameters: &RequestParameters) -> Vec<ResponsePart> {
        let is_first = !messages
            .iter()
            .any(|message| matches!(message, Message::Response(_)));
        if is_first && !parameters.tools.is_empty() {
            return parameters.tools.iter().map(call).collect();
        }
        let again: Vec<&str> = match messages.last() {
            Some(Message::Request(request)) => request
                .parts
                .iter()
                .filter_map(|part| match part {
                    RequestPart::ToolReturn(result) if result.outcome == ToolOutcome::Retried => {
                        Some(result.tool_name.as_str())
                    }
                    _ => None,
                })
                .collect(),
            _ => Vec::new(),
        };
        if !again.is_empty() {
            let asked = parameters
                .all_tools()
                .filter(|(tool, _)| again.contains(&tool.name.as_str()));
            return asked.map(|(tool, _)| call(tool)).collect();
        }
        match parameters.output_tools.first() {
            Some(tool) if !parameters.allow_text_output => vec![call(&tool.definition)],
            _ => vec![ResponsePart::text(&told(messages))],
        }
    }
}

fn call(tool: &ToolDefinition) -> ResponsePart {
    let mut data = Data {
        whole: &tool.parameters,
        seed: 0,
    };
    ResponsePart::ToolCall(ToolCall {
        tool_name: tool.name.clone(),
        args: compact_json(&data.of(&tool.parameters)),
        tool_call_id: format!("pyd_ai_tool_call_id__{}", tool.name),
        ..ToolCall::default()
    })
}

/// What all the tools gave, by their names.
fn told(messages: &[Message]) -> String {
    let mut given = Map::new();
    for message in messages {
        let Message::Request(request) = message else {
            continue;
        };
        for part in &request.parts {
            if let RequestPart::ToolReturn(result) = part {
                given.insert(result.tool_name.clone(), result.content.clone());
            }
        }
    }
    if given.is_empty() {
        "success (no tool calls)".to_owned()
    } else {
        compact_json(&Value::Object(given))
    }
}

/// The least that meets a schema.
struct Data<'a> {
    whole: &'a Value,
    /// Moves on where items must differ.
    seed: u32,
}

impl Data<'_> {
    fn of(&mut self, schema: &Value) -> Value {
        let Value::Object(map) = schema else {
            return self.letter().into();
        };
        let choice = |name: &str, seed: u32| {
            let options = map
                .get(name)?
                .as_array()
                .filter(|items| !items.is_empty())?;
            options.get(seed as usize % options.len()).cloned()
        };
        if let Some(value) = map.get("const") {
            return value.clone();
        }
        if let Some(value) = choice("enum", self.seed).or_else(|| choice("examples", self.seed)) {
            return value;
        }
        if let Some(Value::String(path)) = map.get("$ref") {
            let whole = self.whole;
            let target = whole.pointer(path.trim_start_matches('#'));
            return target.map_or(Value::Null, |target| self.of(target));
        }
        let kind = map.get("type").and_then(Value::as_str);
        let union = choice("anyOf", self.seed)
            .or_else(|| choice("oneOf", self.seed).filter(|_| kind.is_none()));
        if let Some(member) = union {
            return self.of(&member);
        }
        match kind {
            Some("object") => self.object(map),
            Some("array") => self.array(map),
            Some("integer") => json!(self.number(map) as i64),
            Some("number") => json!(self.number(map)),
            Some("boolean") => json!(self.seed % 2 == 1),
            Some("null") => Value::Null,
            Some("string") => self.string(map).into(),
            _ => self.letter().into(),
        }
    }

    fn object(&mut self, map: &Map<String, Value>) -> Value {
        let required: Vec<&str> = map
            .get("required")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect();
        let mut out = Map::new();
        if let Some(Value::Object(properties)) = map.get("properties") {
            for (name, schema) in properties {
                if required.contains(&name.as_str()) {
                    out.insert(name.clone(), self.of(schema));
                }
            }
        }
        match map.get("additionalProperties") {
            None | Some(Value::Bool(false)) => {}
            Some(schema) => {
                out.insert("additionalProperty".to_owned(), self.of(schema));
            }
        }
        Value::Object(out)
    }

    fn array(&mut self, map: &Map<String, Value>) -> Value {
        let count = |name: &str| map.get(name).and_then(Value::as_u64);
        let unique = map.get("uniqueItems") == Some(&Value::Bool(true));
        let (least, most) = (count("minItems").unwrap_or(0), count("maxItems"));
        let prefix = map.get("prefixItems").and_then(Value::as_array);
        let mut schemas: Vec<Value> = prefix.cloned().unwrap_or_default();
        let made = schemas.len() as u64;
        match map.get("items") {
            Some(items) if least <= made => {
                if items != &json!({}) && most.is_none_or(|most| most > made) {
                    schemas.push(items.clone());
                }
            }
            items => {
                let items = items.cloned().unwrap_or_else(|| json!({}));
                schemas.extend((made..least).map(|_| items.clone()));
            }
        }
        schemas
            .iter()
            .map(|schema| {
                let item = self.of(schema);
                self.seed += u32::from(unique);
                item
            })
            .collect()
    }

    fn number(&self, map: &Map<String, Value>) -> f64 {
        let bound = |name: &str, step: f64| {
            let bound = map.get(name).and_then(Value::as_number);
            bound.and_then(Number::as_f64).map(|bound| bound + step)
        };
        let least = bound("minimum", 0.0).or_else(|| bound("exclusiveMinimum", 1.0));
        let most = bound("maximum", 0.0).or_else(|| bound("exclusiveMaximum", -1.0));
        let seed = f64::from(self.seed);
        match (least, most) {
            (Some(least), Some(most)) if most > least => least + seed % (most - least + 1.0),
            (Some(least), Some(_)) => least,
            (Some(least), None) => least + seed,
            (None, Some(most)) => most - seed,
            (None, None) => seed,
        }
    }

    fn string(&self, map: &Map<String, Value>) -> String {
        if let Some(length) = map.get("minLength").and_then(Value::as_u64) {
            return self.letter().repeat(usize::try_from(length).unwrap_or(0));
        }
        if map.get("maxLength") == Some(&json!(0)) {
            return String::new();
        }
        if map.get("format") == Some(&json!("date")) {
            return format!("2024-01-{:02}", self.seed % 31 + 1);
        }
        self.letter()
    }

    fn letter(&self) -> String {
        let letter = u8::try_from(self.seed % 26).unwrap_or(0);
        char::from(b'a' + letter).to_string()
    }
}

/// About as many as the words of a text.
fn tokens(text: &str) -> u64 {
    static BETWEEN: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new("[\\s\",.:]+").ok());
    let text = text.trim();
    match BETWEEN.as_ref().filter(|_| !text.is_empty()) {
        Some(between) => between.split(text).count() as u64,
        None => 0,
    }
}

fn usage(messages: &[Message], answer: &[ResponsePart]) -> RequestUsage {
    let said = |parts: &[ResponsePart]| -> u64 {
        parts
            .iter()
            .map(|part| match part {
                ResponsePart::Text(text) => tokens(&text.content),
                ResponsePart::Thinking(thinking) => tokens(&thinking.content),
                ResponsePart::ToolCall(call) => 1 + tokens(&call.args),
                ResponsePart::NativeTool(_) => 0,
            })
            .sum()
    };
    let mut usage = RequestUsage {
        input_tokens: OVERHEAD,
        output_tokens: said(answer),
        ..RequestUsage::default()
    };
    for message in messages {
        match message {
            Message::Response(response) => usage.output_tokens += said(&response.parts),
            Message::Request(request) => {
                for part in &request.parts {
                    usage.input_tokens += match part {
                        RequestPart::SystemPrompt(text)
                        | RequestPart::UserPrompt(UserContent::Text(text)) => tokens(text),
                        RequestPart::UserPrompt(UserContent::Parts(parts)) => {
                            let tokens = |part: &UserPart| match part {
                                UserPart::Text(text) => tokens(text),
                                UserPart::File(file) => file.data.len() as u64,
                            };
                            parts.iter().map(tokens).sum()
                        }
                        RequestPart::ToolReturn(result) => {
                            tokens(&tool_result_text(&result.content))
                        }
                        RequestPart::RetryFeedback(feedback) => {
                            tokens(&tool_result_text(&feedback.content))
                        }
                    };
                }
            }
        }
    }
    usage
}

#[async_trait]
impl Model for TestModel {
    fn name(&self) -> &str {
        NAME
    }

    fn provider(&self) -> &str {
        NAME
    }

    async fn request(
        &self,
        messages: &[Message],
        parameters: &RequestParameters,
    ) -> Result<ModelResponse, ModelError> {
        refuse_native_tools(parameters, NAME)?;
        let parts = Self::parts(messages, parameters);
        Ok(ModelResponse {
            usage: usage(messages, &parts),
            parts,
            model_name: NAME.to_owned(),
            provider_name: NAME.to_owned(),
            timestamp: Utc::now().to_rfc3339_opts(SecondsFormat::Micros, true),
            ..ModelResponse::default()
        })
    }
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;

    use super::*;
    use crate::model::wire_tests::{
        parameters, prompt, prompt_with_files, request, response, result,
    };

    /// Made with pydantic-ai's `TestModel`.
    #[test]
    fn arguments_are_the_least_that_a_schema_asks_for() {
        let schema = json!({
            "type": "object",
            "$defs": {"Berth": {"type": "object", "properties": {"n": {"type": "integer", "minimum": 3}}, "required": ["n"]}},
            "properties": {
                "name": {"type": "string"}, "left_out": {"type": "string"}, "berth": {"$ref": "#/$defs/Berth"},
                "tags": {"type": "array", "items": {"type": "string"}}, "at": {"type": "string", "format": "date"},
                "kind": {"enum": ["sea", "air"]}, "ok": {"type": "boolean"}, "many": {"anyOf": [{"type": "null"}, {}]},
                "two": {"type": "array", "minItems": 2, "uniqueItems": true, "items": {"type": "string"}},
            },
            "required": ["name", "berth", "tags", "at", "kind", "ok", "many", "two"],
        });
        let mut data = Data {
            whole: &schema,
            seed: 0,
        };
        assert_eq!(
            data.of(&schema),
            json!({
                "name": "a", "berth": {"n": 3}, "tags": ["a"], "at": "2024-01-01", "kind": "sea", "ok": false,
                "many": null, "two": ["a", "b"],
            })
        );
    }

    #[tokio::test]
    async fn every_tool_is_called_once_and_the_answer_is_what_they_gave() {
        let parameters = parameters(json!({}));
        let first = TestModel
            .request(&[prompt("Go on.")], &parameters)
            .await
            .unwrap();
        let [ResponsePart::ToolCall(call)] = first.parts.as_slice() else {
            panic!("{:?}", first.parts);
        };
        assert_eq!(
            (call.args.as_str(), call.tool_call_id.as_str()),
            ("{\"sql\":\"a\"}", "pyd_ai_tool_call_id__query")
        );
        assert_eq!(
            (first.usage.input_tokens, first.usage.output_tokens),
            (53, 5)
        );
        let messages = [
            prompt("Go on."),
            response("test", first.parts.clone()),
            request(vec![RequestPart::ToolReturn(result(json!("[[1]]")))]),
        ];
        let last = TestModel.request(&messages, &parameters).await.unwrap();
        assert_eq!(last.parts, [ResponsePart::text("{\"query\":\"[[1]]\"}")]);
        assert_eq!((last.usage.input_tokens, last.usage.output_tokens), (54, 9));
    }
    /// As `FunctionModel` and `TestModel` of pydantic-ai count them.
    #[test]
    fn a_file_costs_a_token_a_byte() {
        assert_eq!(usage(&[prompt_with_files()], &[]).input_tokens, 50 + 3 + 6);
    }
}
