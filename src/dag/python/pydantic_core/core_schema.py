"""Core schemas of pydantic: here only names and what they are made of, for validators that take arguments as they come."""


def __getattr__(name):
    if not name.endswith("_schema"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    kind = name.removesuffix("_schema").replace("_", "-")

    def make(*args, **kwargs):
        return {"type": kind, "of": [part for part in (*args, *kwargs.values()) if part is not None]}

    return make
