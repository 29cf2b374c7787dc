"""A function that builds its agent itself, as with pydantic-ai alone."""

from __future__ import annotations

from airflow.providers.common.ai.hooks.pydantic_ai import PydanticAIHook
from airflow.providers.common.ai.toolsets.sql import SQLToolset
from airflow.sdk import DAG, get_current_context, task
from pydantic import BaseModel
from pydantic_ai import ModelRetry, RunContext


class Verdict(BaseModel):
    customer: str
    orders: int


with DAG(dag_id="agents_in_python", schedule=None):

    @task(queue="agents")
    def judge() -> list:
        agent = PydanticAIHook(llm_conn_id="pydanticai_default").create_agent(
            output_type=Verdict,
            instructions="Ask the database.",
            system_prompt="You are exact.",
            deps_type=str,
            toolsets=[SQLToolset("shop", allowed_tables=["customers"], max_rows=2)],
            retries=2,
        )

        @agent.instructions
        def place(ctx: RunContext[str]) -> str:
            return f"The shop is in {ctx.deps}."

        @agent.tool
        def run_of(ctx: RunContext[str], word: str) -> str:
            """The run, and a word."""
            return f"{get_current_context()['dag'].dag_id} in {ctx.deps}: {word}"

        @agent.output_validator
        def has_orders(ctx: RunContext[str], verdict: Verdict) -> Verdict:
            if not verdict.orders:
                raise ModelRetry("count again")
            return verdict

        first = agent.run_sync("Who?", deps="Bergen")
        second = agent.run_sync("And now?", deps="Oslo", message_history=first.all_messages())
        return [first.output.customer, second.output.orders, second.usage.requests, len(second.all_messages())]

    judge()
