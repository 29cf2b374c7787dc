"""Hooks for the models behind connections."""

from airflow.sdk.bases.hook import BaseHook
from updraft_hold import hold

OutputT = object


class PydanticAIHook(BaseHook):
    """Knows the model of a connection; only the worker's own agent tasks talk to it."""

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
        conn_type = cls.get_connection(conn_id).conn_type
        for hook_class in (PydanticAIAzureHook, PydanticAIBedrockHook, PydanticAIVertexHook):
            if hook_class.conn_type == conn_type:
                return hook_class(llm_conn_id=conn_id, **(hook_params or {}))
        return PydanticAIHook(llm_conn_id=conn_id, **(hook_params or {}))

    def get_conn(self):
        """The model."""
        raise RuntimeError(
            "a model can't be called from Dag code here: use AgentOperator or @task.agent, or a Python worker"
        )

    def create_agent(self, output_type=str, instructions=None, **agent_kwargs):
        """An agent, which Dag code can't run here."""
        from pydantic_ai.agent import Agent

        return Agent(None, output_type=output_type, instructions=instructions, **agent_kwargs)

    def test_connection(self):
        """Is the connection set up?"""
        return False, "not available here"


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
