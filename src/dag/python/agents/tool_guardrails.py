"""Checks of one tool's arguments and results."""

from updraft_record import REQUIRED, Fresh, Record


class ToolGuardrailFunctionOutput(Record):
    """What a check has found, and what is to come of it."""

    _positional = {"output_info": REQUIRED, "behavior": Fresh(lambda: {"type": "allow"})}

    @classmethod
    def allow(cls, output_info=None):
        """Goes on."""
        return cls(output_info)

    @classmethod
    def reject_content(cls, message, output_info=None):
        """Goes on, and tells the model this in the tool's place."""
        return cls(output_info, {"type": "reject_content", "message": message})

    @classmethod
    def raise_exception(cls, output_info=None):
        """Ends the run."""
        return cls(output_info, {"type": "raise_exception"})


class ToolInputGuardrailData(Record):
    """What a check of arguments is given."""

    _positional = {"context": REQUIRED, "agent": REQUIRED}


class ToolOutputGuardrailData(ToolInputGuardrailData):
    """What a check of a result is given."""

    _positional = {"context": REQUIRED, "agent": REQUIRED, "output": REQUIRED}


class ToolInputGuardrailResult(Record):
    """What a check of arguments has found."""

    _positional = {"guardrail": REQUIRED, "output": REQUIRED}


class ToolOutputGuardrailResult(ToolInputGuardrailResult):
    """What a check of a result has found."""


class _ToolGuardrail(Record):
    _positional = {"guardrail_function": REQUIRED, "name": None}

    def __class_getitem__(cls, item):
        return cls

    def get_name(self):
        """The name given, or the function's."""
        return self.name or self.guardrail_function.__name__

    async def run(self, data):
        """Checks."""
        found = self.guardrail_function(data)
        return await found if hasattr(found, "__await__") else found


class ToolInputGuardrail(_ToolGuardrail):
    """A check of a tool's arguments."""


class ToolOutputGuardrail(_ToolGuardrail):
    """A check of a tool's result."""


def _decorator(cls):
    def decorate_with(func=None, *, name=None):
        def decorate(function):
            return cls(function, name or function.__name__)

        return decorate if func is None else decorate(func)

    return decorate_with


tool_input_guardrail = _decorator(ToolInputGuardrail)
tool_output_guardrail = _decorator(ToolOutputGuardrail)
