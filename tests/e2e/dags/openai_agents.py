"""Agents of the OpenAI Agents SDK, as the provider's documentation writes them; the worker's queue is all that is added."""

from __future__ import annotations

from datetime import timedelta

from airflow.sdk import DAG, BaseHook, task

MODEL = "openai-agents"

with DAG(dag_id="openai_agent", schedule=None):

    @task(queue="agents")
    def run_openai_agent(question: str = "Which customer has the highest ARR?") -> str:
        from agents import Agent, OpenAIChatCompletionsModel, Runner, set_trace_processors
        from openai import AsyncOpenAI

        from airflow.providers.common.ai.tools.openai_agents import AirflowTools, AirflowTraceProcessor
        from airflow.providers.common.ai.tools.tracing import agent_framework_tracing
        from airflow.providers.common.ai.toolsets.sql import SQLToolset

        set_trace_processors([AirflowTraceProcessor()])

        llm = BaseHook.get_connection("pydanticai_default")
        agent = Agent(
            name="analyst",
            model=OpenAIChatCompletionsModel(
                model=MODEL,
                openai_client=AsyncOpenAI(api_key=llm.password, base_url=llm.host or None),
            ),
            instructions=(
                "You are a SQL analyst. Use list_tables and get_schema to explore "
                "the database, then run read-only queries to answer the question."
            ),
            tools=AirflowTools(SQLToolset(db_conn_id="agents_shop")),
        )
        with agent_framework_tracing():
            return Runner.run_sync(agent, question).final_output

    run_openai_agent()

with DAG(dag_id="openai_agent_durable", schedule=None):

    @task(queue="agents", retries=2, retry_delay=timedelta(seconds=1))
    def answer(question: str = "Write three lines.") -> str:
        from agents import Agent, OpenAIChatCompletionsModel, RunConfig
        from openai import AsyncOpenAI

        from airflow.providers.common.ai.durable.openai_agents import run_durably_sync
        from airflow.providers.common.ai.tools.openai_agents import AirflowTools
        from airflow.providers.common.ai.toolsets.sql import SQLToolset

        llm = BaseHook.get_connection("pydanticai_default")
        agent = Agent(
            name="analyst",
            model=OpenAIChatCompletionsModel(
                model=MODEL,
                openai_client=AsyncOpenAI(api_key=llm.password, base_url=llm.host or None, max_retries=0),
            ),
            tools=AirflowTools(SQLToolset(db_conn_id="agents_ledger", allow_writes=True)),
        )
        return run_durably_sync(agent, question, run_config=RunConfig(tracing_disabled=True)).final_output

    @task(queue="agents")
    def publish(text: str) -> str:
        return f"published: {text}"

    publish(answer())
