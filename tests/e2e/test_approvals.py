"""Answers of models that wait for a person, who answers in Airflow's interface."""

from __future__ import annotations

import time
from typing import Any

from harness.airflow import Airflow, ApiError, Run
from harness.model_server import ModelServer, call, say
from harness.worker import Worker


def detail(airflow: Airflow, run: Run, map_index: int = -1) -> dict[str, Any]:
    """What the person sees, once the task waits."""
    airflow.wait_for_task(run, "ask", {"awaiting_input"}, timeout=120)
    return airflow.get(f"{airflow._run(run)}/taskInstances/ask/{map_index}/hitlDetails")


def answer(airflow: Airflow, run: Run, choice: str, **params: Any) -> None:
    body = {"chosen_options": [choice], "params_input": params}
    airflow.request("PATCH", f"{airflow._run(run)}/taskInstances/ask/-1/hitlDetails", body)


def test_an_edited_answer_is_read_back_in_its_type(airflow: Airflow, worker: Worker, model: ModelServer) -> None:
    script = model.script("harbour-master", [call("final_result", quay="A", number=3)])
    run = airflow.trigger("approvals_edited")
    seen = detail(airflow, run)
    assert seen["subject"] == "Review output for task `ask`"
    prompt = script.requests[0]["messages"][-1]["content"]
    assert prompt.startswith("Where does the Aurora lie on 2026-01-01")
    assert seen["body"] == f'```\nPrompt: {prompt}\n\n{{"quay":"A","number":3}}\n```'
    assert seen["options"] == ["Approve", "Reject"]
    assert seen["params"]["output"]["value"] == '{"quay":"A","number":3}'
    pending = airflow.xcoms(run, "ask")["decision"]
    assert (pending["review"], pending["decided_by"]) == ("require_approval", None)
    answer(airflow, run, "Approve", output='{"quay": "B", "number": 4}')
    assert airflow.wait_for_run(run) == "success"
    assert len(script.requests) == 1
    xcoms = airflow.xcoms(run, "ask")
    assert xcoms["return_value"]["__data__"] == {"quay": "B", "number": 4}
    assert xcoms["decision"]["decided_by"] == "human"
    events = airflow.log(run, "ask").events
    assert "Pausing task as AWAITING_INPUT." in events
    assert "the bell rings: Review output for task `ask`" in events
    assert any(event.startswith("Output approved by ") for event in events)


def test_a_rejected_answer_fails_the_task(airflow: Airflow, worker: Worker, model: ModelServer) -> None:
    model.script("gruff", [say("What do you want?")])
    run = airflow.trigger("approvals_rejected")
    assert detail(airflow, run)["params"] == {}
    answer(airflow, run, "Reject")
    assert airflow.wait_for_run(run) == "failed"
    assert "Output was rejected by the reviewer" in airflow.log(run, "ask").text
    xcoms = airflow.xcoms(run, "ask")
    assert "return_value" not in xcoms
    assert xcoms["decision"]["decided_by"] == "human"


def test_a_review_that_nobody_answers_ends_as_the_dag_says(
    airflow: Airflow, worker: Worker, model: ModelServer
) -> None:
    model.script("patient", [say("Hello.")])
    run, state = airflow.run_dag("approvals_timed_out", timeout=180)
    assert state == "failed"
    states = {ti["task_id"]: ti["state"] for ti in airflow.task_instances(run)}
    assert states == {"approve": "success", "fail": "failed"}
    assert airflow.xcoms(run, "approve")["return_value"] == "Hello."
    assert airflow.xcoms(run, "approve")["decision"]["decided_by"] == "timeout_default"
    assert airflow.xcoms(run, "fail")["decision"]["decided_by"] == "timeout"
    assert "HITLTimeoutError" in airflow.log(run, "fail").text


