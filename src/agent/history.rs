//! Conversations as pydantic-ai stores them (`ModelMessagesTypeAdapter`): read, continued, and written again.

use chrono::{DateTime, FixedOffset, NaiveDateTime, SecondsFormat, Utc};
use serde_json::{Map, Value, json};

use super::message::{
    Message, ModelRequest, ModelResponse, NativeToolPart, NativeToolStep, Origin, RequestPart,
    ResponsePart, RetryFeedback, RetryInfo, TextPart, Thinking, ToolCall, ToolOutcome, ToolReturn,
    UserContent, UserPart,
};
use super::pydantic_json::compact_json;

/// A stored conversation.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct History {
    /// Oldest first.
    pub messages: Vec<Message>,
    /// The same, as they are written again: what a message holds beyond [`Message`] is kept.
    recorded: Vec<Value>,
}

/// Why a text is no conversation.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum HistoryError {
    #[error(
        "1 validation error for list[tagged-union[ModelRequest,ModelResponse]]\n  Invalid JSON: {0}. message_history \
         takes the text that a task's XCom message_history holds, or nothing"
    )]
    NotJson(String),
    /// `place` is like `0.request.parts.1`.
    #[error(
        "1 validation error for list[tagged-union[ModelRequest,ModelResponse]]\n{place}\n  {what}"
    )]
    Invalid { place: String, what: String },
    /// A part that pydantic-ai knows and that can't be sent from here.
    #[error(
        "message_history holds {what} at {place}, which is not supported natively: send the task to a Python worker"
    )]
    Unsupported { place: String, what: String },
}

impl History {
    /// Reads a conversation. Blank text is an empty one.
    ///
    /// # Errors
    /// See [`HistoryError`].
    pub fn read(text: &str) -> Result<Self, HistoryError> {
        if text.trim().is_empty() {
            return Ok(Self::default());
        }
        let value =
            serde_json::from_str(text).map_err(|error| HistoryError::NotJson(error.to_string()))?;
        Self::from_json(&value)
    }

    /// Reads a conversation that is JSON already.
    ///
    /// # Errors
    /// See [`HistoryError`].
    pub fn from_json(value: &Value) -> Result<Self, HistoryError> {
        let Value::Array(items) = value else {
            return Err(invalid("", "Input should be a valid array"));
        };
        let mut history = Self::default();
        for (index, item) in items.iter().enumerate() {
            let place = index.to_string();
            let Value::Object(item) = item else {
                return Err(invalid(&place, "Input should be an object"));
            };
            let (message, recorded) = match item.get("kind").and_then(Value::as_str) {
                Some("request") => request(item, &format!("{place}.request"))?,
                Some("response") => response(item, &format!("{place}.response"))?,
                Some(other) => {
                    let what = format!("kind is {other:?}, and not 'request' or 'response'");
                    return Err(invalid(&place, &what));
                }
                None => {
                    return Err(invalid(
                        &place,
                        "Unable to extract tag using discriminator 'kind'",
                    ));
                }
            };
            history.messages.push(message);
            history.recorded.push(recorded);
        }
        Ok(history)
    }

    /// The conversation that the newest message with an id belongs to.
    #[must_use]
    pub fn conversation_id(&self) -> Option<&str> {
        let mut newest = self.recorded.iter().rev();
        newest.find_map(|message| message.get("conversation_id")?.as_str())
    }

    /// The conversation after a run: this one, and what the run has added to it. `messages` begin with this history's.
    #[must_use]
    pub fn continued(&self, messages: &[Message], run_id: &str, conversation_id: &str) -> Value {
        let added = messages.iter().skip(self.recorded.len());
        let added = added.map(|message| match message {
            Message::Request(request) => request_json(request, run_id, conversation_id),
            Message::Response(response) => response_json(response, run_id, conversation_id),
        });
        self.recorded.iter().cloned().chain(added).collect()
    }
}

