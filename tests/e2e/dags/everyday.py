"""What everyday Dags do around their agents: params, mapping over an upstream list, skips, failures, factories."""

from __future__ import annotations

from datetime import timedelta

from airflow.exceptions import AirflowFailException, AirflowSkipException
from airflow.providers.common.ai.operators.agent import AgentOperator
from airflow.sdk import DAG, Param, dag, get_current_context, task
from everyday_helpers import question, regions

DEFAULTS = {"queue": "agents", "retries": 1, "retry_delay": timedelta(seconds=1)}


@dag(dag_id="everyday_mapping", schedule=None, default_args=DEFAULTS, params={"year": 2026})
def everyday_mapping():
    @task
    def list_regions() -> list[str]:
        return regions()

    @task.agent(llm_conn_id="pydanticai_default", model_id="openai-chat:everyday")
    def ask(region: str, ti=None, **context) -> str:
        return question(region, year=context["params"]["year"]) + f" ({ti.map_index})"

    @task
    def collect(answers) -> dict:
        context = get_current_context()
        return {"answers": list(answers), "run": context["run_id"]}

    collect(ask.expand(region=list_regions()))


everyday_mapping()


with DAG(
    dag_id="everyday_conf",
    schedule=None,
    default_args=DEFAULTS,
    params={"topic": Param("pens", type="string"), "count": Param(3, type="integer", minimum=1)},
):
    AgentOperator(
        task_id="ask",
        llm_conn_id="pydanticai_default",
        model_id="openai-chat:everyday",
        prompt="{{ params.topic | upper }} {{ params.count + 1 }} {{ dag_run.conf['note'] }} {{ run_id == ti.run_id }}",
    )

with DAG(dag_id="everyday_outcomes", schedule=None, default_args=DEFAULTS):

    @task
    def skip() -> None:
        raise AirflowSkipException("nothing to do today")

    @task
    def after_skip() -> str:
        return "never"

    @task
    def fail_for_good() -> None:
        raise AirflowFailException("no retry will help")

    @task(multiple_outputs=True)
    def several() -> dict:
        return {"first": 1, "second": [2, 2]}

    @task
    def uses(first: int, second: list) -> int:
        print("printed by the task")
        return first + sum(second)

    skip() >> after_skip()
    fail_for_good()
    parts = several()
    uses(parts["first"], parts["second"])


def make(name: str) -> DAG:
    with DAG(dag_id=f"everyday_made_{name}", schedule=None, default_args=DEFAULTS) as made:
        AgentOperator(
            task_id="ask",
            llm_conn_id="pydanticai_default",
            model_id="openai-chat:everyday",
            prompt=f"I am {name}.",
        )
    return made


for name in ("one", "two"):
    globals()[f"made_{name}"] = make(name)
