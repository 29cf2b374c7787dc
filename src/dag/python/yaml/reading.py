"""Reads YAML: block and flow collections, the five kinds of scalars, anchors, merge keys, several documents."""

from yaml.errors import MarkedYAMLError
from yaml.scalars import value_of

_ESCAPES = {
    "0": "\0",
    "a": "\a",
    "b": "\b",
    "t": "\t",
    "\t": "\t",
    "n": "\n",
    "v": "\v",
    "f": "\f",
    "r": "\r",
    "e": "\x1b",
    " ": " ",
    '"': '"',
    "/": "/",
    "\\": "\\",
    "N": "\x85",
    "_": "\xa0",
    "L": "\u2028",
    "P": "\u2029",
}
_LENGTHS = {"x": 2, "u": 4, "U": 8}
_MERGE = "<<"


def documents(text):
    """The documents of a text."""
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    start = 0
    explicit = False
    for number in range(len(lines) + 1):
        at_end = number == len(lines)
        line = "..." if at_end else lines[number]
        is_start = line == "---" or line.startswith("--- ")
        if not (at_end or is_start or line == "..." or line.startswith("... ")):
            continue
        part = lines[start:number]
        if explicit or any(line_.strip() and not line_.lstrip().startswith(("#", "%")) for line_ in part):
            yield _Reader(part, start).document()
        explicit = is_start
        start = number + 1
        if is_start and line.startswith("--- ") and not at_end:
            lines[number] = "    " + line[4:] if line[4:].lstrip()[:1] in ("|", ">") else line[4:]
            start = number


