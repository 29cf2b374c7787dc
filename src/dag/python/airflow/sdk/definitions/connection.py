"""Connections."""

import _updraft
import updraft_values


class Connection:
    """Where and how to reach a system."""

    EXTRA_KEY = "__extra__"

    def __init__(self, *, conn_id, uri=None, **kwargs):
        fields = dict.fromkeys(("conn_type", "description", "host", "schema", "login", "password", "port", "extra"))
        if uri is not None:
            if kwargs:
                from airflow.sdk.exceptions import AirflowException

                raise AirflowException(
                    "You must create an object using the URI or individual values "
                    "(conn_type, host, login, password, schema, port or extra). "
                    "You can't mix these two ways to create this object."
                )
            kwargs = _from_uri(uri)
        for name in kwargs:
            if name not in fields:
                raise TypeError(f"Connection.__init__() got an unexpected keyword argument {name!r}")
        fields.update(kwargs)
        self.conn_id = conn_id
        self.__dict__.update(fields)

    @classmethod
    def get(cls, conn_id):
        """The connection of that id, from where the worker finds its connections."""
        try:
            text = _updraft.connection(conn_id)
        except LookupError as error:
            from airflow.sdk.exceptions import AirflowNotFoundException

            raise AirflowNotFoundException(str(error)) from None
        fields = updraft_values.from_json(text)
        fields["conn_id"] = conn_id
        extra = fields.get("extra")
        if extra is not None and not isinstance(extra, str):
            fields["extra"] = updraft_values.to_json(extra)
        known = ("conn_id", "conn_type", "description", "host", "schema", "login", "password", "port", "extra")
        return cls(**{name: value for name, value in fields.items() if name in known})

    get_connection_from_secrets = get

    @classmethod
    async def async_get(cls, conn_id):
        """The connection of that id."""
        return cls.get(conn_id)

    @property
    def extra_dejson(self):
        """What `extra` says, as a dict; empty when it is no JSON."""
        if not self.extra:
            return {}
        try:
            extra = updraft_values.from_json(self.extra)
        except ValueError:
            return {}
        _updraft.mask_secret(updraft_values.to_json(extra), None)
        return extra

    def get_extra_dejson(self):
        """What `extra` says."""
        return self.extra_dejson

    def get_password(self):
        """The password."""
        return self.password

    def get_uri(self):
        """The connection as a URI."""
        from urllib.parse import quote, urlencode

        uri = f"{self.conn_type.lower().replace('_', '-')}://" if self.conn_type else "//"
        host = self.host
        if host and "://" in host:
            protocol, rest = host.split("://", 1)
            if protocol != self.conn_type:
                uri += f"{protocol}://"
                host = rest
        authority = ""
        if self.login is not None:
            authority += quote(self.login, safe="")
        if self.password is not None:
            authority += ":" + quote(self.password, safe="")
        if authority:
            uri += authority + "@"
        address = quote(host, safe="") if host else ""
        if self.port:
            address += f":{self.port}" if address or authority else f"@:{self.port}"
        if self.schema:
            address += "/" + quote(self.schema, safe="")
        uri += address
        if self.extra:
            extra = self.extra_dejson
            if extra and all(isinstance(value, str) for value in extra.values()):
                query = urlencode(extra)
            else:
                query = urlencode({self.EXTRA_KEY: self.extra})
            uri += ("?" if self.schema else "/?") + query
        return uri

    def to_dict(self, *, prune_empty=False, validate=True):
        """The connection as a dict."""
        names = ("conn_id", "conn_type", "description", "host", "login", "password", "schema", "port")
        fields = {name: getattr(self, name) for name in names}
        if prune_empty:
            fields = {name: value for name, value in fields.items() if value is not None}
        extra = self.extra_dejson
        if extra or not prune_empty:
            fields["extra"] = extra
        return fields

    def as_json(self):
        """The connection as JSON text."""
        fields = self.to_dict(prune_empty=True)
        fields.pop("conn_id", None)
        import json

        return json.dumps(fields)

    @classmethod
    def from_json(cls, value, conn_id=None):
        """A connection from JSON text."""
        fields = updraft_values.from_json(value)
        extra = fields.pop("extra", None)
        if extra:
            fields["extra"] = extra if isinstance(extra, str) else updraft_values.to_json(extra)
        if fields.get("conn_type"):
            fields["conn_type"] = _normal_type(fields["conn_type"])
        port = fields.pop("port", None)
        if port:
            try:
                fields["port"] = int(port)
            except ValueError:
                raise ValueError(f"Expected integer value for `port`, but got {port!r} instead.") from None
        return cls(conn_id=conn_id, **fields)

    @classmethod
    def from_uri(cls, uri, conn_id):
        """A connection from a URI."""
        return cls(conn_id=conn_id, uri=uri)

    def get_hook(self, *, hook_params=None):
        """A hook for the connection, of the types that have one here."""
        hooks = {
            "http": ("airflow.providers.http.hooks.http", "HttpHook", "http_conn_id"),
            "git": ("airflow.providers.git.hooks.git", "GitHook", "git_conn_id"),
            "mysql": ("airflow.providers.mysql.hooks.mysql", "MySqlHook", "mysql_conn_id"),
            "postgres": ("airflow.providers.postgres.hooks.postgres", "PostgresHook", "postgres_conn_id"),
            "slackwebhook": (
                "airflow.providers.slack.hooks.slack_webhook",
                "SlackWebhookHook",
                "slack_webhook_conn_id",
            ),
            "smtp": ("airflow.providers.smtp.hooks.smtp", "SmtpHook", "smtp_conn_id"),
            "sqlite": ("airflow.providers.sqlite.hooks.sqlite", "SqliteHook", "sqlite_conn_id"),
            "mcp": ("airflow.providers.common.ai.hooks.mcp", "MCPHook", "mcp_conn_id"),
        }
        for name in ("pydanticai", "pydanticai_azure", "pydanticai_bedrock", "pydanticai_vertex"):
            hooks[name] = ("airflow.providers.common.ai.hooks.pydantic_ai", "PydanticAIHook", "llm_conn_id")
        found = hooks.get(self.conn_type)
        if found is None:
            from airflow.sdk.exceptions import AirflowException

            raise AirflowException(f'Unknown hook type "{self.conn_type}"')
        module, name, argument = found
        __import__(module)
        import sys

        return getattr(sys.modules[module], name)(**{argument: self.conn_id}, **(hook_params or {}))

    def __repr__(self):
        return f"Connection({self.conn_id})"

    def __str__(self):
        return self.conn_id or ""


