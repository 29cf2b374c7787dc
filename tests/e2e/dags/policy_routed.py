"""No queue is named here: the cluster policy names it."""

from __future__ import annotations

from airflow.providers.common.ai.operators.agent import AgentOperator
from airflow.sdk import DAG, task

with DAG(dag_id="policy_routed", schedule=None):
    AgentOperator(task_id="ask", llm_conn_id="pydanticai_default", model_id="openai-chat:hello", prompt="Say hello.")

    AgentOperator.partial(
        task_id="ask_mapped", llm_conn_id="pydanticai_default", model_id="openai-chat:hello"
    ).expand(prompt=["Say hello.", "Say hello again."])

    @task.agent(llm_conn_id="pydanticai_default", model_id="openai-chat:hello")
    def ask_decorated() -> str:
        return "Say hello."

    ask_decorated()
