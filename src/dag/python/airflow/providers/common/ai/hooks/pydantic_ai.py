"""Hooks for the models behind connections."""

from airflow.sdk.bases.hook import BaseHook
from updraft_hold import hold

OutputT = object


class PydanticAIHook(BaseHook):
    """Knows the model of a connection; agents talk to it."""

    conn_name_attr = "llm_conn_id"
    default_conn_name = "pydanticai_default"
    conn_type = "pydanticai"
    hook_name = "Pydantic AI"
    model_provider = None

    def __init__(self, llm_conn_id=None, model_id=None, fallback_conn_ids=None, **kwargs):
        super().__init__(**kwargs)
        hold(self, locals())
        if llm_conn_id is None:
            self.llm_conn_id = self.default_conn_name

    @classmethod
    def get_hook(cls, conn_id, hook_params=None):
        """The hook for a connection, by its type."""
        conn_type = getattr(_defined(cls, conn_id), "conn_type", None)
        for hook_class in (PydanticAIAzureHook, PydanticAIBedrockHook, PydanticAIVertexHook):
            if hook_class.conn_type == conn_type:
                return hook_class(llm_conn_id=conn_id, **(hook_params or {}))
        return PydanticAIHook(llm_conn_id=conn_id, **(hook_params or {}))

    def get_conn(self):
        """The model, for an agent."""
        return ConnectionModel(self.llm_conn_id, self.model_id, self.fallback_conn_ids)

    def create_agent(self, output_type=str, *, instructions=None, spec_file=None, **agent_kwargs):
        """An agent with this hook's model; with `spec_file` one as that file describes it."""
        from pydantic_ai.agent import Agent

        agent_kwargs.pop("instrument", None)
        if spec_file is None:
            if instructions is None:
                raise ValueError("instructions is required when spec_file is not provided.")
            return Agent(self.get_conn(), output_type=output_type, instructions=instructions, **agent_kwargs)
        if self.model_id or self._names_a_model():
            agent_kwargs["model"] = self.get_conn()
        return Agent.from_file(spec_file, output_type=output_type, instructions=instructions, **agent_kwargs)

    def _names_a_model(self):
        connection = _defined(self, self.llm_conn_id)
        return connection is None or bool(connection.extra_dejson.get("model"))

    def test_connection(self):
        """Is the connection set up?"""
        return False, "not available here"


def _defined(hook, conn_id):
    """The connection; None when there is none, which whoever asks its model is told: a transcript may stand in for it."""
    from airflow.exceptions import AirflowNotFoundException

    try:
        return hook.get_connection(conn_id)
    except AirflowNotFoundException:
        return None


class ConnectionModel:
    """The model of a connection."""

    def __init__(self, llm_conn_id, model_id, fallback_conn_ids):
        self.llm_conn_id = llm_conn_id
        self.model_id = model_id
        self.fallback_conn_ids = fallback_conn_ids

    def _updraft_model(self):
        return dict(vars(self))


class PydanticAIAzureHook(PydanticAIHook):
    """Models on Azure."""

    conn_type = "pydanticai_azure"
    default_conn_name = "pydanticai_azure_default"
    hook_name = "Pydantic AI (Azure OpenAI)"
    model_provider = "azure"


class PydanticAIBedrockHook(PydanticAIHook):
    """Models on AWS Bedrock."""

    conn_type = "pydanticai_bedrock"
    default_conn_name = "pydanticai_bedrock_default"
    hook_name = "Pydantic AI (AWS Bedrock)"
    model_provider = "bedrock"


class PydanticAIVertexHook(PydanticAIHook):
    """Models on Google Vertex AI."""

    conn_type = "pydanticai_vertex"
    default_conn_name = "pydanticai_vertex_default"
    hook_name = "Pydantic AI (Google Vertex AI)"
    model_provider = "google-cloud"
