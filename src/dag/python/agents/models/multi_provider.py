"""Models by names with the provider before them: `openai/gpt-5`."""

from agents.exceptions import UserError
from agents.models.interface import ModelProvider
from agents.models.openai_provider import OpenAIProvider


class MultiProvider(ModelProvider):
    """Models by names with the provider before them; OpenAI's without one."""

    def __init__(self, *, provider_map=None, **openai):
        self._providers = dict(getattr(provider_map, "_mapping", None) or {})
        given = {name.removeprefix("openai_"): value for name, value in openai.items()}
        if "client" in given:
            given["openai_client"] = given.pop("client")
        self._openai = OpenAIProvider(**given)

    def get_model(self, model_name):
        """The model of a name."""
        prefix, slash, name = (model_name or "").partition("/")
        if not slash:
            return self._openai.get_model(model_name)
        if prefix in self._providers:
            return self._providers[prefix].get_model(name)
        if prefix == "openai":
            return self._openai.get_model(name)
        if prefix in ("litellm", "any-llm"):
            from updraft_unavailable import refuse

            refuse(f"the model {model_name}, which another library asks")
        raise UserError(f"Unknown prefix: {prefix}")


class MultiProviderMap:
    """Providers by the prefixes of their models' names."""

    def __init__(self):
        self._mapping = {}

    def add_provider(self, prefix, provider):
        """Adds a provider."""
        self._mapping[prefix] = provider
