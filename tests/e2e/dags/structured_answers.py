"""Answers that are models. Tasks of other queues, where Airflow's own worker runs, read them as their classes."""

from __future__ import annotations

from enum import Enum

from airflow.providers.common.ai.operators.agent import AgentOperator
from airflow.sdk import DAG, task
from pydantic import BaseModel, Field, field_validator


class Cargo(str, Enum):
    FISH = "fish"
    TIMBER = "timber"


class Berth(BaseModel):
    quay: str
    number: int = Field(ge=1, description="Counted from the lighthouse.")


class Ship(BaseModel):
    """A ship in the harbour."""

    name: str
    cargo: Cargo = Cargo.FISH
    berths: list[Berth]

    @field_validator("name")
    @classmethod
    def is_a_name(cls, name: str) -> str:
        if not name.istitle():
            raise ValueError("a ship's name begins with a capital letter")
        return name


with DAG(dag_id="structured_answers", schedule=None):
    ask = AgentOperator(
        task_id="ask",
        queue="agents",
        llm_conn_id="pydanticai_default",
        prompt="Which ship is the next?",
        output_type=Ship,
        agent_params={"retries": 2},
    )

    @task(queue="python")
    def read(ship: Ship) -> list[str]:
        berth = ship.berths[0]
        return [type(ship).__name__, type(ship.cargo).__name__, type(berth).__name__, f"{berth.quay}{berth.number + 1}"]

    read(ask.output)
