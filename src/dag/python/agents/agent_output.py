"""The type of an agent's answer."""

import typing

from agents.exceptions import ModelBehaviorError, UserError

_WRAPPED = "response"


class AgentOutputSchemaBase:
    """Says what an answer looks like, and reads it."""

    def is_plain_text(self):
        """Is the answer text?"""
        raise NotImplementedError

    def name(self):
        """The name of the type."""
        raise NotImplementedError

    def json_schema(self):
        """The schema of an answer that is no text."""
        raise NotImplementedError

    def is_strict_json_schema(self):
        """Is the schema strict?"""
        raise NotImplementedError

    def validate_json(self, json_str):
        """Reads an answer."""
        raise NotImplementedError


class AgentOutputSchema(AgentOutputSchemaBase):
    """An answer of a Python type."""

    def __init__(self, output_type, strict_json_schema=True):
        self.output_type = output_type
        self._strict_json_schema = strict_json_schema
        self._is_wrapped = False
        self._type_adapter = None
        if self.is_plain_text():
            return
        from pydantic import TypeAdapter

        self._is_wrapped = not _is_object(output_type)
        self._type_adapter = TypeAdapter(output_type)
        self._output_schema = self._schema(output_type)
        if strict_json_schema:
            from agents.strict_schema import ensure_strict_json_schema

            try:
                self._output_schema = ensure_strict_json_schema(self._output_schema)
            except UserError as error:
                raise UserError(
                    "Strict JSON schema is enabled, but the output type is not valid. Either make the output type "
                    "strict, or wrap your type with AgentOutputSchema(YourType, strict_json_schema=False)"
                ) from error

    def _schema(self, output_type):
        if not self._is_wrapped:
            return self._type_adapter.json_schema()
        # What is no object is put into one.
        from pydantic import create_model

        return create_model("OutputType", **{_WRAPPED: (output_type, ...)}).model_json_schema()

    def is_plain_text(self):
        """Is the answer text?"""
        return self.output_type is None or self.output_type is str

    def is_strict_json_schema(self):
        """Is the schema strict?"""
        return self._strict_json_schema

    def json_schema(self):
        """The schema of the type."""
        if self.is_plain_text():
            raise UserError("Output type is plain text, so no JSON schema is available")
        return self._output_schema

    def validate_json(self, json_str):
        """Reads an answer."""
        from pydantic import ValidationError

        try:
            if not self._is_wrapped:
                return self._type_adapter.validate_json(json_str)
            import json

            whole = json.loads(json_str)
            if not isinstance(whole, dict) or _WRAPPED not in whole:
                raise ValueError(f"Could not find key {_WRAPPED} in JSON")
            return self._type_adapter.validate_json(json.dumps(whole[_WRAPPED]))
        except (ValidationError, ValueError):
            from agents.tracing import attach_error_to_current_span

            attach_error_to_current_span("Invalid JSON provided", {})
        # Without the answer, and without what is wrong with it: both may hold what must not be told.
        raise ModelBehaviorError("Invalid JSON when parsing model output")

    def name(self):
        """The name of the type."""
        return _name(self.output_type)


def _is_object(output_type):
    from pydantic import BaseModel

    made = typing.get_origin(output_type) or output_type
    return isinstance(made, type) and issubclass(made, (BaseModel, dict))


def _name(output_type):
    origin, args = typing.get_origin(output_type), typing.get_args(output_type)
    if origin is None:
        return getattr(output_type, "__name__", repr(output_type))
    if not args:
        return str(output_type)
    return f"{getattr(origin, '__name__', str(origin))}[{', '.join(map(_name, args))}]"


def of_agent(agent):
    """How an agent answers; None for text."""
    if agent.output_type is None or agent.output_type is str:
        return None
    if isinstance(agent.output_type, AgentOutputSchemaBase):
        return agent.output_type
    return AgentOutputSchema(agent.output_type)
