"""`message_history` in and out, against pydantic-ai's own adapter."""

from __future__ import annotations

import json
from pathlib import Path

from harness.local_run import xcoms_of_the_task
from pydantic_ai.messages import (
    ModelMessagesTypeAdapter,
    ModelRequest,
    ModelResponse,
    RetryFeedbackPart,
    RetryInfo,
    SystemPromptPart,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.usage import RequestUsage

DAG = '''
from pathlib import Path
from airflow.sdk import DAG
from airflow.providers.common.ai.operators.agent import AgentOperator
from pydantic import BaseModel
from pydantic_ai.toolsets import FunctionToolset


class Ship(BaseModel):
    name: str
    berth: int


def look(place: str) -> dict:
    """Looks around."""
    return {"seen": [place, 1.50, None]}


with DAG("stored"):
    AgentOperator(
        task_id="ask",
        prompt="Which one? \\u00e9",
        llm_conn_id="nowhere",
        system_prompt="Be brief.",
        output_type=Ship,
        message_history=(Path(__file__).parent / "history.txt").read_text(),
        toolsets=[FunctionToolset([look])],
    )
'''

TURNS = [
    {"tool_calls": [{"name": "look", "args": {"place": "north"}}]},
    {"text": "I think it is the Aurora."},
    {"tool_calls": [{"name": "final_result", "args": {"name": "Aurora", "berth": "4"}}]},
]


def continued(folder: Path, history: str) -> str:
    """The XCom `message_history` of an agent that goes on with a conversation."""
    (folder / "stored.py").write_text(DAG)
    (folder / "history.txt").write_text(history)
    (folder / "stored.transcript.json").write_text(json.dumps({"turns": TURNS}))
    xcoms = xcoms_of_the_task(folder / "stored.py")
    assert xcoms["return_value"]["__data__"] == {"name": "Aurora", "berth": 4}
    left: str = xcoms["message_history"]
    return left


def test_what_a_run_leaves_is_what_the_adapter_would_write(tmp_path: Path) -> None:
    text = continued(tmp_path, "[]")
    messages = ModelMessagesTypeAdapter.validate_json(text)
    assert ModelMessagesTypeAdapter.dump_json(messages).decode() == text
    kinds = [[part.part_kind for part in message.parts] for message in messages]
    assert kinds == [
        ["user-prompt"],
        ["tool-call"],
        ["tool-return"],
        ["text"],
        ["retry-feedback"],
        ["tool-call"],
        ["tool-return"],
    ]


def test_what_the_adapter_wrote_is_gone_on_with_and_kept_to_the_byte(tmp_path: Path) -> None:
    stored: list[ModelRequest | ModelResponse] = [
        ModelRequest(
            parts=[SystemPromptPart("Old."), UserPromptPart(["Two", "texts \u2713"])],
            instructions="Be old.",
            run_id="r1",
            conversation_id="c1",
            metadata={"k": [1, 2.5]},
        ),
        ModelResponse(
            parts=[
                ThinkingPart("Hm.", id="reasoning_content", signature="s", provider_name="openai"),
                TextPart("Looking."),
                ToolCallPart("look", {"place": "south"}, tool_call_id="t1"),
                ToolCallPart("look", '{"place":  1}', tool_call_id="t2"),
            ],
            usage=RequestUsage(input_tokens=3, output_tokens=4, details={"reasoning_tokens": 2}),
            model_name="gpt-5",
            provider_name="openai",
            finish_reason="tool_call",
            run_id="r1",
            conversation_id="c1",
        ),
        ModelRequest(
            parts=[
                ToolReturnPart("look", {"seen": "south"}, tool_call_id="t1", metadata={"m": 1}),
                ToolReturnPart(
                    "look",
                    "Say where.",
                    tool_call_id="t2",
                    outcome="retried",
                    retry=RetryInfo(cause="model_retry", attempt=1, max_retries=1),
                ),
                RetryFeedbackPart("Please return text.", retry=RetryInfo(cause="no_output")),
            ]
        ),
        ModelResponse(parts=[TextPart("Nothing there.")], model_name="gpt-5"),
    ]
    text = ModelMessagesTypeAdapter.dump_json(stored).decode()
    after = continued(tmp_path, text)
    assert after.startswith(text.removesuffix("]") + ",")
    messages = ModelMessagesTypeAdapter.validate_json(after)
    assert ModelMessagesTypeAdapter.dump_json(messages).decode() == after
    assert {message.conversation_id for message in messages[len(stored) :]} == {"c1"}