/// A response as indented JSON, in a list of one: the body of a content filter error.
pub(super) fn response_dump(
    response: &ModelResponse,
    run_id: &str,
    conversation_id: &str,
) -> String {
    let dump = Value::Array(vec![response_json(response, run_id, conversation_id)]);
    // Serialising a `Value` to a string can't fail; the compact form is there for the type's sake.
    serde_json::to_string_pretty(&dump).unwrap_or_else(|_| dump.to_string())
}

fn invalid(place: &str, what: &str) -> HistoryError {
    HistoryError::Invalid {
        place: place.to_owned(),
        what: what.to_owned(),
    }
}

/// The fields of a stored object, with pydantic-ai's defaults for those that are not there.
struct Fields<'a> {
    map: &'a Map<String, Value>,
    place: &'a str,
}

impl Fields<'_> {
    fn or_null(&self, name: &str) -> Value {
        self.map.get(name).cloned().unwrap_or_default()
    }

    fn or(&self, name: &str, default: &str) -> Value {
        match self.map.get(name) {
            None | Some(Value::Null) => default.into(),
            Some(value) => value.clone(),
        }
    }

    fn required(&self, name: &str) -> Result<Value, HistoryError> {
        self.map
            .get(name)
            .cloned()
            .ok_or_else(|| invalid(&format!("{}.{name}", self.place), "Field required"))
    }

    fn text(&self, name: &str) -> Result<String, HistoryError> {
        match self.required(name)? {
            Value::String(text) => Ok(text),
            _ => Err(invalid(
                &format!("{}.{name}", self.place),
                "Input should be a valid string",
            )),
        }
    }

    fn optional_text(&self, name: &str) -> Option<String> {
        self.map
            .get(name)
            .and_then(Value::as_str)
            .map(ToOwned::to_owned)
    }

    /// A stored time, as pydantic writes it.
    fn timestamp(&self) -> Result<Option<String>, HistoryError> {
        let wrong = || {
            invalid(
                &format!("{}.timestamp", self.place),
                "Input should be a valid datetime",
            )
        };
        match self.map.get("timestamp") {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) => time_text(text).map(Some).ok_or_else(wrong),
            Some(Value::Number(seconds)) => {
                let moment = seconds
                    .as_i64()
                    .and_then(|seconds| DateTime::from_timestamp(seconds, 0))
                    .ok_or_else(wrong)?;
                Ok(Some(moment.to_rfc3339_opts(SecondsFormat::Secs, true)))
            }
            Some(_) => Err(wrong()),
        }
    }

    fn timestamp_or_now(&self) -> Result<String, HistoryError> {
        Ok(self
            .timestamp()?
            .unwrap_or_else(|| Utc::now().to_rfc3339_opts(SecondsFormat::Micros, true)))
    }

    fn origin(&self) -> Origin {
        Origin {
            id: self.optional_text("id"),
            provider_name: self.optional_text("provider_name"),
            provider_details: match self.map.get("provider_details") {
                Some(Value::Object(details)) => details.clone(),
                _ => Map::new(),
            },
        }
    }

    fn call_id(&self) -> String {
        self.optional_text("tool_call_id")
            .unwrap_or_else(|| format!("pyd_ai_{}", uuid::Uuid::new_v4().simple()))
    }
}

/// `None` for what is no time.
fn time_text(text: &str) -> Option<String> {
    let precision = |micros: u32| {
        if micros == 0 {
            SecondsFormat::Secs
        } else {
            SecondsFormat::Micros
        }
    };
    if let Ok(moment) = DateTime::<FixedOffset>::parse_from_rfc3339(&text.replacen(' ', "T", 1)) {
        let format = precision(moment.timestamp_subsec_micros());
        return Some(moment.to_rfc3339_opts(format, true));
    }
    let moment = text.parse::<NaiveDateTime>().ok()?.and_utc();
    let format = precision(moment.timestamp_subsec_micros());
    let text = moment.to_rfc3339_opts(format, true);
    Some(text.trim_end_matches('Z').to_owned())
}

/// A stored part: its kind, its fields, and where it stands.
type StoredPart<'a> = (String, &'a Map<String, Value>, String);

