"""What a model is told of a function: the schema of its arguments, and their descriptions."""

import inspect
import typing

import updraft_docstring
from agents.exceptions import ModelBehaviorError, UserError

_KINDS = inspect.Parameter


class FuncSchema:
    """A function as a model sees it."""

    def __init__(self, name, description, model, schema, signature, takes_context, strict):
        self.name = name
        self.description = description
        self.params_pydantic_model = model
        self.params_json_schema = schema
        self.signature = signature
        self.takes_context = takes_context
        self.strict_json_schema = strict

    def to_call_args(self, data):
        """The checked arguments, by position and by name."""
        args, named = [], {}
        several = False
        parameters = list(self.signature.parameters.items())[1 if self.takes_context else 0 :]
        for name, parameter in parameters:
            value = getattr(data, name, None)
            if parameter.kind == _KINDS.VAR_POSITIONAL:
                args.extend(value or ())
                several = True
            elif parameter.kind == _KINDS.VAR_KEYWORD:
                self._check_more(name, value or {})
                named.update(value or {})
            elif parameter.kind == _KINDS.KEYWORD_ONLY or several:
                named[name] = value
            else:
                args.append(value)
        return args, named

    def _check_more(self, name, value):
        own = (_KINDS.POSITIONAL_OR_KEYWORD, _KINDS.KEYWORD_ONLY)
        twice = sorted(key for key in value if key in self.signature.parameters
                       and self.signature.parameters[key].kind in own)
        if twice:
            raise ModelBehaviorError(
                f"Invalid arguments for tool {self.name}: {', '.join(map(repr, twice))} "
                f"{'is' if len(twice) == 1 else 'are'} both a named parameter and a key in '{name}'. "
                "Pass each argument once, as a named parameter."
            )


def function_schema(
    func,
    docstring_style=None,
    name_override=None,
    description_override=None,
    use_docstring_info=True,
    strict_json_schema=True,
):
    """The schema of a function."""
    from agents.strict_schema import ensure_strict_json_schema
    from pydantic import create_model

    description, told = None, {}
    if use_docstring_info:
        description, told = _docstring(func, docstring_style)
    hints = typing.get_type_hints(func, include_extras=True)
    hints.pop("return", None)
    for name, hint in hints.items():
        text = next((one for one in getattr(hint, "__metadata__", ()) if isinstance(one, str)), None)
        if text is not None:
            told.setdefault(name, text)
    signature = inspect.signature(func)
    fields = {}
    takes_context = False
    config = {}
    for index, (name, parameter) in enumerate(signature.parameters.items()):
        hint = hints.get(name, parameter.annotation)
        hint = typing.Any if hint is _KINDS.empty else hint
        if _is_context(hint):
            if index:
                raise UserError(
                    f"RunContextWrapper/ToolContext param found at non-first position in function {func.__name__}"
                )
            takes_context = True
            continue
        fields[name] = _field(func, name, parameter, hint, told.get(name), strict_json_schema)
        if parameter.kind == _KINDS.VAR_KEYWORD:
            config["extra"] = "forbid"
    made_name = name_override or func.__name__
    model = create_model(f"{made_name}_args", __config__=config or None, **fields)
    schema = model.model_json_schema()
    if strict_json_schema:
        schema = ensure_strict_json_schema(schema)
    return FuncSchema(
        made_name, description_override or description, model, schema, signature, takes_context, strict_json_schema
    )


def _docstring(func, style):
    doc = inspect.getdoc(func)
    if not doc:
        return None, {}
    description, told = updraft_docstring.described(doc, style)
    return description or None, told


def _field(func, name, parameter, hint, told, strict):
    """The field of the model that checks the arguments: its type and its default."""
    from pydantic import Field
    from pydantic.fields import FieldInfo

    metadata = getattr(hint, "__metadata__", ())
    inner = hint.__origin__ if metadata else hint
    if parameter.kind == _KINDS.VAR_POSITIONAL:
        args = typing.get_args(inner)
        if typing.get_origin(inner) is tuple and len(args) == 2 and args[1] is Ellipsis:
            return list[args[0]], Field(default_factory=list, description=told)
        return list[inner], Field(default_factory=list, description=told)
    if parameter.kind == _KINDS.VAR_KEYWORD:
        if strict:
            raise UserError(
                f"Variadic keyword parameter `**{name}` in function {func.__name__} cannot use a strict schema. Set "
                "strict_mode=False on the function tool (or strict_json_schema=False on function_schema) and pass "
                f"keyword arguments in the nested `{name}` object, or use explicit parameters for a strict tool."
            )
        return dict[str, inner], Field(default_factory=dict, description=told)
    default = parameter.default
    given = next((one for one in metadata if isinstance(one, FieldInfo)), None)
    given = default if isinstance(default, FieldInfo) else given
    if given is not None:
        merged = _merged(given, told)
        if default is not _KINDS.empty and not isinstance(default, FieldInfo):
            merged.default = default
        # What else the annotation says stays with the type.
        others = tuple(one for one in metadata if not isinstance(one, (FieldInfo, str)))
        return (typing.Annotated[(inner, *others)] if others else inner), merged
    others = tuple(one for one in metadata if not isinstance(one, str))
    annotated = typing.Annotated[(inner, *others)] if others else inner
    if default is _KINDS.empty:
        return annotated, Field(..., description=told)
    return annotated, Field(default=default, description=told)


def _merged(given, told):
    import copy

    made = copy.copy(given)
    if told is not None and not made.description:
        made.description = told
    elif told is not None:
        made.description = told
    return made


def _is_context(hint):
    from agents.run_context import RunContextWrapper
    from agents.tool_context import ToolContext

    return (typing.get_origin(hint) or hint) in (RunContextWrapper, ToolContext)
