//! Providers that speak Chat Completions: where they are and how they differ from OpenAI.

/// A provider prefix of a model id (`deepseek:deepseek-chat`) whose API is Chat Completions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChatProvider {
    /// The prefix, which is also `gen_ai.provider.name`, but for `openai-chat`.
    pub prefix: &'static str,
    pub provider_name: &'static str,
    /// Base URL when the connection has no host; empty when there is none to guess.
    pub base_url: &'static str,
    /// What a connection's host lacks of the base URL, where the provider's own SDK adds it.
    pub host_suffix: &'static str,
    /// Environment variable that holds a base URL.
    pub base_url_env: &'static str,
    /// Environment variables that hold the key, for a connection without a password.
    pub key_env: &'static [&'static str],
    /// Sent when there is no key: local servers don't ask for one.
    pub placeholder_key: Option<&'static str>,
    /// `max_completion_tokens`, or the older `max_tokens`.
    pub max_tokens_field: &'static str,
    pub strict_tools: bool,
    /// How the model's thinking goes back to it.
    pub thinking: SendThinking,
}

/// How thinking is sent back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SendThinking {
    /// In the field it came in, or else as tagged text.
    Auto,
    /// Always in this field.
    Field(&'static str),
}

const OPENAI_CHAT: ChatProvider = ChatProvider {
    prefix: "openai-chat",
    provider_name: "openai",
    base_url: "https://api.openai.com/v1",
    host_suffix: "",
    base_url_env: "OPENAI_BASE_URL",
    key_env: &["OPENAI_API_KEY"],
    placeholder_key: None,
    max_tokens_field: "max_completion_tokens",
    strict_tools: true,
    thinking: SendThinking::Auto,
};

/// A provider that differs from OpenAI in name, place and key only.
const fn like_openai(
    prefix: &'static str,
    base_url: &'static str,
    base_url_env: &'static str,
    key_env: &'static [&'static str],
) -> ChatProvider {
    ChatProvider {
        prefix,
        provider_name: prefix,
        base_url,
        base_url_env,
        key_env,
        ..OPENAI_CHAT
    }
}

/// All of them, `azure` included; its URL and headers are made in `resolve`.
pub const CHAT_PROVIDERS: &[ChatProvider] = &[
    OPENAI_CHAT,
    like_openai(
        "azure",
        "",
        "AZURE_OPENAI_ENDPOINT",
        &["AZURE_OPENAI_API_KEY"],
    ),
    like_openai(
        "alibaba",
        "https://dashscope-intl.aliyuncs.com/compatible-mode/v1",
        "",
        &["ALIBABA_API_KEY", "DASHSCOPE_API_KEY"],
    ),
    ChatProvider {
        max_tokens_field: "max_tokens",
        thinking: SendThinking::Field("reasoning_content"),
        ..like_openai(
            "deepseek",
            "https://api.deepseek.com",
            "",
            &["DEEPSEEK_API_KEY"],
        )
    },
    like_openai(
        "fireworks",
        "https://api.fireworks.ai/inference/v1",
        "",
        &["FIREWORKS_API_KEY"],
    ),
    like_openai(
        "github",
        "https://models.github.ai/inference",
        "",
        &["GITHUB_API_KEY"],
    ),
    like_openai(
        "heroku",
        "https://us.inference.heroku.com/v1",
        "HEROKU_INFERENCE_URL",
        &["HEROKU_INFERENCE_KEY"],
    ),
    ChatProvider {
        placeholder_key: Some("litellm-placeholder"),
        ..like_openai("litellm", "", "", &[])
    },
    ChatProvider {
        thinking: SendThinking::Field("reasoning_content"),
        ..like_openai(
            "moonshotai",
            "https://api.moonshot.ai/v1",
            "MOONSHOTAI_BASE_URL",
            &["MOONSHOTAI_API_KEY"],
        )
    },
    like_openai(
        "nebius",
        "https://api.studio.nebius.com/v1",
        "",
        &["NEBIUS_API_KEY"],
    ),
    like_openai(
        "ovhcloud",
        "https://oai.endpoints.kepler.ai.cloud.ovh.net/v1",
        "",
        &["OVHCLOUD_API_KEY"],
    ),
    like_openai(
        "sambanova",
        "https://api.sambanova.ai/v1",
        "SAMBANOVA_BASE_URL",
        &["SAMBANOVA_API_KEY"],
    ),
    like_openai(
        "together",
        "https://api.together.xyz/v1",
        "",
        &["TOGETHER_API_KEY"],
    ),
    like_openai(
        "vercel",
        "https://ai-gateway.vercel.sh/v1",
        "",
        &["VERCEL_AI_GATEWAY_API_KEY", "VERCEL_OIDC_TOKEN"],
    ),
    ChatProvider {
        placeholder_key: Some("api-key-not-set"),
        ..like_openai("vllm", "", "VLLM_BASE_URL", &["VLLM_API_KEY"])
    },
    ChatProvider {
        max_tokens_field: "max_tokens",
        thinking: SendThinking::Field("reasoning"),
        ..like_openai(
            "openrouter",
            "https://openrouter.ai/api/v1",
            "",
            &["OPENROUTER_API_KEY"],
        )
    },
    like_openai(
        "cerebras",
        "https://api.cerebras.ai/v1",
        "",
        &["CEREBRAS_API_KEY"],
    ),
    like_openai(
        "crusoe",
        "https://api.inference.crusoecloud.com/v1",
        "",
        &["CRUSOE_API_KEY"],
    ),
    ChatProvider {
        placeholder_key: Some("api-key-not-set"),
        strict_tools: false,
        ..like_openai("ollama", "", "OLLAMA_BASE_URL", &["OLLAMA_API_KEY"])
    },
    ChatProvider {
        thinking: SendThinking::Field("reasoning_content"),
        ..like_openai("zai", "https://api.z.ai/api/paas/v4", "", &["ZAI_API_KEY"])
    },
    ChatProvider {
        strict_tools: false,
        ..like_openai(
            "huggingface",
            "https://router.huggingface.co/v1",
            "",
            &["HF_TOKEN"],
        )
    },
    ChatProvider {
        host_suffix: "/api/v2/cortex/v1",
        ..like_openai("snowflake", "", "", &["SNOWFLAKE_TOKEN"])
    },
    ChatProvider {
        host_suffix: "/openai/v1",
        ..like_openai(
            "groq",
            "https://api.groq.com/openai/v1",
            "",
            &["GROQ_API_KEY"],
        )
    },
    ChatProvider {
        host_suffix: "/v1",
        max_tokens_field: "max_tokens",
        strict_tools: false,
        ..like_openai(
            "mistral",
            "https://api.mistral.ai/v1",
            "",
            &["MISTRAL_API_KEY"],
        )
    },
    ChatProvider {
        strict_tools: false,
        ..like_openai("xai", "https://api.x.ai/v1", "", &["XAI_API_KEY"])
    },
];

/// The provider of a prefix, if its API is Chat Completions.
#[must_use]
pub fn chat_provider(prefix: &str) -> Option<&'static ChatProvider> {
    CHAT_PROVIDERS
        .iter()
        .find(|provider| provider.prefix == prefix)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_prefix_is_there_once() {
        for provider in CHAT_PROVIDERS {
            assert_eq!(chat_provider(provider.prefix), Some(provider));
        }
        assert_eq!(chat_provider("openai"), None);
    }
}