fn parts<'a>(
    item: &'a Map<String, Value>,
    place: &str,
) -> Result<Vec<StoredPart<'a>>, HistoryError> {
    let place = format!("{place}.parts");
    let items = match item.get("parts") {
        Some(Value::Array(items)) => items,
        Some(_) => return Err(invalid(&place, "Input should be a valid array")),
        None => return Err(invalid(&place, "Field required")),
    };
    items
        .iter()
        .enumerate()
        .map(|(index, part)| {
            let place = format!("{place}.{index}");
            let Value::Object(part) = part else {
                return Err(invalid(&place, "Input should be an object"));
            };
            match part.get("part_kind").and_then(Value::as_str) {
                Some(kind) => Ok((kind.to_owned(), part, place)),
                None => Err(invalid(
                    &place,
                    "Unable to extract tag: part_kind is missing",
                )),
            }
        })
        .collect()
}

fn request(item: &Map<String, Value>, place: &str) -> Result<(Message, Value), HistoryError> {
    let fields = Fields { map: item, place };
    let mut read = Vec::new();
    let mut recorded = Vec::new();
    for (kind, part, place) in parts(item, place)? {
        let (part, json) = request_part(&kind, part, &place)?;
        read.push(part);
        recorded.push(json);
    }
    let timestamp = fields.timestamp()?;
    let message = ModelRequest {
        parts: read,
        instructions: fields.optional_text("instructions").into_iter().collect(),
        timestamp: timestamp.clone().unwrap_or_default(),
    };
    let recorded = json!({
        "parts": recorded,
        "timestamp": timestamp,
        "instructions": fields.or_null("instructions"),
        "kind": "request",
        "run_id": fields.or_null("run_id"),
        "conversation_id": fields.or_null("conversation_id"),
        "metadata": fields.or_null("metadata"),
        "state": fields.or("state", "complete"),
    });
    Ok((Message::Request(message), recorded))
}

fn request_part(
    kind: &str,
    part: &Map<String, Value>,
    place: &str,
) -> Result<(RequestPart, Value), HistoryError> {
    let fields = Fields { map: part, place };
    Ok(match kind {
        "user-prompt" => {
            let content = fields.required("content")?;
            let read = match &content {
                Value::String(text) => UserContent::Text(text.clone()),
                Value::Array(items) => {
                    let texts: Option<Vec<UserPart>> = items
                        .iter()
                        .map(|item| Some(UserPart::Text(item.as_str()?.to_owned())))
                        .collect();
                    UserContent::Parts(texts.ok_or_else(|| HistoryError::Unsupported {
                        place: place.to_owned(),
                        what: "a prompt with items that are not text".to_owned(),
                    })?)
                }
                _ => return Err(invalid(place, "content should be text or a list")),
            };
            let recorded = json!({
                "content": content, "timestamp": fields.timestamp_or_now()?, "part_kind": kind,
            });
            (RequestPart::UserPrompt(read), recorded)
        }
        "system-prompt" => {
            let content = fields.text("content")?;
            let recorded = json!({
                "content": content,
                "timestamp": fields.timestamp_or_now()?,
                "dynamic_ref": fields.or_null("dynamic_ref"),
                "context_id": fields.or_null("context_id"),
                "scope": fields.or("scope", "conversation"),
                "metadata": fields.or_null("metadata"),
                "part_kind": kind,
            });
            (RequestPart::SystemPrompt(content), recorded)
        }
        "tool-return" => {
            let outcome = fields.or("outcome", "success");
            let retry = fields.or_null("retry");
            let result = ToolReturn {
                tool_name: fields.text("tool_name")?,
                tool_call_id: fields.call_id(),
                content: fields.required("content")?,
                files: Vec::new(),
                outcome: match outcome.as_str() {
                    Some("retried") => ToolOutcome::Retried,
                    Some("failed") => ToolOutcome::Failed,
                    _ => ToolOutcome::Success,
                },
                retry: None,
            };
            let recorded = tool_return(&result, &fields, &outcome, &retry)?;
            (RequestPart::ToolReturn(result), recorded)
        }
        // What pydantic-ai wrote before results carried their outcome.
        "retry-prompt" => {
            let content = fields.required("content")?;
            let cause = if content.is_string() {
                "model_retry"
            } else {
                "validation_error"
            };
            let Some(tool_name) = fields.optional_text("tool_name") else {
                return feedback(content, &json!({ "cause": cause }), &fields);
            };
            let retry = if content.is_string() {
                Value::Null
            } else {
                json!({ "cause": cause, "attempt": null, "max_retries": null })
            };
            let result = ToolReturn {
                tool_name,
                tool_call_id: fields.call_id(),
                content,
                files: Vec::new(),
                outcome: ToolOutcome::Retried,
                retry: None,
            };
            let recorded = tool_return(&result, &fields, &"retried".into(), &retry)?;
            (RequestPart::ToolReturn(result), recorded)
        }
        "retry-feedback" => feedback(
            fields.required("content")?,
            &fields.required("retry")?,
            &fields,
        )?,
        other => {
            return Err(HistoryError::Unsupported {
                place: place.to_owned(),
                what: format!("a part of kind {other:?}"),
            });
        }
    })
}

