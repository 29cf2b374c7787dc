"""What an agent answers with."""

from updraft_lazy import lazy_names
from updraft_record import REQUIRED, Record

# What has no stand-in imports, and says so when it is needed.
__getattr__, _ = lazy_names(__name__, {}, fallback=True)


class ToolOutput(Record):
    """An answer by a tool call."""

    _positional = {"type_": REQUIRED}
    _keyword = {"name": None, "description": None, "max_retries": None, "strict": None, "sequential": False}

    def _made(self):
        self.output = self.type_

    def __class_getitem__(cls, item):
        return cls


class NativeOutput(Record):
    """An answer by the provider's structured output."""

    _positional = {"outputs": REQUIRED}
    _keyword = {"name": None, "description": None, "strict": None, "template": None}

    def __class_getitem__(cls, item):
        return cls


class PromptedOutput(Record):
    """An answer that the prompt asks for."""

    _positional = {"outputs": REQUIRED}
    _keyword = {"name": None, "description": None, "template": None}

    def __class_getitem__(cls, item):
        return cls


class TextOutput(Record):
    """An answer that a function makes of text."""

    _positional = {"output_function": REQUIRED}

    def __class_getitem__(cls, item):
        return cls


def StructuredDict(json_schema, name=None, description=None):
    """A dict with a given schema."""

    class StructuredDict(dict):
        """A dict with a given schema."""

        _json_schema = {
            **json_schema,
            **({"title": name} if name else {}),
            **({"description": description} if description else {}),
        }

    if name:
        StructuredDict.__name__ = StructuredDict.__qualname__ = name
    return StructuredDict


class UseEnumMemberDocstrings:
    """An enumeration whose members' docstrings the model sees."""
