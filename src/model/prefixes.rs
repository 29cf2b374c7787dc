//! Prefixes of model ids: whose model it is.

use super::openai::chat_providers::{CHAT_PROVIDERS, chat_provider};
use super::own_apis::OWN_APIS;

/// Prefixes that pydantic-ai knows beside those of [`super::openai::chat_providers`].
const OTHER_PREFIXES: &[&str] = &[
    "openai",
    "openai-responses",
    "openai-decisions",
    "openai-codex",
    "openai-chatgpt",
    "azure-responses",
    "google",
    "google-decisions",
    "google-cloud",
    "bedrock",
    "bedrock-mantle",
    "anthropic",
    "cohere",
    "system-one",
    "elevenlabs",
    "meta",
    "huggingface",
    "github-copilot",
    "sentence-transformers",
    "snowflake",
    "typesafe",
    "voyageai",
];

/// Providers whose address and credentials are made of several fields.
const PLATFORMS: [&str; 3] = ["azure-responses", "bedrock", "google-cloud"];

/// The prefixes of all providers that are reached from here.
#[must_use]
pub fn served_prefixes() -> Vec<&'static str> {
    let chat = CHAT_PROVIDERS.iter().map(|provider| provider.prefix);
    let own = OWN_APIS.iter().map(|provider| provider.prefix);
    let mut all: Vec<&str> = chat.chain(own).chain(PLATFORMS).collect();
    all.sort_unstable();
    all
}

/// Why a model that a task names can't be had, as far as its name tells; `None` when it can or the connection decides.
#[must_use]
pub fn obstacle_of_name(model: &str) -> Option<String> {
    let (prefix, _) = model.split_once(':')?;
    if known_prefix(model).is_none() || served_prefixes().contains(&prefix) {
        return None;
    }
    Some(format!(
        "models of '{prefix}' are not reached natively; those of {} are",
        served_prefixes().join(", ")
    ))
}

/// The prefix of a model id, if pydantic-ai knows it as a provider.
pub(super) fn known_prefix(model: &str) -> Option<&str> {
    let (prefix, _) = model.split_once(':')?;
    let bare = prefix.strip_prefix("gateway/").unwrap_or(prefix);
    (chat_provider(bare).is_some() || OTHER_PREFIXES.contains(&bare)).then_some(prefix)
}