class _Reader:
    def __init__(self, lines, offset):
        self.lines = [line for line in lines if not line.startswith("%")]
        self.offset = offset
        self.row = 0
        self.anchors = {}

    def fail(self, problem, row=None):
        raise MarkedYAMLError(problem, self.offset + (self.row if row is None else row) + 1)

    # Lines

    def skip(self):
        """Goes to the next line with content; gives its indentation, -1 at the end."""
        while self.row < len(self.lines):
            line = self.lines[self.row]
            stripped = line.lstrip(" ")
            if stripped and not stripped.startswith("#") and stripped.strip():
                if stripped[0] == "\t":
                    self.fail("found character '\\t' that cannot start any token")
                return len(line) - len(stripped)
            self.row += 1
        return -1

    def document(self):
        indent = self.skip()
        if indent < 0:
            return None
        value = self.block(0)
        if self.skip() >= 0:
            self.fail("expected <document start>, but found something else")
        return value

    def block(self, least):
        """The node that starts on the next line with at least this indentation."""
        indent = self.skip()
        if indent < least:
            return None
        line = self.lines[self.row]
        rest = line[indent:]
        if rest == "-" or rest.startswith("- "):
            return self.sequence(indent)
        if _key_end(rest) is not None or rest.startswith("? "):
            return self.mapping(indent)
        return self.inline(rest, indent, least)

    def sequence(self, indent):
        items = []
        while self.skip() == indent:
            line = self.lines[self.row]
            rest = line[indent:]
            if rest != "-" and not rest.startswith("- "):
                break
            content = rest[1:].lstrip(" ")
            if not content or content.startswith("#"):
                self.row += 1
                items.append(self.block(indent + 1))
                continue
            # What follows the dash stands as if on a line of its own.
            column = len(line) - len(content)
            self.lines[self.row] = " " * column + content
            items.append(self.after_dash(column, indent))
        if self.skip() > indent:
            self.fail("expected <block end>, but found something else")
        return items

    def after_dash(self, column, indent):
        content = self.lines[self.row][column:]
        if content == "-" or content.startswith("- ") or _key_end(content) is not None:
            return self.block(indent + 1)
        return self.inline(content, column, indent + 1)

    def mapping(self, indent):
        result = {}
        merged = []
        while self.skip() == indent:
            line = self.lines[self.row]
            rest = line[indent:]
            if rest.startswith("? "):
                self.fail("complex mapping keys are not supported here")
            end = _key_end(rest)
            if end is None:
                break
            key = self.scalar_key(rest[:end].rstrip())
            content = rest[end + 1 :].lstrip(" \t")
            value = self.mapping_value(content, line, indent)
            if key == _MERGE and rest.lstrip().startswith(_MERGE):
                merged.extend(value if isinstance(value, list) else [value])
            else:
                try:
                    result[key] = value
                except TypeError:
                    self.fail("found unhashable key")
        if self.skip() > indent:
            self.fail("mapping values are not allowed here")
        if not merged:
            return result
        under = {}
        for source in reversed(merged):
            if not isinstance(source, dict):
                self.fail("expected a mapping for merging")
            under.update(source)
        return {**under, **result}

    def mapping_value(self, content, line, indent):
        if not content or content.startswith("#"):
            self.row += 1
            return self.child(indent)
        column = len(line) - len(content)
        return self.inline(content, column, indent + 1, in_mapping=True)

    def child(self, indent):
        """The value of a key with nothing after it: deeper, or a sequence at the same depth."""
        following = self.skip()
        if following == indent:
            rest = self.lines[self.row][indent:]
            if rest == "-" or rest.startswith("- "):
                return self.sequence(indent)
            return None
        return self.block(indent + 1)

    def scalar_key(self, text):
        text, anchor, tag = _properties(text)
        if text[:1] in ("'", '"'):
            value, _ = _Flow(self, text).quoted()
        elif text[:1] == "*":
            value = self.alias(text[1:])
        else:
            value = _MERGE if text == _MERGE else value_of(text)
        if anchor:
            self.anchors[anchor] = value
        return value

    def alias(self, name):
        if name not in self.anchors:
            self.fail(f"found undefined alias {name!r}")
        return self.anchors[name]

    def inline(self, content, column, least, in_mapping=False):
        """A node whose text starts here; it may go on on deeper lines."""
        content, anchor, tag = _properties(content)
        first = content[:1]
        if not content or first == "#":
            self.row += 1
            value = self.child(least - 1) if in_mapping else self.block(least)
        elif first in "|>":
            value = self.literal(content, least)
        elif first in "[{\"'":
            value = self.flow(content, least)
        elif first == "*":
            self.row += 1
            value = self.alias(_without_comment(content[1:]).strip())
        else:
            value = self.plain(content, least, in_mapping)
        value = self.tagged(tag, value)
        if anchor:
            self.anchors[anchor] = value
        return value

    def tagged(self, tag, value):
        if tag in (None, "!!map", "!!seq", "!"):
            return value
        if tag == "!!str":
            return "" if value is None else value if isinstance(value, str) else str(value)
        if tag == "!!int":
            return int(value)
        if tag == "!!float":
            return float(value)
        if tag == "!!set":
            return set(value)
        self.fail(f"could not determine a constructor for the tag {tag!r}")

    def plain(self, content, least, in_mapping):
        parts = [_without_comment(content).rstrip()]
        if _key_end(content) is not None and in_mapping:
            self.fail("mapping values are not allowed here")
        self.row += 1
        commented = parts[0] != content.rstrip()
        empty = 0
        while self.row < len(self.lines) and not commented:
            line = self.lines[self.row]
            stripped = line.strip()
            if not stripped:
                empty += 1
                self.row += 1
                continue
            indent = len(line) - len(line.lstrip(" "))
            if indent < least or stripped.startswith("#"):
                break
            if _key_end(stripped) is not None:
                self.fail("mapping values are not allowed here")
            text = _without_comment(stripped).rstrip()
            commented = text != stripped
            parts.append("\n" * empty if empty else " ")
            parts.append(text)
            empty = 0
            self.row += 1
        return value_of(parts[0]) if len(parts) == 1 else "".join(parts)

    def flow(self, content, least):
        text = content
        row = self.row
        while True:
            reader = _Flow(self, text)
            try:
                value, end = reader.node()
                break
            except _Unfinished:
                self.row += 1
                if self.row >= len(self.lines):
                    self.fail("expected the end of a collection or of a quoted text, but found the end", row)
                text += "\n" + self.lines[self.row]
        rest = text[end:].strip()
        if rest and not rest.startswith("#"):
            self.fail(f"expected <block end>, but found {rest[:20]!r}")
        self.row += 1
        return value

    def literal(self, header, least):
        header = _without_comment(header).strip()
        folded = header[0] == ">"
        chomp = "-" if "-" in header else "+" if "+" in header else ""
        digits = [char for char in header[1:] if char.isdigit()]
        self.row += 1
        indent = least - 1 + int(digits[0]) if digits else None
        lines = []
        while self.row < len(self.lines):
            line = self.lines[self.row]
            stripped = line.lstrip(" ")
            depth = len(line) - len(stripped)
            if stripped:
                if indent is None:
                    indent = depth if depth >= least else None
                if indent is None or depth < indent:
                    break
                lines.append(line[indent:])
            else:
                lines.append(line[indent:] if indent is not None and depth > indent else "")
            self.row += 1
        end = len(lines)
        while end and not lines[end - 1]:
            end -= 1
        body = _fold(lines[:end]) if folded else "\n".join(lines[:end])
        if chomp == "+":
            return body + "\n" * (len(lines) - end + (1 if end else 0))
        return body if chomp == "-" or not end else body + "\n"


class _Unfinished(Exception):
    """A flow collection or a quoted text goes on on the next line."""


