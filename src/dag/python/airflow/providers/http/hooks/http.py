"""`HttpHook`: requests to the server of a connection."""

from airflow.sdk.bases.hook import BaseHook

_NO_NETWORK = "Dag code has no network here; run this task on a Python worker"


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

    def get_conn(self, headers=None, extra_options=None):
        """A session."""
        raise RuntimeError(_NO_NETWORK)

    def run(self, endpoint=None, data=None, headers=None, extra_options=None, **request_kwargs):
        """Sends a request and gives the answer."""
        raise RuntimeError(_NO_NETWORK)

    def run_and_check(self, session, prepped_request, extra_options):
        """Sends a prepared request."""
        raise RuntimeError(_NO_NETWORK)

    def run_with_advanced_retry(self, _retry_args, *args, **kwargs):
        """Sends a request, with retries."""
        raise RuntimeError(_NO_NETWORK)

    def check_response(self, response):
        """Raises for an error status."""
        response.raise_for_status()

    def url_from_endpoint(self, endpoint):
        """The address of an endpoint."""
        if not self.base_url:
            connection = self.get_connection(self.http_conn_id)
            host = connection.host or self.default_host
            self.base_url = host if "://" in host else f"{connection.schema or 'http'}://{host}"
            if connection.port:
                self.base_url += f":{connection.port}"
        if self.base_url and not self.base_url.endswith("/") and endpoint and not endpoint.startswith("/"):
            return f"{self.base_url}/{endpoint}"
        return self.base_url + (endpoint or "")

    def test_connection(self):
        """Can the server be reached?"""
        return False, _NO_NETWORK
