"""OpenAI's models by their names."""

from agents.models.interface import ModelProvider

# What `set_default_openai_*` of the SDK has said.
defaults = {"client": None, "key": None, "api": "responses"}
_shared = {}


class OpenAIProvider(ModelProvider):
    """OpenAI's models by their names."""

    def __init__(
        self,
        *,
        api_key=None,
        base_url=None,
        openai_client=None,
        organization=None,
        project=None,
        use_responses=None,
        use_responses_websocket=None,
        **more,
    ):
        if use_responses_websocket:
            from updraft_unavailable import refuse

            refuse("OpenAIProvider(use_responses_websocket=True)")
        self._client = openai_client
        self._given = {"api_key": api_key, "base_url": base_url, "organization": organization, "project": project}
        self._use_responses = use_responses

    def _get_client(self):
        if self._client is None:
            self._client = defaults["client"]
        if self._client is None:
            from openai import AsyncOpenAI

            given = {**self._given, "api_key": self._given["api_key"] or defaults["key"]}
            self._client = AsyncOpenAI(**given)
        return self._client

    def get_model(self, model_name):
        """The model of a name."""
        from agents.models.default_models import get_default_model
        from agents.models.openai_chatcompletions import OpenAIChatCompletionsModel
        from agents.models.openai_responses import OpenAIResponsesModel

        responses = defaults["api"] == "responses" if self._use_responses is None else self._use_responses
        cls = OpenAIResponsesModel if responses else OpenAIChatCompletionsModel
        return cls(model=model_name or get_default_model(), openai_client=self._get_client())
