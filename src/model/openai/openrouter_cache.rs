//! Marks by which OpenRouter has Anthropic's models keep what a request begins with.

use serde_json::{Map, Value, json};

/// Marks the last tool, the instructions that are the same in every run (so many system messages from the first on), and
/// the end of the conversation, as the settings `openrouter_cache_...` say.
pub(super) fn mark(
    body: &mut Map<String, Value>,
    model_name: &str,
    settings: &Map<String, Value>,
    static_instructions: usize,
) {
    if !model_name.starts_with("anthropic/") {
        return;
    }
    let control = |name: &str| match settings.get(name)? {
        Value::Bool(true) => Some(json!({ "type": "ephemeral", "ttl": "5m" })),
        Value::String(ttl) => Some(json!({ "type": "ephemeral", "ttl": ttl })),
        _ => None,
    };
    if let Some(control) = control("openrouter_cache_tool_definitions")
        && let Some(Value::Array(tools)) = body.get_mut("tools")
        && let Some(Value::Object(last)) = tools.last_mut()
    {
        last.insert("cache_control".to_owned(), control);
    }
    let Some(Value::Array(messages)) = body.get_mut("messages") else {
        return;
    };
    if let Some(control) = control("openrouter_cache_instructions")
        && let Some(last) = static_instructions.checked_sub(1)
        && let Some(message) = messages.get_mut(last)
    {
        mark_message(message, control);
    }
    if let Some(control) = control("openrouter_cache_messages")
        && let Some(message) = messages.last_mut()
    {
        mark_message(message, control);
    }
}

fn mark_message(message: &mut Value, control: Value) {
    match message.get_mut("content") {
        Some(content @ Value::String(_)) => {
            *content = json!([{ "type": "text", "text": content, "cache_control": control }]);
        }
        Some(Value::Array(parts)) => {
            if let Some(Value::Object(last)) = parts.last_mut() {
                last.insert("cache_control".to_owned(), control);
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;

    use super::*;

    #[test]
    fn tools_instructions_and_the_end_are_marked_for_anthropics_models_only() {
        let body = json!({
            "tools": [{"function": {"name": "a"}}, {"function": {"name": "b"}}],
            "messages": [
                {"role": "system", "content": "Be brief."}, {"role": "system", "content": "Today."},
                {"role": "user", "content": "Go."},
            ],
        });
        let Value::Object(body) = body else {
            unreachable!();
        };
        let settings = [
            "openrouter_cache_tool_definitions",
            "openrouter_cache_instructions",
            "openrouter_cache_messages",
        ];
        let settings: Map<String, Value> = settings
            .iter()
            .map(|name| ((*name).to_owned(), true.into()))
            .collect();
        let mut other = body.clone();
        mark(&mut other, "openai/gpt-5", &settings, 1);
        assert_eq!(other, body);
        let mut marked = body.clone();
        mark(&mut marked, "anthropic/claude-opus-5", &settings, 1);
        let control = json!({"type": "ephemeral", "ttl": "5m"});
        let text = |text: &str| json!([{"type": "text", "text": text, "cache_control": control}]);
        assert_eq!(
            Value::Object(marked),
            json!({
                "tools": [{"function": {"name": "a"}}, {"function": {"name": "b"}, "cache_control": control}],
                "messages": [
                    {"role": "system", "content": text("Be brief.")}, {"role": "system", "content": "Today."},
                    {"role": "user", "content": text("Go.")},
                ],
            })
        );
    }
}
