"""Hooks of providers: one as an agent's tool, two in the code of a task."""

from __future__ import annotations

from airflow.providers.common.ai.operators.agent import AgentOperator
from airflow.providers.common.ai.toolsets.hook import HookToolset
from airflow.providers.http.hooks.http import HttpHook
from airflow.providers.smtp.hooks.smtp import SmtpHook
from airflow.sdk import DAG, task

with DAG(dag_id="hooks", schedule=None, catchup=False):
    tides = HttpHook(method="GET", http_conn_id="tides_web")
    AgentOperator(
        task_id="ask",
        queue="agents",
        llm_conn_id="pydanticai_default",
        prompt="Is it high tide?",
        toolsets=[HookToolset(tides, allowed_methods=["run"], tool_prefix="web")],
    )

    @task(queue="agents")
    def tell():
        answer = HttpHook(method="GET", http_conn_id="tides_web").run("v1/tide", data={"port": "Oslo", "days": 2})
        with SmtpHook(smtp_conn_id="tides_post") as post:
            post.send_email_smtp(
                to=["mate@example.com", "crew@example.com"],
                bcc="owner@example.com",
                subject="Tide at Oslo",
                html_content=f"<b>{answer.text}</b>",
            )
        return [answer.status_code, answer.json()]

    tell()
