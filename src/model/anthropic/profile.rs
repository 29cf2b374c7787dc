//! What Anthropic's models accept, by the beginning of their names.

use serde_json::{Value, json};

use crate::model::thinking::{Effort, WantedThinking};

/// `max_tokens` of a model whose limit is not known.
const DEFAULT_MAX_TOKENS: u64 = 16_384;
/// `max_tokens` of a model that refuses a conversation which leaves no room for it.
const EARLY_MAX_TOKENS: u64 = 4_096;

/// What one model accepts and does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::model) struct AnthropicProfile {
    /// `max_tokens` when the settings have none.
    pub default_max_tokens: u64,
    /// What larger settings are lowered to.
    pub most_max_tokens: Option<u64>,
    /// `temperature` and its kin are refused.
    pub drops_sampling: bool,
    pub adaptive_thinking: bool,
    pub thinks_by_default: bool,
    pub always_thinks: bool,
    /// How it is told not to think, when it would.
    pub thinking_off: Option<&'static str>,
    pub effort: bool,
    pub effort_xhigh: bool,
    pub effort_max: bool,
    /// It can be held to the schemas of tools and answers.
    pub json_schema: bool,
    /// It can be made to call a tool.
    pub forced_tool_choice: bool,
    /// It takes system messages in the midst of a conversation.
    pub inline_system: bool,
}

impl AnthropicProfile {
    /// The body's `thinking`.
    pub(in crate::model) fn thinking(&self, wanted: WantedThinking) -> Option<Value> {
        match wanted {
            WantedThinking::Off if self.always_thinks => {
                self.effort.then(|| json!({ "type": "adaptive" }))
            }
            WantedThinking::Off => self.thinking_off.map(|kind| json!({ "type": kind })),
            _ if self.adaptive_thinking => Some(json!({ "type": "adaptive" })),
            wanted => {
                let budget = match wanted {
                    WantedThinking::Level(Effort::Minimal) => 1_024,
                    WantedThinking::Level(Effort::Low) => 2_048,
                    WantedThinking::Level(Effort::High) => 16_384,
                    WantedThinking::Level(Effort::XHigh | Effort::Max) => 32_768,
                    _ => 10_000,
                };
                Some(json!({ "type": "enabled", "budget_tokens": budget }))
            }
        }
    }

    /// The `effort` of the body's `output_config`.
    pub(in crate::model) fn effort(&self, wanted: WantedThinking) -> Option<&'static str> {
        if !self.effort {
            return None;
        }
        match wanted {
            WantedThinking::Off if self.always_thinks => Some("low"),
            WantedThinking::Off | WantedThinking::On => None,
            WantedThinking::Level(Effort::Minimal | Effort::Low) => Some("low"),
            WantedThinking::Level(Effort::Medium) => Some("medium"),
            WantedThinking::Level(Effort::High) => Some("high"),
            WantedThinking::Level(Effort::XHigh) if self.effort_xhigh => Some("xhigh"),
            WantedThinking::Level(Effort::XHigh | Effort::Max) if self.effort_max => Some("max"),
            WantedThinking::Level(Effort::XHigh | Effort::Max) => Some("high"),
        }
    }
}

const EARLY: AnthropicProfile = AnthropicProfile {
    default_max_tokens: EARLY_MAX_TOKENS,
    most_max_tokens: None,
    drops_sampling: false,
    adaptive_thinking: false,
    thinks_by_default: false,
    always_thinks: false,
    thinking_off: None,
    effort: false,
    effort_xhigh: false,
    effort_max: true,
    json_schema: false,
    forced_tool_choice: true,
    inline_system: false,
};
const UNKNOWN: AnthropicProfile = AnthropicProfile {
    default_max_tokens: DEFAULT_MAX_TOKENS,
    ..EARLY
};
const GENERATION_4_5: AnthropicProfile = AnthropicProfile {
    default_max_tokens: 64_000,
    most_max_tokens: Some(64_000),
    json_schema: true,
    ..EARLY
};
const GENERATION_4_6: AnthropicProfile = AnthropicProfile {
    default_max_tokens: 128_000,
    most_max_tokens: Some(128_000),
    adaptive_thinking: true,
    effort: true,
    ..GENERATION_4_5
};
const GENERATION_4_7: AnthropicProfile = AnthropicProfile {
    drops_sampling: true,
    effort_xhigh: true,
    ..GENERATION_4_6
};
const GENERATION_5: AnthropicProfile = AnthropicProfile {
    thinks_by_default: true,
    thinking_off: Some("disabled"),
    ..GENERATION_4_7
};
const ALWAYS_THINKING: AnthropicProfile = AnthropicProfile {
    always_thinks: true,
    thinking_off: None,
    inline_system: true,
    ..GENERATION_5
};
const UNFORCED: AnthropicProfile = AnthropicProfile {
    forced_tool_choice: false,
    ..ALWAYS_THINKING
};