fn tool_return(
    result: &ToolReturn,
    fields: &Fields<'_>,
    outcome: &Value,
    retry: &Value,
) -> Result<Value, HistoryError> {
    let json = json!({
        "tool_name": result.tool_name,
        "content": result.content,
        "tool_call_id": result.tool_call_id,
        "tool_kind": fields.or_null("tool_kind"),
        "metadata": fields.or_null("metadata"),
        "timestamp": fields.timestamp_or_now()?,
        "outcome": outcome,
        "retry": retry,
        "part_kind": "tool-return",
    });
    Ok(with_digests(json))
}

/// The adapter adds the digests of files to a result that may hold some.
fn with_digests(mut tool_return: Value) -> Value {
    let may_hold_files = tool_return
        .get("content")
        .is_some_and(|content| content.is_array() || content.is_object());
    if let (true, Value::Object(map)) = (may_hold_files, &mut tool_return) {
        map.insert("content_file_digests".to_owned(), Value::Array(Vec::new()));
    }
    tool_return
}

fn feedback(
    content: Value,
    retry: &Value,
    fields: &Fields<'_>,
) -> Result<(RequestPart, Value), HistoryError> {
    let count = |name: &str| {
        retry
            .get(name)
            .and_then(Value::as_u64)
            .and_then(|count| u32::try_from(count).ok())
    };
    let cause = retry.get("cause").and_then(Value::as_str);
    let recorded = json!({
        "content": content,
        "retry": {
            "cause": cause, "attempt": count("attempt"), "max_retries": count("max_retries"),
        },
        "timestamp": fields.timestamp_or_now()?,
        "part_kind": "retry-feedback",
    });
    let part = RequestPart::RetryFeedback(RetryFeedback {
        content,
        retry: RetryInfo {
            cause: cause.unwrap_or_default().to_owned(),
            attempt: count("attempt").unwrap_or(0),
            max_retries: count("max_retries").unwrap_or(0),
        },
    });
    Ok((part, recorded))
}

fn response(item: &Map<String, Value>, place: &str) -> Result<(Message, Value), HistoryError> {
    let fields = Fields { map: item, place };
    let mut read = Vec::new();
    let mut recorded = Vec::new();
    for (kind, part, place) in parts(item, place)? {
        let (part, json) = response_part(&kind, part, &place)?;
        read.push(part);
        recorded.push(json);
    }
    let timestamp = fields.timestamp_or_now()?;
    let message = ModelResponse {
        parts: read,
        model_name: fields.optional_text("model_name").unwrap_or_default(),
        finish_reason: fields.optional_text("finish_reason"),
        provider_name: fields.optional_text("provider_name").unwrap_or_default(),
        provider_url: fields.optional_text("provider_url"),
        timestamp: timestamp.clone(),
        ..ModelResponse::default()
    };
    let recorded = json!({
        "parts": recorded,
        "usage": usage(item.get("usage"))?,
        "model_name": fields.or_null("model_name"),
        "model_id": fields.or_null("model_id"),
        "timestamp": timestamp,
        "kind": "response",
        "provider_name": fields.or_null("provider_name"),
        "provider_url": fields.or_null("provider_url"),
        "canonical_system": fields.or_null("canonical_system"),
        "provider_details": fields.or_null("provider_details"),
        "provider_response_id": fields.or_null("provider_response_id"),
        "finish_reason": fields.or_null("finish_reason"),
        "run_id": fields.or_null("run_id"),
        "conversation_id": fields.or_null("conversation_id"),
        "metadata": fields.or_null("metadata"),
        "workspace_ref": fields.or_null("workspace_ref"),
        "history_digest": fields.or_null("history_digest"),
        "failed_attempts": fields.or_null("failed_attempts"),
        "state": fields.or("state", "complete"),
    });
    Ok((Message::Response(Box::new(message)), recorded))
}

