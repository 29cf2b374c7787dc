"""How a run is made, whatever its agents say."""

import os

from updraft_record import REQUIRED, Fresh, Record


def _provider():
    from agents.models.multi_provider import MultiProvider

    return MultiProvider()


def _sensitive():
    return os.environ.get("OPENAI_AGENTS_TRACE_INCLUDE_SENSITIVE_DATA", "true").lower() in ("1", "true", "yes", "on")


class RunConfig(Record):
    """How a run is made, whatever its agents say."""

    _positional = {
        "model": None,
        "model_provider": Fresh(_provider),
        "model_settings": None,
        "handoff_input_filter": None,
        "nest_handoff_history": False,
        "handoff_history_mapper": None,
        "input_guardrails": None,
        "output_guardrails": None,
        "tracing_disabled": False,
        "tracing": None,
        "trace_include_sensitive_data": Fresh(_sensitive),
        "workflow_name": "Agent workflow",
        "trace_id": None,
        "group_id": None,
        "trace_metadata": None,
        "session_input_callback": None,
        "call_model_input_filter": None,
        "tool_error_formatter": None,
        "session_settings": None,
        "reasoning_item_id_policy": None,
        "tool_not_found_behavior": "raise_error",
        "tool_execution": None,
        "sandbox": None,
    }

    def _made(self):
        from updraft_unavailable import refuse

        if self.sandbox is not None:
            refuse("RunConfig(sandbox=...)")
        if self.model_settings is not None:
            from agents.model_settings import coerced

            self.model_settings = coerced(self.model_settings, "RunConfig model_settings")


class ModelInputData(Record):
    """What the model is about to be told."""

    _positional = {"input": REQUIRED, "instructions": REQUIRED}


class CallModelData(Record):
    """What a filter of the model's input is given."""

    _positional = {"model_data": REQUIRED, "agent": REQUIRED, "context": REQUIRED}

    def __class_getitem__(cls, item):
        return cls


class ToolErrorFormatterArgs(Record):
    """What is asked when the model is to be told of a call that was not made."""

    _positional = {
        "kind": REQUIRED,
        "tool_type": REQUIRED,
        "tool_name": REQUIRED,
        "call_id": REQUIRED,
        "default_message": REQUIRED,
        "run_context": REQUIRED,
        "error": None,
    }


class ToolExecutionConfig(Record):
    """How the tools of a turn run."""

    _positional = {"max_function_tool_concurrency": None, "pre_approval_tool_input_guardrails": False}


class RunErrorHandlerInput(Record):
    """What is asked for an answer when a run would fail."""

    _positional = {"error": REQUIRED, "context": REQUIRED, "run_data": REQUIRED}

    def __class_getitem__(cls, item):
        return cls


class RunErrorHandlerResult(Record):
    """An answer in a failure's place."""

    _positional = {"final_output": REQUIRED, "include_in_history": True}
