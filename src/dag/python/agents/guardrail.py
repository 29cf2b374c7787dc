"""Checks of a run's input and of its answer."""

from updraft_record import REQUIRED, Record


class GuardrailFunctionOutput(Record):
    """What a check has found."""

    _positional = {"output_info": REQUIRED, "tripwire_triggered": REQUIRED}


class InputGuardrailResult(Record):
    """What a check of the input has found."""

    _positional = {"guardrail": REQUIRED, "output": REQUIRED}


class OutputGuardrailResult(Record):
    """What a check of the answer has found."""

    _positional = {"guardrail": REQUIRED, "agent_output": REQUIRED, "agent": REQUIRED, "output": REQUIRED}


class _Guardrail(Record):
    def __class_getitem__(cls, item):
        return cls

    def get_name(self):
        """The name given, or the function's."""
        return self.name or self.guardrail_function.__name__

    async def _found(self, *args):
        if not callable(self.guardrail_function):
            from agents.exceptions import UserError

            raise UserError(f"Guardrail function must be callable, got {self.guardrail_function}")
        found = self.guardrail_function(*args)
        return await found if hasattr(found, "__await__") else found


class InputGuardrail(_Guardrail):
    """A check of the input. It runs beside the first turn, or before it."""

    _positional = {"guardrail_function": REQUIRED, "name": None, "run_in_parallel": True}

    async def run(self, agent, input, context):
        """Checks."""
        return InputGuardrailResult(self, await self._found(context, agent, input))


class OutputGuardrail(_Guardrail):
    """A check of the answer."""

    _positional = {"guardrail_function": REQUIRED, "name": None}

    async def run(self, context, agent, agent_output):
        """Checks."""
        return OutputGuardrailResult(self, agent_output, agent, await self._found(context, agent, agent_output))


def input_guardrail(func=None, *, name=None, run_in_parallel=True):
    """A decorator that makes a check of the input."""

    def decorate(function):
        return InputGuardrail(function, name or function.__name__, run_in_parallel)

    return decorate if func is None else decorate(func)


def output_guardrail(func=None, *, name=None):
    """A decorator that makes a check of the answer."""

    def decorate(function):
        return OutputGuardrail(function, name or function.__name__)

    return decorate if func is None else decorate(func)
