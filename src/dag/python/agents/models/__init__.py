"""The models that agents ask."""

from updraft_lazy import lazy_names

__getattr__, _ = lazy_names(
    __name__,
    {
        "agents.models.default_models": ("get_default_model", "get_default_model_settings", "is_gpt_5_default"),
        "agents.models.chat_messages": (),
        "agents.models.interface": ("Model", "ModelProvider", "ModelTracing"),
        "agents.models.openai_chatcompletions": ("OpenAIChatCompletionsModel",),
        "agents.models.openai_responses": ("OpenAIResponsesModel",),
        "agents.models.openai_provider": ("OpenAIProvider",),
        "agents.models.multi_provider": ("MultiProvider",),
    },
    fallback=True,
)