fn usage(usage: Option<&Value>) -> Result<Value, HistoryError> {
    let empty = Map::new();
    let map = match usage {
        Some(Value::Object(map)) => map,
        None => &empty,
        Some(_) => return Err(invalid("usage", "Input should be an object")),
    };
    let count = |name: &str| map.get(name).cloned().unwrap_or_else(|| 0.into());
    Ok(json!({
        "input_tokens": count("input_tokens"),
        "cache_write_tokens": count("cache_write_tokens"),
        "cache_write_1h_tokens": count("cache_write_1h_tokens"),
        "cache_read_tokens": count("cache_read_tokens"),
        "output_tokens": count("output_tokens"),
        "output_reasoning_tokens": count("output_reasoning_tokens"),
        "input_audio_tokens": count("input_audio_tokens"),
        "cache_audio_read_tokens": count("cache_audio_read_tokens"),
        "output_audio_tokens": count("output_audio_tokens"),
        "audio_seconds": map.get("audio_seconds").and_then(Value::as_f64).unwrap_or(0.0),
        "details": map.get("details").cloned().unwrap_or_else(|| json!({})),
        "cost": match map.get("cost") {
            Some(Value::Number(cost)) => cost.to_string().into(),
            other => other.cloned().unwrap_or_default(),
        },
    }))
}

fn response_part(
    kind: &str,
    part: &Map<String, Value>,
    place: &str,
) -> Result<(ResponsePart, Value), HistoryError> {
    let fields = Fields { map: part, place };
    Ok(match kind {
        "text" => {
            let content = fields.text("content")?;
            let recorded = json!({
                "content": content,
                "id": fields.or_null("id"),
                "provider_name": fields.or_null("provider_name"),
                "provider_details": fields.or_null("provider_details"),
                "citations": fields.or_null("citations"),
                "part_kind": kind,
            });
            let part = TextPart {
                content,
                origin: fields.origin(),
            };
            (ResponsePart::Text(part), recorded)
        }
        "thinking" => {
            let thinking = Thinking {
                content: fields.text("content")?,
                signature: fields.optional_text("signature"),
                origin: fields.origin(),
            };
            let recorded = json!({
                "content": thinking.content,
                "id": fields.or_null("id"),
                "signature": fields.or_null("signature"),
                "provider_name": fields.or_null("provider_name"),
                "provider_details": fields.or_null("provider_details"),
                "part_kind": kind,
            });
            (ResponsePart::Thinking(thinking), recorded)
        }
        "tool-call" | "builtin-tool-call" => {
            let args = fields.or_null("args");
            let call = ToolCall {
                tool_name: fields.text("tool_name")?,
                args: match &args {
                    Value::Null => String::new(),
                    Value::String(text) => text.clone(),
                    other => compact_json(other),
                },
                tool_call_id: fields.call_id(),
                origin: fields.origin(),
            };
            let recorded = json!({
                "tool_name": call.tool_name,
                "args": args,
                "tool_call_id": call.tool_call_id,
                "tool_kind": fields.or_null("tool_kind"),
                "id": fields.or_null("id"),
                "provider_name": fields.or_null("provider_name"),
                "provider_details": fields.or_null("provider_details"),
                "part_kind": kind,
            });
            let part = if kind == "tool-call" {
                ResponsePart::ToolCall(call)
            } else {
                ResponsePart::NativeTool(NativeToolPart {
                    tool_name: call.tool_name,
                    tool_call_id: call.tool_call_id,
                    step: NativeToolStep::Call(args),
                    origin: call.origin,
                })
            };
            (part, recorded)
        }
        "builtin-tool-return" => {
            let part = NativeToolPart {
                tool_name: fields.text("tool_name")?,
                tool_call_id: fields.call_id(),
                step: NativeToolStep::Return(fields.required("content")?),
                origin: fields.origin(),
            };
            let recorded = json!({
                "tool_name": part.tool_name,
                "content": fields.required("content")?,
                "tool_call_id": part.tool_call_id,
                "tool_kind": fields.or_null("tool_kind"),
                "metadata": fields.or_null("metadata"),
                "timestamp": fields.timestamp_or_now()?,
                "outcome": fields.or("outcome", "success"),
                "provider_name": fields.or_null("provider_name"),
                "provider_details": fields.or_null("provider_details"),
                "part_kind": kind,
            });
            (ResponsePart::NativeTool(part), with_digests(recorded))
        }
        other => {
            return Err(HistoryError::Unsupported {
                place: place.to_owned(),
                what: format!("a part of kind {other:?}"),
            });
        }
    })
}

