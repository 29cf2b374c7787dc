//! `AgentOperator(cache_prompt=True)`: the provider is asked to keep what each request begins with.

use serde_json::{Map, Value};

/// The settings that each family of providers has for it. OpenAI and Gemini cache by themselves.
const FAMILIES: [(&str, [&str; 3]); 3] = [
    (
        "anthropic_cache",
        [
            "anthropic_cache_tool_definitions",
            "anthropic_cache_instructions",
            "anthropic_cache_messages",
        ],
    ),
    (
        "bedrock_cache",
        [
            "bedrock_cache_tool_definitions",
            "bedrock_cache_instructions",
            "bedrock_cache_messages",
        ],
    ),
    (
        "openrouter_cache",
        [
            "openrouter_cache_tool_definitions",
            "openrouter_cache_instructions",
            "openrouter_cache_messages",
        ],
    ),
];

/// Switches caching on for each family of which `settings` say nothing. A model ignores what is meant for another's
/// provider, so one set serves a whole chain of fallbacks.
pub(super) fn switch_on(settings: &mut Map<String, Value>) {
    for (prefix, names) in FAMILIES {
        if settings.keys().any(|name| name.starts_with(prefix)) {
            continue;
        }
        settings.extend(names.map(|name| (name.to_owned(), Value::Bool(true))));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_setting_of_a_family_leaves_that_family_to_the_author() {
        let mut settings = Map::from_iter([("anthropic_cache".to_owned(), Value::from("1h"))]);
        switch_on(&mut settings);
        assert_eq!(settings.len(), 7);
        assert_eq!(settings["anthropic_cache"], "1h");
        assert_eq!(settings["bedrock_cache_messages"], true);
        assert!(!settings.contains_key("anthropic_cache_messages"));
    }
}
