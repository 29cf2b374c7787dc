//! What OpenAI's models accept, by the beginning of their names.

/// `reasoning` models refuse sampling settings while they reason. `(prefix, reasons, reasons unless told, can be told
/// not to)`; the first matching prefix counts, so the more special one comes first.
const REASONING: &[(&str, bool, bool, bool)] = &[
    ("gpt-6-astra", true, true, false),
    ("gpt-6.1-sol", true, true, false),
    ("gpt-6.1-terra", true, true, true),
    ("gpt-6-sol", true, true, true),
    ("gpt-6-luna", true, true, true),
    ("gpt-5.6", true, true, true),
    ("gpt-5.5-pro", true, true, false),
    ("gpt-5.5", true, true, true),
    ("gpt-5.4-pro", true, true, false),
    ("gpt-5.4", true, false, true),
    ("gpt-5.3-chat", true, true, false),
    ("gpt-5.3", true, false, true),
    ("gpt-5.2-pro", true, true, false),
    ("gpt-5.2-chat", true, true, false),
    ("gpt-5.2", true, false, true),
    ("gpt-5.1-codex", true, true, false),
    ("gpt-5.1-chat", true, true, false),
    ("gpt-5.1", true, false, true),
    ("gpt-5-chat", false, false, false),
    ("gpt-5", true, true, false),
    ("o1", true, true, false),
    ("o3", true, true, false),
    ("o4", true, true, false),
];

/// Must sampling settings (`temperature` and its kin) be left out of a request?
///
/// `effort` is the setting `openai_reasoning_effort`.
pub(super) fn drops_sampling(model_name: &str, effort: Option<&str>) -> bool {
    let Some((_, reasons, by_default, can_be_off)) = REASONING
        .iter()
        .find(|(prefix, ..)| model_name.starts_with(prefix))
    else {
        return false;
    };
    let active = match effort {
        Some(effort) => effort != "none",
        None => *by_default,
    };
    *reasons && (active || !can_be_off)
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
}
