"""Methods of hooks as tools: their schemas from signatures and docstrings, and arguments that travel as text."""

import re
import typing

import updraft_docstring
import updraft_signature

_TYPES = {
    str: {"type": "string"},
    int: {"type": "integer"},
    float: {"type": "number"},
    bool: {"type": "boolean"},
    list: {"type": "array"},
    dict: {"type": "object"},
    bytes: {"type": "string"},
}


class _Encoding:
    """How a value that JSON can't carry is written as text."""

    def __init__(self, schema, note, expected, decode):
        self.schema = schema
        self.note = note
        self.expected = expected
        self.decode = decode


def _decode_base64(text):
    import base64

    text = "".join(text.split())
    # Said here in the words of a Python that has binascii in C.
    if not re.fullmatch(r"[A-Za-z0-9+/]*={0,2}", text):
        raise ValueError("Only base64 data is allowed")
    return base64.b64decode(text, validate=True)


def _decode_datetime(text):
    import datetime

    value = datetime.datetime.fromisoformat(text)
    if value.utcoffset() is None:
        raise ValueError(f"{text!r} has no UTC offset")
    return value


_BASE64 = _Encoding(
    {"type": "string"}, "Provide this value base64-encoded.", "base64-encoded binary data", _decode_base64
)
_DATETIME = _Encoding(
    {"type": "string", "format": "date-time"},
    "An ISO 8601 date-time with a UTC offset, such as 2026-09-01T00:00:00Z.",
    "an ISO 8601 date-time with a UTC offset",
    _decode_datetime,
)


class Method:
    """A method of a hook, as a tool."""

    def __init__(self, method, pinned):
        self.function = method
        self.description = _description(method)
        self.encoded = {}
        properties = {}
        required = []
        more = False
        hints = _hints(method)
        for p in updraft_signature.parameters(method):
            if p.name in ("self", "cls") or p.kind == "VAR_POSITIONAL":
                continue
            if p.kind == "VAR_KEYWORD":
                more = True
                continue
            hint = hints.get(p.name, typing.Any)
            encoding = _encoding(hint)
            if encoding is not None:
                self.encoded[p.name] = encoding
                properties[p.name] = _encoded_schema(hint, encoding)
            else:
                properties[p.name] = _schema(hint)
            if p.default is updraft_signature.EMPTY:
                required.append(p.name)
        for name, told in parameter_docs(method.__doc__ or "").items():
            if name in properties:
                properties[name]["description"] = told
        for name, encoding in self.encoded.items():
            told = properties[name].get("description")
            properties[name]["description"] = f"{told} {encoding.note}" if told else encoding.note
        schema = {"type": "object", "properties": {n: s for n, s in properties.items() if n not in pinned}}
        required = [name for name in required if name not in pinned]
        if required:
            schema["required"] = required
        if more:
            schema["additionalProperties"] = True
        self.schema = schema
        # A model that gives a fixed argument all the same is told so, in words.
        self.accepts = {**schema, "properties": {**schema["properties"], **{name: {} for name in pinned}}}

    def decoded(self, args):
        """The arguments, with what travelled as text made into objects."""
        from pydantic_ai.exceptions import ModelRetry

        found = dict(args)
        for name, encoding in self.encoded.items():
            if isinstance(args.get(name), str):
                try:
                    found[name] = encoding.decode(args[name])
                except ValueError as error:
                    raise ModelRetry(f"Parameter {name!r} must be {encoding.expected}: {error}.") from error
        return found


def _hints(method):
    """Each annotation on its own: one that can't be evaluated leaves only its own parameter without a type."""
    function = updraft_signature.unwrap(method)
    function = getattr(function, "__func__", function)
    names = getattr(function, "__globals__", {})
    found = {}
    for name, annotation in getattr(function, "__annotations__", {}).items():
        try:
            hint = eval(annotation, names) if isinstance(annotation, str) else annotation
            found[name] = _resolved(hint, names)
        except Exception:
            continue
    return found


def _resolved(hint, names):
    """Annotations in quotes inside others."""
    if isinstance(hint, typing.ForwardRef):
        return eval(hint.__forward_arg__, names)
    if hint is None:
        return type(None)
    return hint


def _is_union(hint):
    return typing.get_origin(hint) is typing.Union or type(hint).__name__ == "UnionType"


def _encoding(hint):
    if _is_union(hint):
        kinds = [kind for kind in typing.get_args(hint) if kind is not type(None)]
        return _encoding(kinds[0]) if len(kinds) == 1 else None
    if hint is bytes:
        return _BASE64
    if getattr(hint, "__name__", None) == "datetime" and getattr(hint, "__module__", "") in ("datetime", "_pydatetime"):
        return _DATETIME
    return None


def _encoded_schema(hint, encoding):
    if _is_union(hint):
        return {
            "anyOf": [
                {"type": "null"} if kind is type(None) else _encoded_schema(kind, encoding)
                for kind in typing.get_args(hint)
            ]
        }
    return dict(encoding.schema)


def _schema(hint):
    if hint is type(None):
        return {"type": "null"}
    if _is_union(hint):
        return {"anyOf": [_schema(kind) for kind in typing.get_args(hint)]}
    origin = typing.get_origin(hint)
    if origin is list:
        kinds = typing.get_args(hint)
        return {"type": "array", "items": _schema(kinds[0]) if kinds else {"type": "string"}}
    if origin is dict:
        return {"type": "object"}
    try:
        return dict(_TYPES.get(hint, {}))
    except TypeError:
        return {}


def _description(method):
    doc = updraft_docstring.clean(method.__doc__ or "").strip()
    if not doc:
        return method.__name__.replace("_", " ").capitalize()
    paragraph = doc.split("\n\n", 1)[0]
    return " ".join(line.strip() for line in paragraph.splitlines()).strip()


def parameter_docs(doc):
    """What a docstring says of parameters: `:param name: text`, else the lines of an `Args:` section."""
    found = _sphinx_parameters(doc)
    return found or _google_parameters(doc)


def _sphinx_parameters(doc):
    found = {}
    name = None
    for line in doc.split("\n"):
        line = line.strip()
        if line.startswith(":"):
            field, _, told = line[1:].partition(":")
            words = field.split()
            # `:param str name:` is another form, which is not read.
            name = words[1] if len(words) == 2 and words[0] == "param" else None
            if name is not None:
                found[name] = [told]
        elif name is not None:
            found[name].append(line)
    found = {name: " ".join(" ".join(lines).split()) for name, lines in found.items()}
    return {name: told for name, told in found.items() if told}


def _google_parameters(doc):
    found = {}
    inside = False
    for line in doc.split("\n"):
        if line.strip().lower().startswith("args:"):
            inside = True
        elif inside and line.strip() and not line[0].isspace():
            break
        elif inside and line.startswith("  "):
            name, colon, told = line.strip().partition(":")
            name = name.partition("(")[0].strip()
            if colon and told.strip() and name.isidentifier():
                found[name] = told.strip()
    return found
