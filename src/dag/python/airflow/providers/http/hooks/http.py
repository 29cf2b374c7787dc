"""`HttpHook`: requests to the server of a connection."""

from typing import Any

from airflow.sdk.bases.hook import BaseHook
from updraft_native_hook import ask, not_here


class Headers(dict):
    """Headers of an answer: the case of a name does not matter."""

    def __getitem__(self, name):
        return super().__getitem__(name.lower())

    def __contains__(self, name):
        return isinstance(name, str) and super().__contains__(name.lower())

    def get(self, name, default=None):
        """The value of a header."""
        return super().get(name.lower(), default)


def _charset(headers):
    """The encoding that an answer names, or that its kind has; None when nobody knows."""
    kind, *parameters = (part.strip() for part in headers.get("content-type", "").split(";"))
    for parameter in parameters:
        name, _, value = parameter.partition("=")
        if name.strip().lower() == "charset":
            return value.strip(" '\"")
    if "text" in kind:
        return "ISO-8859-1"
    return "utf-8" if kind == "application/json" else None


class Response:
    """An answer, with what is used most of `requests.Response`."""

    def __init__(self, answer):
        body = answer["body"]
        if isinstance(body, dict):
            import base64

            self.content = base64.b64decode(body["base64"])
        else:
            self.content = body.encode()
        self.status_code = answer["status"]
        self.reason = answer["reason"]
        self.url = answer["url"]
        self.headers = Headers(answer["headers"])
        self.encoding = _charset(self.headers)

    @property
    def text(self):
        """The body as text."""
        try:
            return self.content.decode(self.encoding or "utf-8", "replace")
        except LookupError:
            # It names an encoding that nobody has.
            return self.content.decode("utf-8", "replace")

    @property
    def ok(self):
        """Is the status below 400?"""
        return self.status_code < 400

    def json(self, **kwargs):
        """The body, parsed."""
        import json

        return json.loads(self.content, **kwargs)

    def raise_for_status(self):
        """Raises for an error status."""
        if not self.ok:
            raise RuntimeError(f"{self.status_code} Error: {self.reason} for url: {self.url}")

    def __repr__(self):
        return f"<Response [{self.status_code}]>"


def _name(value):
    """The name of a class, or of what stands for one of a module that is not here."""
    origin = getattr(value, "_unavailable_origin", None)
    return origin[1] if origin is not None else getattr(value, "__name__", type(value).__name__)


def _body(data, is_query):
    """Data as the worker takes it: `data` for text and fields, `body` for bytes."""
    if hasattr(data, "read"):
        data = data.read()
    if isinstance(data, (bytes, bytearray)) and is_query:
        data = data.decode()
    elif isinstance(data, (bytes, bytearray)):
        import base64

        return {"body": base64.b64encode(data).decode("ascii")}
    if hasattr(data, "items"):
        data = dict(data.items())
    if data is not None and not isinstance(data, (str, dict, list, tuple)):
        raise TypeError(f"data is a {type(data).__name__}, and must be text, bytes, an open file or a form's fields")
    from updraft_toolsets import jsonable

    return {"data": jsonable(data)}


class HttpHook(BaseHook):
    """Sends requests."""

    conn_name_attr = "http_conn_id"
    default_conn_name = "http_default"
    conn_type = "http"
    hook_name = "HTTP"
    default_host = ""
    default_headers = {}

    def __init__(
        self,
        method="POST",
        http_conn_id="http_default",
        auth_type=None,
        tcp_keep_alive=True,
        tcp_keep_alive_idle=120,
        tcp_keep_alive_count=20,
        tcp_keep_alive_interval=30,
        adapter=None,
    ):
        super().__init__()
        self.http_conn_id = http_conn_id
        self.method = method.upper()
        self.base_url = ""
        self._auth_type = auth_type
        self.tcp_keep_alive = tcp_keep_alive
        self.keep_alive_idle = tcp_keep_alive_idle
        self.keep_alive_count = tcp_keep_alive_count
        self.keep_alive_interval = tcp_keep_alive_interval
        self.adapter = adapter

    @property
    def auth_type(self):
        """How it authenticates."""
        return self._auth_type

    @auth_type.setter
    def auth_type(self, value):
        self._auth_type = value

    def _updraft_obstacle(self):
        """Why the hook, as it was made, can't run here; None when it can."""
        if self._auth_type is not None and _name(self._auth_type) != "HTTPBasicAuth":
            return f"has the auth_type {_name(self._auth_type)}, and the worker sends the login as basic authentication"
        if self.adapter is not None:
            return "has an adapter, which is a part of the requests library"
        return None

    def run(
        self,
        endpoint: str | None = None,
        data: dict[str, Any] | str | None = None,
        headers: dict[str, Any] | None = None,
        extra_options: dict[str, Any] | None = None,
        **request_kwargs: Any,
    ):
        """Send a request to the connection's server and give the answer.

        :param endpoint: The path below the connection's address, with a query where one is needed.
        :param data: The query of a GET request, the body of others.
        :param headers: More headers.
        :param extra_options: Settings of this request: timeout in seconds, allow_redirects, check_response.
        """
        unknown = sorted(set(request_kwargs) - {"json", "params"})
        if unknown:
            raise ValueError(
                f"HttpHook.run takes no {', '.join(unknown)} on this worker; json, params, data and headers it does"
            )
        obstacle = self._updraft_obstacle()
        if obstacle is not None:
            raise ValueError(f"HttpHook does not run on this worker: it {obstacle}")
        from updraft_toolsets import jsonable

        request = {
            "method": self.method,
            "endpoint": endpoint,
            **_body(data, is_query=self.method == "GET"),
            "json": jsonable(request_kwargs.get("json")),
            "params": jsonable(request_kwargs.get("params")),
            "headers": {**self.default_headers, **(headers or {})},
            "extra_options": jsonable(extra_options or {}),
        }
        response = Response(ask("http", self.http_conn_id, request=request))
        options = {**self.get_connection(self.http_conn_id).extra_dejson, **(extra_options or {})}
        if options.get("check_response", True):
            self.check_response(response)
        return response

    get_conn = run_and_check = not_here("hands out a session of the requests library")

    def run_with_advanced_retry(self, _retry_args, *args, **kwargs):
        """Sends a request; retries are the task's."""
        return self.run(*args, **kwargs)

    def check_response(self, response):
        """Raises for an error status."""
        if response.ok:
            return
        from airflow.sdk.exceptions import AirflowException

        for line in (f"HTTP error: {response.reason}", response.text):
            self.log.error("%s", line)
        raise AirflowException(f"{response.status_code}:{response.reason}")

    def url_from_endpoint(self, endpoint):
        """The address of an endpoint."""
        if not self.base_url:
            connection = self.get_connection(self.http_conn_id)
            host = connection.host or self.default_host
            self.base_url = host if "://" in host else f"{connection.schema or 'http'}://{host}"
            if connection.port:
                self.base_url += f":{connection.port}"
        below = endpoint or ""
        is_apart = not below or not self.base_url or "/" in (self.base_url[-1], below[0])
        return self.base_url + ("" if is_apart else "/") + below

    def test_connection(self):
        """Can the server be reached?"""
        try:
            self.run()
        except Exception as error:
            return False, str(error)
        return True, "Connection successfully tested"
