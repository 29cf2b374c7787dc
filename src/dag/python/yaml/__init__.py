"""Stand-in for PyYAML: what configuration files use of YAML 1.1."""

from yaml.errors import MarkedYAMLError, YAMLError

__version__ = "6.0.2"


class SafeLoader:
    """Names the safe way to read; the only one here."""


class SafeDumper:
    """Names the safe way to write; the only one here."""


Loader = FullLoader = UnsafeLoader = CSafeLoader = CLoader = BaseLoader = SafeLoader
Dumper = CSafeDumper = CDumper = SafeDumper


def _text(stream):
    if hasattr(stream, "read"):
        stream = stream.read()
    if isinstance(stream, (bytes, bytearray)):
        stream = bytes(stream).decode("utf-8-sig")
    return stream.removeprefix("\ufeff")


def load_all(stream, Loader=SafeLoader):
    """The documents of a stream."""
    from yaml.reading import documents

    return documents(_text(stream))


def load(stream, Loader=SafeLoader):
    """The one document of a stream; None when it is empty."""
    found = list(load_all(stream))
    if len(found) > 1:
        raise YAMLError("expected a single document in the stream, but found another document")
    return found[0] if found else None


safe_load = full_load = unsafe_load = load
safe_load_all = full_load_all = load_all


def dump_all(documents, stream=None, Dumper=SafeDumper, **kwargs):
    """The text of several documents."""
    from yaml.writing import write

    text = "---\n".join(write(document, kwargs) for document in documents)
    if stream is None:
        return text
    stream.write(text)
    return None


def dump(data, stream=None, Dumper=SafeDumper, **kwargs):
    """The text of a document."""
    return dump_all([data], stream, **kwargs)


safe_dump = dump
safe_dump_all = dump_all


def add_constructor(tag, constructor, Loader=None):
    """Tags of one's own are not read here."""


def add_representer(data_type, representer, Dumper=None):
    """Representations of one's own are not written here."""


__all__ = ["MarkedYAMLError", "YAMLError", "dump", "load", "safe_dump", "safe_load"]
