//! Reads stored messages: what is in them for a model, and what is kept to be written again.

use chrono::{DateTime, FixedOffset, NaiveDateTime, SecondsFormat, Utc};
use serde_json::{Map, Value, json};

use super::written::with_digests;
use super::{HistoryError, invalid};
use crate::agent::message::{
    Message, ModelRequest, ModelResponse, NativeToolPart, NativeToolStep, Origin, RequestPart,
    ResponsePart, RetryFeedback, RetryInfo, TextPart, Thinking, ToolCall, ToolOutcome, ToolReturn,
    UserContent, UserPart,
};
use crate::agent::pydantic_json::compact_json;

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

/// The parts of a message, each with what is recorded of it.
fn each_part<P>(
    item: &Map<String, Value>,
    place: &str,
    read: impl Fn(&str, &Map<String, Value>, &str) -> Result<(P, Value), HistoryError>,
) -> Result<(Vec<P>, Vec<Value>), HistoryError> {
    let parts = parts(item, place)?;
    let read = parts
        .into_iter()
        .map(|(kind, part, place)| read(&kind, part, &place));
    read.collect()
}

pub(super) fn request(
    item: &Map<String, Value>,
    place: &str,
) -> Result<(Message, Value), HistoryError> {
    let fields = Fields { map: item, place };
    let (read, recorded) = each_part(item, place, request_part)?;
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

pub(super) fn response(
    item: &Map<String, Value>,
    place: &str,
) -> Result<(Message, Value), HistoryError> {
    let fields = Fields { map: item, place };
    let (read, recorded) = each_part(item, place, response_part)?;
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

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;

    use super::*;

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
