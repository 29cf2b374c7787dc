//! What OpenAI's models accept, by the beginning of their names.

use crate::model::thinking::{Effort, WantedThinking};

use Effort::{High, Low, Max, Medium, Minimal, XHigh};

/// How a family of models reasons.
#[derive(Clone, Copy)]
struct Reasoning {
    by_default: bool,
    can_be_off: bool,
    /// The efforts it accepts; empty where that is not known.
    efforts: &'static [Effort],
    /// It knows the effort `minimal`, where its efforts are not listed.
    minimal: bool,
}

const OFF_UNLESS_ASKED: Reasoning = Reasoning {
    by_default: false,
    can_be_off: true,
    efforts: &[],
    minimal: true,
};
const ON_UNLESS_ASKED: Reasoning = Reasoning {
    by_default: true,
    ..OFF_UNLESS_ASKED
};
const NEWEST: Reasoning = Reasoning {
    minimal: false,
    ..ON_UNLESS_ASKED
};

const fn always(efforts: &'static [Effort]) -> Reasoning {
    Reasoning {
        by_default: true,
        can_be_off: false,
        efforts,
        minimal: true,
    }
}

/// The first matching prefix counts, so the more special one comes first. `None` does not reason at all.
const REASONING: &[(&str, Option<Reasoning>)] = &[
    (
        "gpt-6-astra",
        Some(always(&[Low, Medium, High, XHigh, Max])),
    ),
    (
        "gpt-6.1-sol",
        Some(always(&[Low, Medium, High, XHigh, Max])),
    ),
    ("gpt-6.1-terra", Some(NEWEST)),
    ("gpt-6-sol", Some(NEWEST)),
    ("gpt-6-luna", Some(NEWEST)),
    ("gpt-5.6", Some(NEWEST)),
    ("gpt-5.5-pro", Some(always(&[Medium, High, XHigh]))),
    ("gpt-5.5", Some(ON_UNLESS_ASKED)),
    ("gpt-5.4-pro", Some(always(&[Medium, High, XHigh]))),
    ("gpt-5.4", Some(OFF_UNLESS_ASKED)),
    ("gpt-5.3-chat", Some(always(&[Medium]))),
    ("gpt-5.3", Some(OFF_UNLESS_ASKED)),
    ("gpt-5.2-pro", Some(always(&[Medium, High, XHigh]))),
    ("gpt-5.2-chat", Some(always(&[Medium]))),
    ("gpt-5.2", Some(OFF_UNLESS_ASKED)),
    ("gpt-5.1-codex", Some(always(&[]))),
    ("gpt-5.1-chat", Some(always(&[Medium]))),
    ("gpt-5.1", Some(OFF_UNLESS_ASKED)),
    ("gpt-5-chat", None),
    ("gpt-5-pro", Some(always(&[High]))),
    ("gpt-5-codex", Some(always(&[]))),
    ("gpt-5", Some(always(&[Minimal, Low, Medium, High]))),
    ("o1", Some(always(&[Low, Medium, High]))),
    ("o3", Some(always(&[Low, Medium, High]))),
    ("o4", Some(always(&[Low, Medium, High]))),
];

fn reasoning(model_name: &str) -> Option<Reasoning> {
    REASONING
        .iter()
        .find(|(prefix, _)| model_name.starts_with(prefix))
        .and_then(|(_, reasoning)| *reasoning)
}

/// Can the model reason?
pub(super) fn reasons(model_name: &str) -> bool {
    reasoning(model_name).is_some()
}

/// Must sampling settings (`temperature` and its kin) be left out of a request with this effort?
pub(super) fn drops_sampling(model_name: &str, effort: Option<&str>) -> bool {
    let Some(reasoning) = reasoning(model_name) else {
        return false;
    };
    let active = match effort {
        Some(effort) => effort != "none",
        None => reasoning.by_default,
    };
    active || !reasoning.can_be_off
}

/// The effort that comes closest to what is wanted, from below rather than not at all; `None` sends none. `max` says
/// whether the API knows that word.
pub(super) fn effort(model_name: &str, wanted: WantedThinking, max: bool) -> Option<&'static str> {
    let reasoning = reasoning(model_name)?;
    let accepted = reasoning.efforts;
    let level = match wanted {
        WantedThinking::Off if reasoning.can_be_off => return Some("none"),
        WantedThinking::Off => return accepted.first().map(|effort| effort.word()),
        WantedThinking::On => Medium,
        WantedThinking::Level(Max) if !max => XHigh,
        WantedThinking::Level(level) => level,
    };
    if accepted.is_empty() {
        return Some(match level {
            Minimal if !reasoning.minimal => Low.word(),
            level => level.word(),
        });
    }
    let mut enough = accepted.iter().filter(|effort| max || **effort != Max);
    enough
        .clone()
        .find(|effort| **effort >= level)
        .or_else(|| enough.next_back())
        .map(|effort| effort.word())
}

/// The role of instructions: one family of models knows no other than the user's.
pub(super) fn system_role(model_name: &str) -> &'static str {
    if model_name.starts_with("o1-mini") {
        "user"
    } else {
        "system"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sampling_settings_are_dropped_while_a_model_reasons() {
        assert!(drops_sampling("gpt-5", None));
        assert!(drops_sampling("gpt-5-mini", None));
        assert!(drops_sampling("o3-mini", None));
        assert!(!drops_sampling("gpt-4o", None));
        assert!(!drops_sampling("gpt-5-chat-latest", None));
        assert!(!drops_sampling("gpt-5.1", None));
        assert!(drops_sampling("gpt-5.1", Some("low")));
        assert!(!drops_sampling("gpt-5.5", Some("none")));
        assert!(drops_sampling("gpt-5", Some("none")));
    }

    #[test]
    fn wanted_thinking_becomes_the_nearest_effort_that_the_model_accepts() {
        let level = WantedThinking::Level;
        for (name, wanted, max, sent) in [
            ("gpt-5", WantedThinking::On, false, Some("medium")),
            ("gpt-5", WantedThinking::Off, false, Some("minimal")),
            ("gpt-5", level(XHigh), false, Some("high")),
            ("gpt-5-pro", level(Low), false, Some("high")),
            ("o3-mini", level(Minimal), false, Some("low")),
            ("gpt-5.5", WantedThinking::Off, false, Some("none")),
            ("gpt-5.6-sol", level(Minimal), false, Some("low")),
            ("gpt-6-astra", level(Max), false, Some("xhigh")),
            ("gpt-6-astra", level(Max), true, Some("max")),
            ("gpt-4o", level(High), false, None),
        ] {
            assert_eq!(effort(name, wanted, max), sent, "{name} {wanted:?}");
        }
    }
}