/// The first prefix that matches counts.
const FAMILIES: &[(&str, AnthropicProfile)] = &[
    ("claude-fable-5-1", UNFORCED),
    ("claude-fable-5-2", UNFORCED),
    ("claude-fable-5", ALWAYS_THINKING),
    ("claude-mythos-5-1", UNFORCED),
    ("claude-mythos-5-2", UNFORCED),
    ("claude-mythos-5", ALWAYS_THINKING),
    (
        "claude-mythos-preview",
        AnthropicProfile {
            adaptive_thinking: true,
            thinks_by_default: true,
            always_thinks: true,
            ..UNKNOWN
        },
    ),
    ("claude-opus-5-5", UNFORCED),
    (
        "claude-opus-5",
        AnthropicProfile {
            inline_system: true,
            ..GENERATION_5
        },
    ),
    (
        "claude-sonnet-5-5",
        AnthropicProfile {
            thinking_off: Some("between_tools"),
            forced_tool_choice: false,
            ..GENERATION_5
        },
    ),
    ("claude-sonnet-5", GENERATION_5),
    ("claude-haiku-5-5", GENERATION_5),
    (
        "claude-opus-4-8",
        AnthropicProfile {
            inline_system: true,
            ..GENERATION_4_7
        },
    ),
    ("claude-opus-4-7", GENERATION_4_7),
    ("claude-opus-4-6", GENERATION_4_6),
    ("claude-sonnet-4-6", GENERATION_4_6),
    (
        "claude-opus-4-5",
        AnthropicProfile {
            effort: true,
            effort_max: false,
            ..GENERATION_4_5
        },
    ),
    ("claude-sonnet-4-5", GENERATION_4_5),
    ("claude-haiku-4-5", GENERATION_4_5),
    (
        "claude-opus-4-1",
        AnthropicProfile {
            json_schema: true,
            ..EARLY
        },
    ),
    ("claude-3", EARLY),
    ("claude-4-", EARLY),
    ("claude-opus-4-0", EARLY),
    ("claude-opus-4-2", EARLY),
    ("claude-opus-4@", EARLY),
    ("claude-sonnet-4-0", EARLY),
    ("claude-sonnet-4-2", EARLY),
    ("claude-sonnet-4@", EARLY),
];

/// What is known of a model.
pub(in crate::model) fn profile(model_name: &str) -> AnthropicProfile {
    if matches!(model_name, "claude-opus-4" | "claude-sonnet-4") {
        return EARLY;
    }
    FAMILIES
        .iter()
        .find(|(prefix, _)| model_name.starts_with(prefix))
        .map_or(UNKNOWN, |(_, profile)| *profile)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_output_limit_is_the_models_own() {
        for (name, tokens) in [
            ("claude-sonnet-4-5-20250929", 64_000),
            ("claude-opus-5", 128_000),
            ("claude-sonnet-4-20250514", 4_096),
            ("claude-3-5-haiku-latest", 4_096),
            ("claude-made-up", 16_384),
        ] {
            assert_eq!(profile(name).default_max_tokens, tokens, "{name}");
        }
    }

    #[test]
    fn the_more_special_name_counts() {
        assert!(profile("claude-opus-5").forced_tool_choice);
        assert!(!profile("claude-opus-5-5").forced_tool_choice);
        assert_eq!(
            profile("claude-sonnet-5-5").thinking_off,
            Some("between_tools")
        );
        assert!(!profile("claude-sonnet-4-5").drops_sampling);
    }
}
