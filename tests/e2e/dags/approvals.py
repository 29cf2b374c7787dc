"""Answers of models that wait for a person."""

from __future__ import annotations

from datetime import timedelta

from airflow.providers.common.ai.operators.agent import AgentOperator
from airflow.providers.common.ai.operators.llm import LLMOperator
from airflow.providers.common.ai.operators.llm_branch import DecisionPolicy, LLMBranchOperator
from airflow.providers.common.ai.operators.llm_sql import LLMSQLQueryOperator
from airflow.providers.standard.operators.empty import EmptyOperator
from airflow.sdk import DAG, BaseNotifier
from pydantic import BaseModel


class Berth(BaseModel):
    quay: str
    number: int


class Bell(BaseNotifier):
    template_fields = ("text",)

    def __init__(self, text):
        super().__init__()
        self.text = text

    def notify(self, context):
        self.log.info("the bell rings: %s", self.text)


common = {"queue": "agents", "llm_conn_id": "pydanticai_default"}

with DAG(dag_id="approvals_edited", schedule=None):
    LLMOperator(
        task_id="ask",
        model_id="openai-chat:harbour-master",
        prompt="Where does the Aurora lie on {{ ds }}?",
        output_type=Berth,
        require_approval=True,
        allow_modifications=True,
        approval_notifiers=Bell("{{ task.subject }}"),
        **common,
    ) >> EmptyOperator(task_id="after", queue="agents")

with DAG(dag_id="approvals_rejected", schedule=None):
    LLMOperator(task_id="ask", model_id="openai-chat:gruff", prompt="Greet.", require_approval=True, **common)

with DAG(dag_id="approvals_timed_out", schedule=None):
    for answer in ("approve", "fail"):
        LLMOperator(
            task_id=answer,
            model_id="openai-chat:patient",
            prompt="Greet.",
            require_approval=True,
            approval_timeout=timedelta(seconds=2),
            on_approval_timeout=answer,
            **common,
        )

with DAG(dag_id="approvals_reviewed", schedule=None):
    AgentOperator(
        task_id="ask",
        model_id="openai-chat:poet",
        system_prompt="You are a poet.",
        prompt="Write to the Aurora.",
        enable_hitl_review=True,
        hitl_poll_interval=0.5,
        **common,
    )

with DAG(dag_id="approvals_branch", schedule=None):
    LLMBranchOperator(
        task_id="ask",
        model_id="openai-chat:unsure",
        prompt="What next?",
        decision_policy=DecisionPolicy(min_confidence=0.8),
        allow_modifications=True,
        **common,
    ) >> [EmptyOperator(task_id="load", queue="agents"), EmptyOperator(task_id="wait", queue="agents")]

with DAG(dag_id="approvals_query", schedule=None):
    LLMSQLQueryOperator(
        task_id="ask",
        model_id="openai-chat:clerk",
        prompt="How many ships?",
        dialect="postgres",
        require_approval=True,
        allow_modifications=True,
        **common,
    )
