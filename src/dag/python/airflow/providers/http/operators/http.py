"""`HttpOperator`: an HTTP request."""

from airflow.sdk.bases.operator import BaseOperator
from updraft_hold import hold


class HttpOperator(BaseOperator):
    """Sends a request."""

    _updraft_reason = "HTTP requests of this operator are not run natively yet"
    template_fields = ("endpoint", "data", "headers", "http_conn_id")

    def __init__(
        self,
        *,
        endpoint=None,
        method="POST",
        data=None,
        headers=None,
        pagination_function=None,
        response_check=None,
        response_filter=None,
        extra_options=None,
        request_kwargs=None,
        http_conn_id="http_default",
        log_response=False,
        auth_type=None,
        tcp_keep_alive=True,
        tcp_keep_alive_idle=120,
        tcp_keep_alive_count=20,
        tcp_keep_alive_interval=30,
        deferrable=False,
        warn_on_non_idempotent=True,
        retry_args=None,
        **kwargs,
    ):
        super().__init__(**kwargs)
        hold(self, locals())
