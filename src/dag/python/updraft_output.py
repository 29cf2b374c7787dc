"""What agents must answer with: what a model is told of an `output_type`, and the check of what it gives.

Rust calls `output(handle, operation, payload, context)` through `updraft_runtime`.
"""

import updraft_values

_FIRST_NAME = "final_result"
_FIRST_DESCRIPTION = "The final response which ends this conversation"
_PROMPTED = """
Always respond with a JSON object that's compatible with this schema:

{schema}

Don't include any text or Markdown fencing before or after.
"""

_specs = {}


def operate(handle, operation, payload):
    """Describes an output type, or validates an answer by it."""
    if operation == "describe" and payload:
        # The choice of a branch: it depends on arguments that are rendered by now.
        _specs[handle] = updraft_values.kept(handle).spec(**payload)
    spec = _specs.get(handle)
    if spec is None:
        wanted = updraft_values.kept(handle)
        spec = _specs[handle] = wanted.spec() if isinstance(wanted, DescribedChoice) else _Spec(wanted)
    return spec.describe() if operation == "describe" else spec.validate(**payload)


class DescribedChoice:
    """In place of an `output_type`: one of these names, each of which the model is told the meaning of."""

    def __init__(self, options):
        self._options = options

    def spec(self):
        """The choice as a model is told of it."""
        from typing import Literal

        spec = _Spec(Literal[tuple(self._options)])
        options = [{"const": name, "description": text} for name, text in self._options.items()]
        for wrapped in (spec.reader.schema, spec.tool_data[0]["schema"]):
            wrapped["properties"]["response"] = {"anyOf": options, "type": "string"}
        return spec


class BranchChoice:
    """In place of an `output_type`: one downstream task of `task`, or a list of them."""

    def __init__(self, task, several):
        self._task = task
        self._several = several

    def spec(self, branches):
        """The choice, with what the model is told of the tasks; `branches` is in XCom wire form."""
        from typing import Literal

        branches = updraft_values.decode(branches) or {}
        told = {name: getattr(option, "description", option) for name, option in branches.items()}
        ids = sorted(self._task.downstream_task_ids)
        if not ids:
            raise ValueError(f"no task comes after {self._task.task_id!r}, so that a model has nothing to choose from")
        unknown = sorted(set(told) - set(ids))
        if unknown:
            raise ValueError(f"branches names {unknown}, which don't come directly after {self._task.task_id!r}: {ids} do")
        choice = Literal[tuple(ids)]
        spec = _Spec(list[choice] if self._several else choice)
        if any(told.values()):
            options = [{"const": name, "description": told[name]} if told.get(name) else {"const": name} for name in ids]
            schema = {"anyOf": options, "type": "string"}
        else:
            schema = {"enum": ids, "type": "string"}
        for wrapped in (spec.reader.schema, spec.tool_data[0]["schema"]):
            wrapped["properties"]["response"] = {"items": schema, "type": "array"} if self._several else schema
        return spec


