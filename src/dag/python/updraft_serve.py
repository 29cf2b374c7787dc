"""Toolsets that a file names, for `updraft mcp serve`: the file's data in, objects out."""

# Where the classes of the file live. Others are given with their module: `my_module.MyToolset`.
_TOOLSETS = {
    "SQLToolset": "airflow.providers.common.ai.toolsets.sql",
    "HookToolset": "airflow.providers.common.ai.toolsets.hook",
    "AgentSkillsToolset": "airflow.providers.common.ai.toolsets.skills",
    "MCPToolset": "airflow.providers.common.ai.toolsets.mcp",
    "ObjectStorageToolset": "airflow.providers.common.ai.toolsets.object_storage",
    "DataFusionToolset": "airflow.providers.common.ai.toolsets.datafusion",
    "MCPServerStreamableHTTP": "pydantic_ai.mcp",
    "MCPServerSSE": "pydantic_ai.mcp",
    "MCPServerStdio": "pydantic_ai.mcp",
}
_OTHERS = {
    "GitSkills": "airflow.providers.common.ai.skills",
    "DataSourceConfig": "airflow.providers.common.sql.config",
    "HttpHook": "airflow.providers.http.hooks.http",
    "SqliteHook": "airflow.providers.sqlite.hooks.sqlite",
    "PostgresHook": "airflow.providers.postgres.hooks.postgres",
    "MySqlHook": "airflow.providers.mysql.hooks.mysql",
    "S3Hook": "airflow.providers.amazon.aws.hooks.s3",
    "GCSHook": "airflow.providers.google.cloud.hooks.gcs",
    "WasbHook": "airflow.providers.microsoft.azure.hooks.wasb",
    "SlackWebhookHook": "airflow.providers.slack.hooks.slack_webhook",
    "SmtpHook": "airflow.providers.smtp.hooks.smtp",
    "GitHook": "airflow.providers.git.hooks.git",
}

_ENTRY_KEYS = ("class", "arguments", "prefix", "tools")
_FILE_KEYS = ("name", "instructions", "toolsets")


def toolsets(file):
    """The toolsets of a file."""
    if not isinstance(file, dict):
        raise ValueError(f"the file must hold a mapping with the key 'toolsets', and holds {_kind(file)}")
    _check_keys("the file", file, _FILE_KEYS)
    for name in ("name", "instructions"):
        if file.get(name) is not None and not isinstance(file[name], str):
            raise ValueError(f"{name} must be text, and is {_kind(file[name])}")
    entries = file.get("toolsets")
    if not isinstance(entries, list) or not entries:
        raise ValueError("toolsets must be a list of toolsets, each a mapping with the key 'class', and is "
                         f"{_kind(entries)}")
    return [_toolset(f"toolsets[{index}]", entry) for index, entry in enumerate(entries)]


def _kind(value):
    if value is None:
        return "missing"
    names = {dict: "a mapping", list: "a list", str: "text", bool: "true or false", int: "a number", float: "a number"}
    name = names.get(type(value), type(value).__name__)
    return f"{name} that is empty" if value in ([], {}, "") else name


def _check_keys(where, given, allowed):
    for key in given:
        if key not in allowed:
            raise ValueError(f"{where} has the key {key!r}; allowed are {', '.join(allowed)}")


def _toolset(where, entry):
    from pydantic_ai.toolsets.abstract import AbstractToolset

    if not isinstance(entry, dict):
        raise ValueError(f"{where} must be a mapping with the key 'class', and is {_kind(entry)}")
    _check_keys(where, entry, _ENTRY_KEYS)
    toolset = _made(where, entry, _TOOLSETS)
    if not isinstance(toolset, AbstractToolset):
        raise ValueError(f"{where}.class: {entry['class']!r} is no toolset")
    prefix = entry.get("prefix")
    if prefix is not None:
        if not isinstance(prefix, str) or not prefix.isidentifier():
            raise ValueError(f"{where}.prefix must be a name such as 'crew', and is {prefix!r}")
        toolset = toolset.prefixed(prefix)
    tools = entry.get("tools")
    if tools is not None:
        if not isinstance(tools, list) or not all(isinstance(name, str) for name in tools) or not tools:
            raise ValueError(f"{where}.tools must be a list of the names of tools, and is {tools!r}")
    return toolset


def _made(where, entry, known):
    """The object of a mapping with `class` and `arguments`."""
    import updraft_record
    import updraft_signature

    cls = _class(where, entry["class"] if "class" in entry else None, known)
    arguments = entry.get("arguments")
    if arguments is None:
        arguments = {}
    if not isinstance(arguments, dict) or not all(isinstance(name, str) for name in arguments):
        raise ValueError(f"{where}.arguments must be a mapping of names to values, and is {_kind(arguments)}")
    if issubclass(cls, updraft_record.Record) and cls.__init__ is updraft_record.Record.__init__:
        taken = [*cls._positional, *cls._keyword]
    else:
        parameters = updraft_signature.parameters(cls.__init__)
        anything = any(parameter.kind == "VAR_KEYWORD" for parameter in parameters)
        taken = [p.name for p in parameters if p.name != "self" and p.kind not in ("VAR_KEYWORD", "VAR_POSITIONAL")]
        taken = None if anything else taken
    if taken is not None:
        _check_keys(f"{where}.arguments", arguments, taken)
    values = {name: _value(f"{where}.arguments.{name}", value) for name, value in arguments.items()}
    try:
        return cls(**values)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{where}.arguments: {error}") from error


def _value(where, value):
    if isinstance(value, list):
        return [_value(f"{where}[{index}]", item) for index, item in enumerate(value)]
    if not isinstance(value, dict):
        return value
    if "class" in value:
        _check_keys(where, value, ("class", "arguments"))
        return _made(where, value, _OTHERS)
    return {key: _value(f"{where}.{key}", item) for key, item in value.items()}


def _class(where, name, known):
    import sys

    others = f"use {', '.join(known)}, or a class with its module, as in my_module.MyClass"
    if not isinstance(name, str):
        raise ValueError(f"{where}.class must name a class, and is {_kind(name)}: {others}")
    module, _, attribute = name.rpartition(".")
    if not module:
        module = known.get(name)
        if module is None:
            raise ValueError(f"{where}.class: {name!r} is not known; {others}")
        attribute = name
    try:
        __import__(module)
    except ImportError as error:
        raise ValueError(f"{where}.class: the module of {name!r} can't be imported: {error}") from error
    cls = getattr(sys.modules[module], attribute, None)
    if not isinstance(cls, type) or hasattr(cls, "_unavailable_origin"):
        raise ValueError(f"{where}.class: {name!r} is not here; {others}")
    return cls
