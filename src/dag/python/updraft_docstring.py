"""What a docstring says of a function, its parameters and its result: Sphinx, Google and numpy style."""

import re

_SPHINX = re.compile(
    r"\n[ \t]*:(?:param|parameter|arg|argument|key|keyword|type|returns?|rtype|raises?)(?:[ \t]+\w+)*:", re.I
)
_NUMPY = re.compile(r"\n[ \t]*(?:parameters|other parameters|returns|yields|raises)\n[ \t]*---+\n", re.I)
_PARAMETERS = ("args", "arguments", "params", "parameters", "keyword args", "keyword arguments", "other parameters")
_SECTIONS = (
    *_PARAMETERS,
    "returns",
    "yields",
    "receives",
    "raises",
    "exceptions",
    "examples",
    "attributes",
    "warns",
    "warnings",
)


def clean(doc):
    """The text without its indentation, as `inspect.cleandoc` gives it."""
    lines = doc.expandtabs().split("\n")
    indents = [len(line) - len(line.lstrip()) for line in lines[1:] if line.strip()]
    margin = min(indents) if indents else 0
    return "\n".join([lines[0].lstrip(), *(line[margin:] for line in lines[1:])]).strip("\n")


def read(doc, style="auto"):
    """`(description, {parameter: description})`; with a result described, the description is marked up."""
    if not doc:
        return None, {}
    summary, parameters, returns = _parts(doc, style)
    if returns is not None:
        kind, told = returns
        marked = f"<type>{kind}</type>\n" if kind else ""
        marked = f"<returns>\n{marked}<description>{told}</description>\n</returns>"
        summary = f"<summary>{summary}</summary>\n{marked}" if summary else marked
    return summary, parameters


def described(doc, style=None):
    """`(description, {parameter: description})`, without a word of the result."""
    return _parts(doc, style or "auto")[:2]


def _parts(doc, style):
    text = clean(doc)
    if style == "auto":
        style = "sphinx" if _SPHINX.search(f"\n{text}\n") else "numpy" if _NUMPY.search(f"\n{text}\n") else "google"
    return {"sphinx": _sphinx, "numpy": _numpy}.get(style, _google)(text)


def _sphinx(text):
    head = []
    fields = []
    for line in text.split("\n"):
        if line.startswith(":") and ":" in line[1:]:
            fields.append([line])
        elif fields:
            fields[-1].append(line.strip())
        else:
            head.append(line)
    parameters = {}
    told = kind = None
    for lines in fields:
        name, _, rest = lines[0][1:].partition(":")
        rest = " ".join(part for part in [rest.strip(), *lines[1:]] if part)
        words = name.split()
        if words[0] in ("param", "parameter", "arg", "argument", "key", "keyword") and len(words) > 1:
            parameters.setdefault(words[-1], rest)
        elif words[0] in ("return", "returns"):
            told = rest
        elif words[0] == "rtype":
            kind = rest
    return "\n".join(head).strip(), parameters, None if told is None else (kind, told)


def _google(text):
    head = []
    sections = []
    for line in text.split("\n"):
        title = line.strip()
        if line == title and title.endswith(":") and title[:-1].lower() in _SECTIONS:
            sections.append((title[:-1].lower(), []))
        elif sections and (line.startswith(" ") or not line.strip()):
            sections[-1][1].append(line)
        elif sections:
            # Back at the margin: a paragraph that belongs to no section.
            sections.append(("", [line]))
        else:
            head.append(line)
    parameters = {}
    returns = None
    for title, lines in sections:
        if title in _PARAMETERS:
            for name, told in _items(lines):
                parameters.setdefault(name.partition("(")[0].strip().lstrip("*"), told)
        elif title == "returns":
            body = clean("\n" + "\n".join(lines)).strip()
            kind, colon, told = body.partition(":")
            if colon and "\n" not in kind and " " not in kind.strip().replace(", ", ","):
                returns = (kind.strip(), clean(told).strip())
            elif colon and body.startswith(kind) and told.startswith("\n"):
                returns = (kind.strip(), clean(told).strip())
            else:
                returns = (None, body)
    return "\n".join(head).strip(), parameters, returns


def _items(lines):
    """`name: text` entries, each with the deeper lines below it."""
    block = clean("\n" + "\n".join(lines)).split("\n")
    items = []
    for line in block:
        if line and not line.startswith(" ") and ":" in line:
            name, _, told = line.partition(":")
            items.append((name.strip(), [told.strip()]))
        elif items:
            items[-1][1].append(line.strip())
    return [(name, "\n".join(told).strip()) for name, told in items]


def _numpy(text):
    lines = text.split("\n")
    head = []
    sections = []
    index = 0
    while index < len(lines):
        underlined = index + 1 < len(lines) and re.fullmatch(r"\s*---+\s*", lines[index + 1])
        if underlined and lines[index].strip():
            sections.append((lines[index].strip().lower(), []))
            index += 2
            continue
        (sections[-1][1] if sections else head).append(lines[index])
        index += 1
    parameters = {}
    returns = None
    for title, body in sections:
        entries = []
        for line in body:
            if line and not line.startswith(" "):
                entries.append((line.strip(), []))
            elif entries:
                entries[-1][1].append(line.strip())
        if title in ("parameters", "other parameters"):
            for name, told in entries:
                for one in name.partition(":")[0].split(","):
                    parameters.setdefault(one.strip().lstrip("*"), "\n".join(told).strip())
        elif title == "returns" and entries:
            kind, told = entries[0]
            returns = (kind.rpartition(":")[2].strip(), "\n".join(told).strip())
    return "\n".join(head).strip(), parameters, returns
