"""Plain Python prepares the facts, a decorated function turns them into the prompt, the agent writes the digest."""

from __future__ import annotations

import csv
from collections import Counter
from pathlib import Path

from airflow.sdk import dag, task

TICKETS = Path(__file__).parent / "data" / "tickets.csv"


@dag(schedule=None, catchup=False, default_args={"queue": "agents"}, tags=["example"])
def ticket_digest():
    @task
    def read_tickets() -> dict:
        with open(TICKETS, newline="") as file:
            tickets = list(csv.DictReader(file))
        return {
            "open": [ticket["subject"] for ticket in tickets if ticket["status"] == "open"],
            "by_topic": dict(Counter(ticket["topic"] for ticket in tickets).most_common()),
        }

    @task.agent(
        llm_conn_id="pydanticai_default",
        system_prompt="You write the morning digest for a support team: three sentences, no greeting.",
    )
    def write_digest(tickets: dict) -> str:
        topics = ", ".join(f"{topic} ({count})" for topic, count in tickets["by_topic"].items())
        subjects = "\n".join(f"- {subject}" for subject in tickets["open"])
        return f"Tickets by topic: {topics}.\nStill open:\n{subjects}"

    write_digest(read_tickets())


ticket_digest()