class _Spec:
    """An `output_type`: which tools, which text."""

    def __init__(self, output_type):
        # Functions of an agent that see an answer before it counts.
        self.check = None
        if type(output_type).__name__ == "ValidatedOutput" and type(output_type).__module__ == "updraft_agent":
            self.check = output_type.check
            output_type = output_type.output_type
        outputs = _flat(output_type)
        none_outputs = [output for output in outputs if _bare(output) in (None, type(None))]
        outputs = [output for output in outputs if not any(output is none for none in none_outputs)]
        self.allows_none = bool(none_outputs)
        self.tools = {}
        self.tool_data = []
        self.text = "refused"
        self.reader = None
        self.object = None
        if not outputs:
            raise _user_error("At least one output type must be provided other than `None`.")
        marker = next((o for o in outputs if _is_marker(o, "NativeOutput", "PromptedOutput")), None)
        if marker is not None:
            if len(outputs) > 1:
                raise _user_error(f"`{type(marker).__name__}` must be the only output type.")
            self._read_as_text(marker)
            return
        for output in outputs:
            if getattr(output, "__name__", type(output).__name__) in ("DeferredToolRequests", "BinaryImage"):
                name = getattr(output, "__name__", type(output).__name__)
                raise NotImplementedError(f"the output type {name} is not supported natively")
        texts = [output for output in outputs if output is str or _is_marker(output, "TextOutput")]
        marked = [output for output in outputs if _is_marker(output, "ToolOutput")]
        others = [output for output in outputs if not any(output is seen for seen in (*texts, *marked))]
        if self.allows_none and (marked or others):
            others.append(next((o for o in none_outputs if o not in (None, type(None))), type(None)))
        self._make_tools([*marked, *others])
        if len(texts) > 1:
            raise _user_error("Only one `str` or `TextOutput` is allowed.")
        if texts:
            self.text = "plain" if texts[0] is str else "function"
            self.reader = None if texts[0] is str else _TextFunction(texts[0].output_function)
        elif others and not marked:
            self.text = "structured"
            self.reader = _object(others)

    def _read_as_text(self, marker):
        inside = _flat(marker.outputs)
        self.text = "structured"
        native = type(marker).__name__ == "NativeOutput"
        strict = marker.strict if native else None
        self.reader = _object(inside, marker.name, marker.description, strict)
        template = marker.template
        if not native and template is None:
            template = _PROMPTED
        self.object = {
            "mode": "native" if native else "prompted",
            "name": self.reader.name,
            "description": self.reader.description,
            "schema": self.reader.schema,
            "strict": strict,
            "template": template or None,
        }

    def _make_tools(self, outputs):
        several = len(outputs) > 1
        for output in outputs:
            marker = output if _is_marker(output, "ToolOutput") else None
            made = _Object(
                marker.output if marker else output,
                description=marker.description if marker else None,
            )
            name = (marker.name if marker else None) or _FIRST_NAME + (f"_{_safe(made.name)}" if several else "")
            description = made.description
            if not description:
                description = f"{made.name}: {_FIRST_DESCRIPTION}" if several else _FIRST_DESCRIPTION
            first = name
            count = 1
            while name in self.tools:
                count += 1
                name = f"{first}_{count}"
            self.tools[name] = made
            self.tool_data.append(
                {
                    "name": name,
                    "description": description,
                    "schema": made.schema,
                    "strict": marker.strict if marker else None,
                    "max_retries": marker.max_retries if marker else None,
                    "sequential": bool(marker.sequential) if marker else False,
                }
            )

    def describe(self):
        """Plain data for the worker."""
        return {
            "text": "function" if self.text == "plain" and self.check is not None else self.text,
            "tools": self.tool_data,
            "allows_none": self.allows_none,
            "object": self.object,
        }

    def validate(self, tool, text, serialize):
        """`{"ok"}`, or what the model is told: `{"errors"}` or `{"retry"}`."""
        from pydantic.errors import Fault, Faults, ValidationError, as_json, at
        from pydantic_ai.exceptions import ModelRetry
        from updraft_toolsets import fault_data

        reader = self.reader if tool is None else self.tools[tool]
        try:
            value = text if reader is None else reader.read(text)
            if self.check is not None:
                value = self.check(value)
        except ModelRetry as retry:
            return {"retry": retry.message}
        except (Fault, Faults) as error:
            return {"errors": _plain(ValidationError(reader.name, as_json(at(error))), fault_data)}
        except ValidationError as error:
            return {"errors": _plain(error, fault_data)}
        return {"ok": _kept(value, serialize)}


def _plain(error, fault_data):
    return [fault_data(fault) for fault in error.errors(include_url=False, include_context=False)]