class _Flow:
    """Reads a flow collection or a quoted text."""

    def __init__(self, reader, text):
        self.reader = reader
        self.text = text
        self.position = 0

    def peek(self):
        while self.position < len(self.text):
            char = self.text[self.position]
            if char in " \t\n":
                self.position += 1
            elif char == "#" and (self.position == 0 or self.text[self.position - 1] in " \t\n"):
                end = self.text.find("\n", self.position)
                self.position = len(self.text) if end < 0 else end
            else:
                return char
        raise _Unfinished

    def node(self):
        char = self.peek()
        if char in "&!":
            rest, anchor, tag = _properties(self.text[self.position :])
            self.position = len(self.text) - len(rest)
            value, end = self.node()
            value = self.reader.tagged(tag, value)
            if anchor:
                self.reader.anchors[anchor] = value
            return value, end
        if char == "[":
            return self.sequence()
        if char == "{":
            return self.mapping()
        if char in "'\"":
            return self.quoted()
        return self.plain()

    def sequence(self):
        self.position += 1
        items = []
        while self.peek() != "]":
            value, _ = self.node()
            if self.peek() == ":":
                self.position += 1
                paired, _ = self.node() if self.peek() not in ",]" else (None, None)
                value = {value: paired}
            items.append(value)
            self.separator("]")
        self.position += 1
        return items, self.position

    def mapping(self):
        self.position += 1
        result = {}
        while self.peek() != "}":
            key, _ = self.node()
            value = None
            if self.peek() == ":":
                self.position += 1
                if self.peek() not in ",}":
                    value, _ = self.node()
            if key == _MERGE and isinstance(value, dict):
                for name, item in value.items():
                    result.setdefault(name, item)
            else:
                result[key] = value
            self.separator("}")
        self.position += 1
        return result, self.position

    def separator(self, end):
        char = self.peek()
        if char == ",":
            self.position += 1
        elif char != end:
            self.reader.fail(f"expected ',' or {end!r}, but got {char!r}")

    def plain(self):
        start = self.position
        while self.position < len(self.text):
            char = self.text[self.position]
            following = self.text[self.position + 1 : self.position + 2]
            if char in ",[]{}" or (char == ":" and (not following or following in " \t\n,[]{}")):
                break
            if char == "#" and self.text[self.position - 1] in " \t\n":
                break
            self.position += 1
        else:
            raise _Unfinished
        text = " ".join(self.text[start : self.position].split())
        if text.startswith("*"):
            return self.reader.alias(text[1:]), self.position
        return (_MERGE if text == _MERGE else value_of(text)), self.position

    def quoted(self):
        quote = self.text[self.position]
        self.position += 1
        parts = []
        while True:
            if self.position >= len(self.text):
                raise _Unfinished
            char = self.text[self.position]
            self.position += 1
            if char == quote:
                if quote == "'" and self.text[self.position : self.position + 1] == "'":
                    parts.append("'")
                    self.position += 1
                    continue
                return "".join(parts), self.position
            if char == "\\" and quote == '"':
                parts.append(self.escape())
            elif char == "\n":
                while parts and parts[-1] in (" ", "\t"):
                    parts.pop()
                count = self.line_breaks()
                parts.append("\n" * count if count else " ")
            else:
                parts.append(char)

    def line_breaks(self):
        count = 0
        while self.position < len(self.text) and self.text[self.position] in " \t\n":
            count += self.text[self.position] == "\n"
            self.position += 1
        return count

    def escape(self):
        char = self.text[self.position : self.position + 1]
        self.position += 1
        if char == "\n":
            while self.text[self.position : self.position + 1] in (" ", "\t"):
                self.position += 1
            return ""
        if char in _LENGTHS:
            digits = self.text[self.position : self.position + _LENGTHS[char]]
            self.position += _LENGTHS[char]
            return chr(int(digits, 16))
        if char not in _ESCAPES:
            self.reader.fail(f"found unknown escape character {char!r}")
        return _ESCAPES[char]


def _fold(lines):
    text = ""
    previous = None
    empty = 0
    for line in lines:
        if not line:
            empty += 1
            continue
        if previous is None:
            text = "\n" * empty + line
        elif previous[:1] in " \t" or line[:1] in " \t":
            text += "\n" * (empty + 1) + line
        else:
            text += ("\n" * empty if empty else " ") + line
        previous = line
        empty = 0
    return text


def _properties(text):
    """The text without its anchor and tag, the anchor, the tag."""
    anchor = tag = None
    while text[:1] in ("&", "!"):
        word, _, rest = text.partition(" ")
        if text[0] == "&":
            anchor = word[1:]
        else:
            tag = word
        text = rest.lstrip(" ")
    return text, anchor, tag


def _without_comment(text):
    for position, char in enumerate(text):
        if char == "#" and (position == 0 or text[position - 1] in " \t"):
            return text[:position]
    return text


def _key_end(text):
    """Where the colon after a key stands; None when the line starts with no key."""
    if text[:1] in ("'", '"'):
        quote = text[0]
        position = 1
        while position < len(text):
            if text[position] == "\\" and quote == '"':
                position += 2
                continue
            if text[position] == quote:
                if quote == "'" and text[position + 1 : position + 2] == "'":
                    position += 2
                    continue
                break
            position += 1
        rest = text[position + 1 :]
        stripped = rest.lstrip(" ")
        if stripped[:1] == ":" and (len(stripped) == 1 or stripped[1] in " \t"):
            return position + 1 + len(rest) - len(stripped)
        return None
    if text[:1] in ("[", "{", "#", "|", ">", "%", "@", "`"):
        return None
    for position, char in enumerate(text):
        if char == ":" and (position + 1 == len(text) or text[position + 1] in " \t"):
            return position
        if char == "#" and position and text[position - 1] in " \t":
            return None
    return None