fn request_json(request: &ModelRequest, run_id: &str, conversation_id: &str) -> Value {
    let timestamp = &request.timestamp;
    let parts: Vec<Value> = request
        .parts
        .iter()
        .map(|part| match part {
            RequestPart::UserPrompt(content) => {
                json!({ "content": content, "timestamp": timestamp, "part_kind": "user-prompt" })
            }
            RequestPart::SystemPrompt(content) => json!({
                "content": content, "timestamp": timestamp, "dynamic_ref": null, "context_id": null,
                "scope": "conversation", "metadata": null, "part_kind": "system-prompt",
            }),
            RequestPart::ToolReturn(result) => with_digests(json!({
                "tool_name": result.tool_name,
                "content": result.content,
                "tool_call_id": result.tool_call_id,
                "tool_kind": null,
                "metadata": null,
                "timestamp": timestamp,
                "outcome": match result.outcome {
                    ToolOutcome::Success => "success",
                    ToolOutcome::Retried => "retried",
                    ToolOutcome::Failed => "failed",
                },
                "retry": result.retry.as_ref().map(retry_json),
                "part_kind": "tool-return",
            })),
            RequestPart::RetryFeedback(feedback) => json!({
                "content": feedback.content,
                "retry": retry_json(&feedback.retry),
                "timestamp": timestamp,
                "part_kind": "retry-feedback",
            }),
        })
        .collect();
    let instructions = &request.instructions;
    json!({
        "parts": parts,
        "timestamp": timestamp,
        "instructions": (!instructions.is_empty()).then(|| instructions.join("\n\n")),
        "kind": "request",
        "run_id": run_id,
        "conversation_id": conversation_id,
        "metadata": null,
        "state": "complete",
    })
}

fn retry_json(retry: &RetryInfo) -> Value {
    json!({ "cause": retry.cause, "attempt": retry.attempt, "max_retries": retry.max_retries })
}