def _kept(value, serialize):
    """An answer as the worker keeps it: the XCom, or why there can be none, and what spans and logs show."""
    from updraft_toolsets import jsonable

    shown = {"json": jsonable(value), "repr": updraft_values.short_repr(value), "handle": updraft_values.keep(value)}
    if serialize and hasattr(type(value), "model_dump"):
        value = value.model_dump()
    try:
        return {"xcom": updraft_values.encode(value), **shown}
    except (TypeError, ValueError, AttributeError, RecursionError) as error:
        return {"class": f"builtins.{type(error).__name__}", "unserializable": str(error), **shown}


def _user_error(text):
    from pydantic_ai.exceptions import UserError

    return UserError(text)


def _is_marker(output, *names):
    return type(output).__name__ in names and type(output).__module__ == "pydantic_ai.output"


def _bare(output):
    import typing

    while typing.get_origin(output) is typing.Annotated:
        output = output.__origin__
    return output


def _flat(output_type):
    import typing

    found = []
    for output in output_type if isinstance(output_type, (list, tuple)) else (output_type,):
        if isinstance(output, (list, tuple)):
            found.extend(_flat(output))
            continue
        inner = output.__value__ if type(output).__name__ == "TypeAliasType" else output
        inner = _bare(inner)
        if typing.get_origin(inner) is typing.Union or type(inner).__name__ == "UnionType":
            found.extend(typing.get_args(inner))
        else:
            found.append(output)
    return found


def _safe(name):
    return "".join(c for c in name or "" if c.isascii() and (c.isalnum() or c in "_-"))


def _name_of(output):
    output = _bare(output)
    if output is None or output is type(None):
        return "None"
    return getattr(output, "__name__", None)


def _is_function(output):
    return hasattr(output, "__code__") or hasattr(output, "__func__")


def _is_model_like(cls):
    import typing

    return (
        isinstance(cls, type)
        and typing.get_origin(cls) is None
        and any(hasattr(cls, name) for name in ("_check_model", "__dataclass_fields__", "__total__", "_json_schema"))
        and not hasattr(cls, "_check_value")
    )


def _object(outputs, name=None, description=None, strict=None):
    if len(outputs) == 1:
        return _Object(outputs[0], name, description)
    return _Union(outputs, name, description)


def _loads(text):
    import json

    return json.loads(text)


class _Object:
    """One type that an answer may have, or a function that makes the answer."""

    def __init__(self, output, name=None, description=None):
        from pydantic.json_schema import type_schema
        from updraft_function_schema import FunctionArguments, _without_titles

        self.function = None
        self.wrapped = False
        self.label = None
        if _is_function(output):
            self.function = FunctionArguments(output)
            schema = dict(self.function.json_schema)
            told = self.function.description
        else:
            self.wrapped = not _is_model_like(_bare(output))
            schema = self._wrapped(output) if self.wrapped else type_schema(output, True, "#/$defs/{model}", "validation")
            schema = _without_titles(schema)
            told = schema.pop("description", None)
            self.check = self._check_for(output)
        self.name = name or schema.get("title") or _name_of(output)
        self.description = f"{description}. {told}" if description and told else description or told
        self.schema = schema

    def _wrapped(self, output):
        from pydantic.json_schema import _Writer

        writer = _Writer(True, "#/$defs/{model}", "validation")
        schema = {"properties": {"response": writer.type(output, None)}, "required": ["response"], "type": "object"}
        definitions = {name: entry for name, entry in writer.definitions.items() if entry is not None}
        return {"$defs": definitions, **schema} if definitions else schema

    def _check_for(self, output):
        from pydantic.errors import Fault
        from pydantic.validation import check_for, display_name

        self.label = display_name(output)
        if not hasattr(_bare(output), "_json_schema") or self.wrapped:
            return check_for(output)

        def check_dict(value):
            if isinstance(value, dict):
                return value
            raise Fault("dict_type", "Input should be a valid dictionary", value)

        return check_dict

    def read(self, text):
        """The answer in JSON text."""
        return self.read_value(_loads(text))

    def read_value(self, data):
        """The answer in plain data."""
        if self.function is not None:
            from updraft_context import run_coroutine

            return run_coroutine(self.function.call(self.function.validate_python(data), None))
        return self._response(data) if self.wrapped else self.check(data)

    def _response(self, data):
        import _updraft
        from pydantic.errors import Fault, Faults, at

        if not isinstance(data, dict):
            raise Fault("dict_type", "Input should be a valid dictionary", data)
        if "response" not in data:
            raise Fault("missing", "Field required", data, ("response",))
        value = data["response"]
        try:
            return self.check(value)
        except (Fault, Faults) as error:
            faults = at(error, "response", self.label)
        # Some models write the value as JSON text.
        place = ("response", f"json[{self.label}]")
        if not isinstance(value, str):
            raise Faults([*faults, Fault("json_type", "JSON input should be string, bytes or bytearray", value, place)])
        wrong = _updraft.json_fault(value)
        if wrong is not None:
            raise Faults([*faults, Fault("json_invalid", f"Invalid JSON: {wrong}", value, place)])
        try:
            return self.check(_loads(value))
        except (Fault, Faults) as error:
            raise Faults([*faults, *at(error, *place)]) from None


