"""What pydantic raises."""

_SHOWN = 50


class PydanticUserError(RuntimeError):
    """A model was written wrongly."""

    def __init__(self, message, code=None):
        super().__init__(message)
        self.message = message
        self.code = code


class PydanticUndefinedAnnotation(NameError):
    """An annotation names something that is not there."""


class Fault(ValueError):
    """One thing that is wrong with a value."""

    def __init__(self, kind, message, value, loc=(), ctx=None):
        super().__init__(message)
        self.kind = kind
        self.message = message
        self.value = value
        self.loc = loc
        self.ctx = ctx


class Faults(ValueError):
    """Several things that are wrong, deeper in a value."""

    def __init__(self, faults):
        super().__init__()
        self.faults = faults


def at(error, *loc):
    """The faults of an error, with where they are in the value around."""
    faults = error.faults if isinstance(error, Faults) else [error]
    for fault in faults:
        fault.loc = (*loc, *fault.loc)
    return faults


# What a value that came as JSON should have been: in JSON's words.
_IN_JSON = {
    **dict.fromkeys(("list_type", "tuple_type", "set_type", "frozen_set_type"), "Input should be a valid array"),
    **dict.fromkeys(("dict_type", "model_type", "dataclass_type"), "Input should be an object"),
    "none_required": "Input should be null",
}


def as_json(faults):
    """The faults of a value that came as JSON."""
    for fault in faults:
        fault.message = _IN_JSON.get(fault.kind, fault.message)
    return faults


def from_json(text, title):
    """The value in JSON text; what is wrong with the text is said as pydantic says it."""
    import json

    import _updraft

    if isinstance(text, (bytes, bytearray)):
        text = bytes(text).decode()
    wrong = _updraft.json_fault(text)
    if wrong is not None:
        raise ValidationError(title, [Fault("json_invalid", f"Invalid JSON: {wrong}", text, ctx={"error": wrong})])
    return json.loads(text)


class ValidationError(ValueError):
    """What is wrong with the data given to a model."""

    def __init__(self, title, faults):
        self.title = title
        self._faults = faults
        super().__init__()

    @classmethod
    def from_exception_data(cls, title, line_errors, **kwargs):
        """An error out of plain data."""
        return cls(
            title,
            [
                Fault(str(e.get("type")), str(e.get("msg", "")), e.get("input"), tuple(e.get("loc", ())))
                for e in line_errors
            ],
        )

    def error_count(self):
        """How many faults there are."""
        return len(self._faults)

    def errors(self, *, include_url=True, include_context=True, include_input=True):
        """The faults as plain data."""
        found = []
        for fault in self._faults:
            entry = {"type": fault.kind, "loc": fault.loc, "msg": fault.message}
            if include_input:
                entry["input"] = fault.value
            if include_context and fault.ctx:
                entry["ctx"] = fault.ctx
            if include_url:
                entry["url"] = f"https://errors.pydantic.dev/2.14/v/{fault.kind}"
            found.append(entry)
        return found

    def json(self, *, indent=None, include_url=True, include_context=True, include_input=True):
        """The faults as JSON text."""
        import json

        return json.dumps(
            self.errors(include_url=include_url, include_context=False, include_input=include_input),
            indent=indent,
            default=str,
        )

    def __str__(self):
        count = len(self._faults)
        lines = [f"{count} validation error{'s' if count != 1 else ''} for {self.title}"]
        for fault in self._faults:
            if fault.loc:
                lines.append(".".join(str(part) for part in fault.loc))
            shown = repr(fault.value)
            if len(shown) > _SHOWN:
                shown = shown[: _SHOWN // 2] + "..." + shown[-(_SHOWN // 2 - 1) :]
            lines.append(
                f"  {fault.message} [type={fault.kind}, input_value={shown}, input_type={type(fault.value).__name__}]"
            )
            lines.append(f"    For further information visit https://errors.pydantic.dev/2.14/v/{fault.kind}")
        return "\n".join(lines)

    __repr__ = __str__
