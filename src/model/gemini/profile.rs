//! What Google's models accept, by their names.

use crate::model::thinking::Effort;

/// What one model accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct GeminiProfile {
    /// Gemini 3 and later: functions beside the provider's own tools, files in results, thinking by level.
    pub modern: bool,
    pub thinks: bool,
    pub always_thinks: bool,
    /// It can be held to the schemas of functions.
    pub validates: bool,
    /// The lowest level of thinking, where levels are known.
    pub lowest: Effort,
}

/// What is known of a model.
pub(super) fn profile(model_name: &str) -> GeminiProfile {
    let is_2_5 = model_name.contains("gemini-2.5");
    let is_early = model_name.contains("gemini-1")
        || (model_name.contains("gemini-2.") && !is_2_5)
        || model_name == "gemini-pro";
    let is_gemma = model_name.contains("gemma");
    let thinks = !(is_gemma || is_early || model_name.contains("gemini-2.5-flash-image"));
    let is_pro = model_name.contains("pro") && !model_name.contains("flash");
    GeminiProfile {
        modern: !(is_2_5 || is_early || is_gemma),
        thinks,
        always_thinks: thinks && is_pro,
        validates: thinks && !model_name.contains("image"),
        lowest: if is_pro { Effort::Low } else { Effort::Minimal },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_generation_decides() {
        assert!(profile("gemini-3.5-flash").modern);
        assert!(!profile("gemini-2.5-flash").modern);
        assert!(profile("gemini-2.5-flash").validates);
        assert!(profile("gemini-2.5-pro").always_thinks);
        assert!(!profile("gemini-2.0-flash").thinks);
    }
}