def _normal_type(conn_type):
    return "postgres" if conn_type == "postgresql" else conn_type.replace("-", "_")


def _from_uri(uri):
    from urllib.parse import parse_qsl, unquote, urlsplit

    from airflow.sdk.exceptions import AirflowException

    if uri.count("://") > 2:
        raise AirflowException(f"Invalid connection string: {uri}.")
    nested = uri.count("://") == 2
    conn_type = urlsplit(uri).scheme
    rest = uri.replace(f"{conn_type}://", "" if nested else "//", 1)
    if nested:
        before = rest.split("://", 1)[0]
        if "@" in before or ":" in before:
            raise AirflowException(f"Invalid connection string: {uri}.")
    parts = urlsplit(rest)
    host = unquote(parts.hostname or "")
    if "/" in host:
        host = unquote(parts.netloc.rpartition("@")[2].partition(":")[0])
    if host and nested:
        host = f"{parts.scheme}://{host}"
    extra = None
    if parts.query:
        query = dict(parse_qsl(parts.query, keep_blank_values=True))
        extra = query.get(Connection.EXTRA_KEY) if Connection.EXTRA_KEY in query else updraft_values.to_json(query)
    return {
        "conn_type": _normal_type(conn_type),
        "host": host,
        "schema": unquote(parts.path[1:]),
        "login": unquote(parts.username) if parts.username else parts.username,
        "password": unquote(parts.password) if parts.password else parts.password,
        "port": parts.port,
        "extra": extra,
    }