def test_an_uncertain_choice_is_made_by_a_person(airflow: Airflow, worker: Worker, model: ModelServer) -> None:
    model.script("unsure", [call("final_result", response="wait")])
    run = airflow.trigger("approvals_branch")
    seen = detail(airflow, run)
    assert "Confidence: not reported by the model (minimum 0.80)" in seen["body"]
    answer(airflow, run, "Approve", output="load")
    assert airflow.wait_for_run(run) == "success"
    states = {ti["task_id"]: ti["state"] for ti in airflow.task_instances(run)}
    assert states == {"ask": "success", "load": "success", "wait": "skipped"}
    decision = airflow.xcoms(run, "ask")["decision"]
    assert (decision["proposed"], decision["action"], decision["decided_by"]) == ("wait", "load", "human")

    # One that is rejected leads nowhere.
    run = airflow.trigger("approvals_branch")
    detail(airflow, run)
    answer(airflow, run, "Reject")
    assert airflow.wait_for_run(run) == "success"
    states = {ti["task_id"]: ti["state"] for ti in airflow.task_instances(run)}
    assert states == {"ask": "success", "load": "skipped", "wait": "skipped"}


def test_an_edited_query_is_checked_again(airflow: Airflow, worker: Worker, model: ModelServer) -> None:
    model.script("clerk", [say("```sql\nSELECT count(*) FROM ships\n```")])
    run = airflow.trigger("approvals_query")
    assert detail(airflow, run)["params"]["output"]["value"] == "SELECT count(*) FROM ships"
    answer(airflow, run, "Approve", output="DROP TABLE ships")
    assert airflow.wait_for_run(run) == "failed"
    assert "Statement type 'Drop' is not allowed" in airflow.log(run, "ask").text


def reviewed(airflow: Airflow, run: Run, iteration: int) -> dict[str, Any]:
    """The session of the `hitl_review` plugin, once the answer of this iteration is there."""
    where = f"dag_id={run.dag_id}&run_id={run.run_id}&task_id=ask"
    deadline = time.monotonic() + 60
    while True:
        try:
            session = airflow.request("GET", f"/sessions/find?{where}", base="/hitl-review")
            if session["iteration"] == iteration:
                return session
        except ApiError as error:
            assert error.status == 404, error
        assert time.monotonic() < deadline, f"no answer {iteration} to review"
        time.sleep(0.2)


def review(airflow: Airflow, run: Run, verdict: str, feedback: str | None = None) -> None:
    where = f"dag_id={run.dag_id}&run_id={run.run_id}&task_id=ask"
    body = None if feedback is None else {"feedback": feedback}
    airflow.request("POST", f"/sessions/{verdict}?{where}", body, base="/hitl-review")


def test_an_agent_answers_anew_until_the_reviewer_approves(
    airflow: Airflow, worker: Worker, model: ModelServer
) -> None:
    script = model.script("poet", [say("O ship."), say("O ship of ships.")])
    run = airflow.trigger("approvals_reviewed")
    session = reviewed(airflow, run, 1)
    assert (session["prompt"], session["current_output"]) == ("Write to the Aurora.", "O ship.")
    review(airflow, run, "feedback", "Longer, please.")
    session = reviewed(airflow, run, 2)
    assert session["current_output"] == "O ship of ships."
    said = [(entry["role"], entry["content"]) for entry in session["conversation"]]
    assert said == [("assistant", "O ship."), ("human", "Longer, please."), ("assistant", "O ship of ships.")]
    review(airflow, run, "approve")
    assert airflow.wait_for_run(run) == "success"
    messages = [(message["role"], message["content"]) for message in script.requests[1]["messages"]]
    assert messages == [
        ("system", "You are a poet."),
        ("user", "Write to the Aurora."),
        ("assistant", "O ship."),
        ("user", "Longer, please."),
    ]
    xcoms = airflow.xcoms(run, "ask")
    assert xcoms["return_value"] == "O ship of ships."
    assert xcoms["_link_HITLReviewLink"] == f"/dags/{run.dag_id}/runs/{run.run_id}/tasks/ask/plugin/hitl-review"
    events = airflow.log(run, "ask").events
    assert "Feedback received (iteration 1): Longer, please." in events
    assert "Output approved at iteration 2." in events


def test_a_reviewer_who_rejects_fails_the_task(airflow: Airflow, worker: Worker, model: ModelServer) -> None:
    model.script("poet", [say("O ship.")])
    run = airflow.trigger("approvals_reviewed")
    reviewed(airflow, run, 1)
    review(airflow, run, "reject")
    assert airflow.wait_for_run(run) == "failed"
    assert "Output rejected at iteration 1." in airflow.log(run, "ask").text
