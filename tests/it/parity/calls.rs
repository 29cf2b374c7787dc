//! The invariant of every request: no call without its result, no result without its call, results in the order of the
//! calls. It is read off the request in the form of whichever API it was made for.

use std::collections::VecDeque;

use serde_json::Value;

/// What a request tells of calls, one after the other.
#[derive(Debug)]
enum Told {
    Call(String),
    Result(String),
    /// Anything else that the model or the user says.
    Other,
}

/// # Errors
/// What is wrong.
pub fn check_calls_and_results(body: &Value) -> Result<(), String> {
    let mut open: VecDeque<String> = VecDeque::new();
    let mut answering = false;
    for told in conversation(body) {
        match told {
            Told::Call(id) if answering && !open.is_empty() => {
                return Err(format!("a call {id:?} where results for {open:?} were due"));
            }
            Told::Call(id) => {
                answering = false;
                open.push_back(id);
            }
            Told::Result(id) => {
                answering = true;
                if open.front() != Some(&id) {
                    return Err(format!("a result for {id:?} where {open:?} were due"));
                }
                open.pop_front();
            }
            Told::Other if answering && !open.is_empty() => {
                return Err(format!("no results for the calls {open:?}"));
            }
            Told::Other => {}
        }
    }
    if open.is_empty() {
        Ok(())
    } else {
        Err(format!("no results for the calls {open:?}"))
    }
}

fn id(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn conversation(body: &Value) -> Vec<Told> {
    let mut told = Vec::new();
    // Chat Completions and Anthropic.
    for message in list(&body["messages"]) {
        if message["role"] == "tool" {
            told.push(Told::Result(id(&message["tool_call_id"])));
            continue;
        }
        told.push(Told::Other);
        told.extend(list(&message["tool_calls"]).map(|call| Told::Call(id(&call["id"]))));
        for block in list(&message["content"]) {
            match block["type"].as_str() {
                Some("tool_use") => told.push(Told::Call(id(&block["id"]))),
                Some("tool_result") => {
                    // The message that holds results says nothing before them.
                    if matches!(told.last(), Some(Told::Other)) {
                        told.pop();
                    }
                    told.push(Told::Result(id(&block["tool_use_id"])));
                }
                _ => {}
            }
        }
    }
    // OpenAI Responses.
    for item in list(&body["input"]) {
        told.push(match item["type"].as_str() {
            Some("function_call") => Told::Call(id(&item["call_id"])),
            Some("function_call_output") => Told::Result(id(&item["call_id"])),
            _ => Told::Other,
        });
    }
    // Gemini.
    for part in list(&body["contents"]).flat_map(|content| list(&content["parts"])) {
        told.push(if part["functionCall"].is_object() {
            Told::Call(id(&part["functionCall"]["id"]))
        } else if part["functionResponse"].is_object() {
            Told::Result(id(&part["functionResponse"]["id"]))
        } else {
            Told::Other
        });
    }
    told
}

#[test]
fn a_call_without_result_is_found_in_the_form_of_each_api() {
    use serde_json::json;

    for (whole, broken) in [
        (
            json!({"messages": [
                {"role": "assistant", "tool_calls": [{"id": "a"}]}, {"role": "tool", "tool_call_id": "a"},
            ]}),
            json!({"messages": [{"role": "assistant", "tool_calls": [{"id": "a"}]}, {"role": "user", "content": "x"}]}),
        ),
        (
            json!({"messages": [
                {"role": "assistant", "content": [{"type": "tool_use", "id": "a"}]},
                {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a"}]},
            ]}),
            json!({"messages": [{"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a"}]}]}),
        ),
        (
            json!({"input": [
                {"type": "function_call", "call_id": "a"}, {"type": "function_call_output", "call_id": "a"},
            ]}),
            json!({"input": [{"type": "function_call", "call_id": "a"}]}),
        ),
        (
            json!({"contents": [
                {"parts": [{"functionCall": {"id": "a"}}]}, {"parts": [{"functionResponse": {"id": "a"}}]},
            ]}),
            json!({"contents": [{"parts": [{"functionResponse": {"id": "a"}}]}]}),
        ),
    ] {
        assert_eq!(check_calls_and_results(&whole), Ok(()));
        assert!(check_calls_and_results(&broken).is_err(), "{broken}");
    }
}
