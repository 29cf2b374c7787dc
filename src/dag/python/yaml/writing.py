"""Writes YAML."""

from yaml.errors import YAMLError
from yaml.scalars import is_text

_SPECIAL_STARTS = frozenset("-?:,[]{}#&*!|>'\"%@` ")


def write(data, options):
    """The text of a document."""
    style = _Style(options)
    if isinstance(data, (dict, list, tuple)) and data and not style.flow:
        return "".join(_block(data, 0, style))
    text = _inline(data, style)
    if isinstance(data, (dict, list, tuple, str)) and (not isinstance(data, str) or text[:1] in "'\""):
        return text + "\n"
    return text + "\n...\n"


class _Style:
    def __init__(self, options):
        self.sort = options.get("sort_keys", True)
        self.unicode = options.get("allow_unicode", False)
        self.step = options.get("indent") or 2
        self.flow = options.get("default_flow_style", False) is True
        self.width = options.get("width") or 80


def _items(mapping, style):
    items = list(mapping.items())
    if style.sort:
        try:
            items.sort(key=lambda item: item[0])
        except TypeError:
            pass
    return items


def _block(data, depth, style):
    pad = " " * depth
    if isinstance(data, dict):
        for key, value in _items(data, style):
            name = _inline(key, style)
            if isinstance(value, (dict, list, tuple)) and value:
                yield f"{pad}{name}:\n"
                # A sequence stands at the depth of its key.
                yield from _block(value, depth + (style.step if isinstance(value, dict) else 0), style)
            else:
                yield f"{pad}{name}: {_inline(value, style, pad + '  ')}\n"
        return
    for item in data:
        if isinstance(item, (dict, list, tuple)) and item:
            nested = "".join(_block(item, depth + 2, style))
            yield f"{pad}- {nested[depth + 2 :]}"
        else:
            yield f"{pad}- {_inline(item, style, pad + '  ')}\n"


def _inline(value, style, pad="  "):
    if value is None:
        return "null"
    if value is True:
        return "true"
    if value is False:
        return "false"
    if isinstance(value, str):
        return _string(value, style, pad)
    if isinstance(value, int):
        return str(int(value))
    if isinstance(value, float):
        if value != value:
            return ".nan"
        if value in (float("inf"), -float("inf")):
            return ".inf" if value > 0 else "-.inf"
        text = repr(value).lower()
        return text.replace("e", ".0e", 1) if "." not in text and "e" in text else text
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_inline(k, style)}: {_inline(v, style)}" for k, v in _items(value, style)) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(_inline(item, style) for item in value) + "]"
    if isinstance(value, (set, frozenset)):
        return "!!set {" + ", ".join(f"{_inline(item, style)}: null" for item in sorted(value)) + "}"
    if hasattr(value, "isoformat"):
        return value.isoformat(" ") if hasattr(value, "hour") else value.isoformat()
    raise YAMLError(f"cannot represent an object: {value!r}")


def _string(text, style, pad):
    printable = all(char == "\n" or char.isprintable() and (style.unicode or ord(char) < 127) for char in text)
    if not printable:
        return _double(text, style)
    plain = (
        is_text(text)
        and not (text[0] in _SPECIAL_STARTS and not (text[0] in "-?:" and len(text) > 1 and text[1] != " "))
        and not text.endswith((" ", ":"))
        and ": " not in text
        and " #" not in text
        and "\n" not in text
    )
    if plain:
        return text
    body = text.replace("'", "''")
    return (
        "'" + body.replace("\n", "\n\n" + pad) + "'"
        if "\n" not in text or not text.startswith(" ")
        else _double(text, style)
    )


def _double(text, style):
    names = {"\n": "\\n", "\t": "\\t", "\r": "\\r", '"': '\\"', "\\": "\\\\", "\0": "\\0", "\x1b": "\\e"}
    parts = []
    for char in text:
        if char in names:
            parts.append(names[char])
        elif char.isprintable() and (style.unicode or ord(char) < 127):
            parts.append(char)
        else:
            code = ord(char)
            parts.append(f"\\x{code:02X}" if code < 256 else f"\\u{code:04X}" if code < 65536 else f"\\U{code:08X}")
    return '"' + "".join(parts) + '"'
