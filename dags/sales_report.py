"""An agent reports on the shop's sales by the shop's own rules, which it reads from a skill before it queries.

The skill lies in skills/shop-reporting beside the Dag folder: instructions, a table of the columns, and a script that
counts days. Needs two connections: `pydanticai_default` (the model) and `shop` (the database in data/shop.db).
"""

from __future__ import annotations

from pathlib import Path

from airflow.providers.common.ai.operators.agent import AgentOperator
from airflow.providers.common.ai.toolsets.skills import AgentSkillsToolset
from airflow.providers.common.ai.toolsets.sql import SQLToolset
from airflow.sdk import DAG

SKILLS = Path(__file__).parent.parent / "skills"

with DAG(dag_id="sales_report", schedule=None, catchup=False, tags=["example"]):
    AgentOperator(
        task_id="report",
        queue="agents",
        llm_conn_id="pydanticai_default",
        system_prompt="You report on a small mail-order shop. Load the skill that fits before you query.",
        prompt=(
            "What was the revenue of October 2026, and how many customers were active on {{ params.on }}?"
        ),
        toolsets=[
            AgentSkillsToolset(sources=[str(SKILLS)]),
            SQLToolset(db_conn_id="shop", allowed_tables=["customers", "orders", "products"], max_rows=20),
        ],
        params={"on": "2026-11-10"},
    )