fn response_json(response: &ModelResponse, run_id: &str, conversation_id: &str) -> Value {
    let (usage, details) = (&response.usage, &response.provider_details);
    let parts: Vec<Value> = response
        .parts
        .iter()
        .map(|part| match part {
            ResponsePart::Text(TextPart { content, origin }) => json!({
                "content": content, "id": origin.id, "provider_name": origin.provider_name,
                "provider_details": details_json(origin), "citations": null, "part_kind": "text",
            }),
            ResponsePart::Thinking(thinking) => json!({
                "content": thinking.content, "id": thinking.origin.id, "signature": thinking.signature,
                "provider_name": thinking.origin.provider_name,
                "provider_details": details_json(&thinking.origin), "part_kind": "thinking",
            }),
            ResponsePart::ToolCall(call) => json!({
                "tool_name": call.tool_name, "args": call.args, "tool_call_id": call.tool_call_id,
                "tool_kind": null, "id": call.origin.id, "provider_name": call.origin.provider_name,
                "provider_details": details_json(&call.origin), "part_kind": "tool-call",
            }),
            ResponsePart::NativeTool(part) => native_tool_json(part, &response.timestamp),
        })
        .collect();
    json!({
        "parts": parts,
        "usage": {
            "input_tokens": usage.input_tokens,
            "cache_write_tokens": usage.cache_write_tokens,
            "cache_write_1h_tokens": 0,
            "cache_read_tokens": usage.cache_read_tokens,
            "output_tokens": usage.output_tokens,
            "output_reasoning_tokens": usage.output_reasoning_tokens,
            "input_audio_tokens": 0,
            "cache_audio_read_tokens": 0,
            "output_audio_tokens": 0,
            "audio_seconds": 0.0,
            "details": {},
            "cost": usage.cost.map(|cost| cost.to_string()),
        },
        "model_name": response.model_name,
        "model_id": format!("{}:{}", response.provider_name, response.model_name),
        "timestamp": response.timestamp,
        "kind": "response",
        "provider_name": response.provider_name,
        "provider_url": response.provider_url,
        "canonical_system": response.provider_name,
        "provider_details": (!details.is_empty()).then_some(details),
        "provider_response_id": response.provider_response_id,
        "finish_reason": response.finish_reason,
        "run_id": run_id,
        "conversation_id": conversation_id,
        "metadata": null,
        "workspace_ref": null,
        "history_digest": null,
        "failed_attempts": null,
        "state": "complete",
    })
}

fn details_json(origin: &Origin) -> Option<&Map<String, Value>> {
    Some(&origin.provider_details).filter(|details| !details.is_empty())
}

fn native_tool_json(part: &NativeToolPart, timestamp: &str) -> Value {
    let NativeToolPart {
        tool_name,
        tool_call_id,
        step,
        origin,
    } = part;
    match step {
        NativeToolStep::Call(args) => json!({
            "tool_name": tool_name, "args": args, "tool_call_id": tool_call_id, "tool_kind": tool_name,
            "id": origin.id, "provider_name": origin.provider_name, "provider_details": details_json(origin),
            "part_kind": "builtin-tool-call",
        }),
        NativeToolStep::Return(content) => with_digests(json!({
            "tool_name": tool_name, "content": content, "tool_call_id": tool_call_id, "tool_kind": tool_name,
            "metadata": null, "timestamp": timestamp, "outcome": "success",
            "provider_name": origin.provider_name, "provider_details": details_json(origin),
            "part_kind": "builtin-tool-return",
        })),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pretty_assertions::assert_eq;

    #[test]
    fn what_is_no_conversation_says_where() {
        for (text, place, what) in [
            ("{}", "", "Input should be a valid array"),
            ("[1]", "0", "Input should be an object"),
            (
                "[{\"kind\": \"request\"}]",
                "0.request.parts",
                "Field required",
            ),
            (
                "[{\"kind\": \"request\", \"parts\": [{\"part_kind\": \"user-prompt\"}]}]",
                "0.request.parts.0.content",
                "Field required",
            ),
        ] {
            assert_eq!(History::read(text), Err(invalid(place, what)), "{text}");
        }
        let error = History::read("None").unwrap_err().to_string();
        assert!(error.contains("Invalid JSON: "), "{error}");
        assert_eq!(History::read(" \n"), Ok(History::default()));
    }

    #[test]
    fn times_are_written_as_pydantic_writes_them() {
        for (given, written) in [
            ("2026-01-01T10:00:00Z", "2026-01-01T10:00:00Z"),
            ("2026-01-01T10:00:00", "2026-01-01T10:00:00"),
            (
                "2026-01-01 10:00:00.123456789Z",
                "2026-01-01T10:00:00.123456Z",
            ),
            ("2026-01-01T10:00:00.120Z", "2026-01-01T10:00:00.120000Z"),
            ("2026-01-01T10:00:00+02:00", "2026-01-01T10:00:00+02:00"),
        ] {
            assert_eq!(time_text(given).as_deref(), Some(written));
        }
        assert_eq!(time_text("yesterday"), None);
    }
}
