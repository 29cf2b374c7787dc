"""`HttpSensor`: waits for an HTTP answer."""

from airflow.sdk.bases.sensor import BaseSensorOperator
from updraft_hold import hold


class HttpSensor(BaseSensorOperator):
    """Waits until a request succeeds."""

    template_fields = ("endpoint", "request_params", "headers", "http_conn_id")

    def __init__(
        self,
        *,
        endpoint,
        http_conn_id="http_default",
        method="GET",
        request_params=None,
        request_kwargs=None,
        headers=None,
        response_error_codes_allowlist=None,
        response_check=None,
        extra_options=None,
        tcp_keep_alive=True,
        tcp_keep_alive_idle=120,
        tcp_keep_alive_count=20,
        tcp_keep_alive_interval=30,
        deferrable=False,
        **kwargs,
    ):
        super().__init__(**kwargs)
        hold(self, locals())
