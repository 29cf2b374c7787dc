"""The JSON schema of a tool function and the check of its arguments, as pydantic-ai makes them."""

import typing

import updraft_docstring
import updraft_signature
from pydantic.errors import Fault, Faults, ValidationError, at
from pydantic.json_schema import _Writer
from pydantic.validation import check_for


class FunctionArguments:
    """Checks a call's arguments by a function's annotations."""

    def __init__(self, function, takes_ctx=None, docstring_format="auto"):
        self.function = function
        inner = updraft_signature.unwrap(function)
        inner = getattr(inner, "__func__", inner)
        try:
            hints = typing.get_type_hints(inner, include_extras=True)
        except TypeError:
            # An object with `__call__`.
            hints = typing.get_type_hints(type(function).__call__, include_extras=True)
        params = updraft_signature.parameters(function)
        if takes_ctx is None:
            takes_ctx = bool(params) and _is_context(hints.get(params[0].name))
        self.takes_ctx = takes_ctx
        self.params = params[1:] if takes_ctx else params
        self.description, told = updraft_docstring.read(getattr(function, "__doc__", None), docstring_format)
        self.single = None
        named = [p for p in self.params if not p.kind.startswith("VAR_")]
        if len(self.params) == 1 and len(named) == 1 and hasattr(hints.get(named[0].name), "_check_model"):
            self.single = named[0].name
        self.checks = {p.name: self._check_for(p, hints.get(p.name, typing.Any)) for p in self.params}
        self.json_schema = self._schema(hints, told)

    def _check_for(self, param, hint):
        if param.kind == "VAR_POSITIONAL":
            hint = list[hint]
        return check_for(hint, None, _Module(self.function))

    def _schema(self, hints, told):
        writer = _Writer(True, "#/$defs/{model}", "validation")
        if self.single is not None:
            schema = _without_titles(writer.model(hints[self.single]))
            if not self.description:
                self.description = schema.pop("description", None)
        else:
            properties = {}
            required = []
            more = False
            for p in self.params:
                if p.kind == "VAR_KEYWORD":
                    more = writer.type(hints[p.name], None) if p.name in hints else True
                    more = more or True
                    continue
                hint = hints.get(p.name, typing.Any)
                entry = writer.type(list[hint] if p.kind == "VAR_POSITIONAL" else hint, _Module(self.function))
                if p.name in told and "description" not in entry:
                    entry = {**entry, "description": told[p.name]}
                if p.default is not updraft_signature.EMPTY:
                    from updraft_toolsets import jsonable

                    entry = {**entry, "default": jsonable(p.default)}
                else:
                    required.append(p.name)
                properties[p.name] = _without_titles(entry)
            schema = {"additionalProperties": more, "properties": properties, "type": "object"}
            if required:
                schema["required"] = required
        definitions = {name: _without_titles(entry) for name, entry in writer.definitions.items() if entry}
        if definitions:
            schema["$defs"] = definitions
        return schema

    def validate_python(self, args, **kwargs):
        """The arguments as Python objects.

        Raises pydantic's ValidationError.
        """
        if self.single is not None:
            return self._checked({self.single: args}, ())
        return self._checked(args, None)

    def _checked(self, args, loc):
        faults = []
        checked = {}
        more = None
        for p in self.params:
            if p.kind == "VAR_KEYWORD":
                more = p.name
            elif p.name in args:
                try:
                    checked[p.name] = self.checks[p.name](args[p.name])
                except (Fault, Faults) as error:
                    faults.extend(at(error) if loc is not None else at(error, p.name))
            elif p.default is updraft_signature.EMPTY and p.kind != "VAR_POSITIONAL":
                faults.append(Fault("missing", "Field required", args, (p.name,)))
        for name, value in args.items():
            if name in checked or any(p.name == name for p in self.params if p.kind != "VAR_KEYWORD"):
                continue
            if more is None:
                faults.append(Fault("extra_forbidden", "Extra inputs are not permitted", value, (name,)))
                continue
            try:
                checked[name] = self.checks[more](value)
            except (Fault, Faults) as error:
                faults.extend(at(error, name))
        if faults:
            raise ValidationError(getattr(self.function, "__name__", "function"), faults)
        return checked

    async def call(self, checked, ctx):
        """Calls the function with checked arguments."""
        checked = dict(checked)
        args = [ctx] if self.takes_ctx else []
        several = next((p for p in self.params if p.kind == "VAR_POSITIONAL"), None)
        for p in self.params:
            before = several is not None and p.kind == "POSITIONAL_OR_KEYWORD"
            if (p.kind == "POSITIONAL_ONLY" or before) and p.name in checked:
                args.append(checked.pop(p.name))
        if several is not None:
            args.extend(checked.pop(several.name, ()))
        result = self.function(*args, **checked)
        return await result if hasattr(result, "__await__") else result


class _Module:
    """Where the names in annotations are looked up."""

    def __init__(self, function):
        self.__module__ = getattr(function, "__module__", None)
        self.__name__ = getattr(function, "__name__", "function")
        self._parent_namespace = {}


def _is_context(hint):
    from pydantic_ai.tools import RunContext

    return hint is RunContext or typing.get_origin(hint) is RunContext


def _without_titles(schema):
    """pydantic-ai drops the titles of properties, which say nothing but their names."""
    schema = dict(schema)
    if "properties" not in schema and "enum" not in schema:
        schema.pop("title", None)
    for key in ("properties", "$defs"):
        if key in schema:
            schema[key] = {name: _without_titles(entry) for name, entry in schema[key].items()}
    for key in ("anyOf", "prefixItems"):
        if key in schema:
            schema[key] = [_without_titles(entry) for entry in schema[key]]
    if isinstance(schema.get("items"), dict):
        schema["items"] = _without_titles(schema["items"])
    return schema
