//! pydantic-ai's own setting for how much a model thinks, `thinking`, which each API has other words for.

use serde_json::{Map, Value};

/// What the setting asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WantedThinking {
    Off,
    /// As much as the model thinks fit.
    On,
    Level(Effort),
}

/// How much thinking, from little to much.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Effort {
    Minimal,
    Low,
    Medium,
    High,
    XHigh,
    Max,
}

impl Effort {
    const ALL: [Self; 6] = [
        Self::Minimal,
        Self::Low,
        Self::Medium,
        Self::High,
        Self::XHigh,
        Self::Max,
    ];

    /// Its word in pydantic-ai, which is OpenAI's as well.
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Minimal => "minimal",
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
            Self::XHigh => "xhigh",
            Self::Max => "max",
        }
    }
}

impl WantedThinking {
    /// `None` when the settings leave it to the model.
    pub(super) fn of(settings: &Map<String, Value>) -> Option<Self> {
        match settings.get("thinking")? {
            Value::Bool(false) => Some(Self::Off),
            Value::Bool(true) => Some(Self::On),
            Value::String(word) => Effort::ALL
                .into_iter()
                .find(|effort| effort.word() == word)
                .map(Self::Level),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;
    use serde_json::json;

    use super::*;

    #[test]
    fn thinking_is_on_off_or_a_level() {
        let of =
            |value: Value| WantedThinking::of(&Map::from_iter([("thinking".to_owned(), value)]));
        assert_eq!(of(json!(false)), Some(WantedThinking::Off));
        assert_eq!(of(json!(true)), Some(WantedThinking::On));
        assert_eq!(
            of(json!("xhigh")),
            Some(WantedThinking::Level(Effort::XHigh))
        );
        assert_eq!(of(json!(null)), None);
        assert_eq!(WantedThinking::of(&Map::new()), None);
    }
}