class _Union:
    """Several types in one schema: `{"result": {"kind": ..., "data": ...}}`."""

    def __init__(self, outputs, name, description):
        self.name = name
        self.description = description
        self.members = {}
        choices = []
        definitions = {}
        for output in outputs:
            member = _Object(output)
            key = first = member.name
            count = 1
            while key in self.members:
                count += 1
                key = f"{first}_{count}"
            self.members[key] = member
            data = dict(member.schema)
            definitions.update(data.pop("$defs", {}))
            title = data.pop("title", None) or member.name
            choice = {
                "type": "object",
                "properties": {"kind": {"type": "string", "const": key}, "data": data},
                "required": ["kind", "data"],
                "additionalProperties": False,
                "title": title,
            }
            if member.description:
                choice["description"] = member.description
            choices.append(choice)
        self.schema = {
            "type": "object",
            "properties": {"result": {"anyOf": choices}},
            "required": ["result"],
            "additionalProperties": False,
        }
        if definitions:
            self.schema["$defs"] = definitions

    def read(self, text):
        """The answer in JSON text."""
        from pydantic.errors import Fault, Faults, at
        from pydantic.validation import _choices

        data = _loads(text)
        if not isinstance(data, dict):
            raise Fault("model_type", "Input should be an object", data)
        if "result" not in data:
            raise Fault("missing", "Field required", data, ("result",))
        result = data["result"]
        if not isinstance(result, dict):
            raise Fault("model_type", "Input should be an object", result, ("result",))
        faults = [Fault("missing", "Field required", result, ("result", k)) for k in ("kind", "data") if k not in result]
        kind = result.get("kind")
        if "kind" in result and kind not in self.members:
            faults.insert(0, Fault("literal_error", f"Input should be {_choices(list(self.members))}", kind, ("result", "kind")))
        if "data" in result and not isinstance(result["data"], dict):
            faults.append(Fault("dict_type", "Input should be an object", result["data"], ("result", "data")))
        if faults:
            raise Faults(faults)
        try:
            return self.members[kind].read_value(result["data"])
        except (Fault, Faults) as error:
            raise Faults(at(error, "result", "data")) from None


class _TextFunction:
    """A function that makes the answer of text."""

    def __init__(self, function):
        from updraft_function_schema import FunctionArguments

        self.name = getattr(function, "__name__", "function")
        self.arguments = FunctionArguments(function)
        if len(self.arguments.params) != 1:
            raise _user_error("TextOutput must take a function taking a single `str` argument")

    def read(self, text):
        """The answer that the function makes."""
        from updraft_context import run_coroutine

        return run_coroutine(self.arguments.call({self.arguments.params[0].name: text}, None))
