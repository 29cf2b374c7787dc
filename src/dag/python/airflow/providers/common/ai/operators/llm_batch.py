"""`LLMBatchOperator`: many questions through a provider's batch API."""

from airflow.sdk.bases.operator import BaseOperator
from updraft_hold import hold


class LLMBatchOperator(BaseOperator):
    """Sends a batch of requests and waits for the results."""

    _updraft_reason = "it is not run natively yet"
    template_fields = ("requests", "result_path", "system_prompt", "model_id", "llm_conn_id", "request_params")

    def __init__(
        self,
        *,
        requests,
        result_path,
        llm_conn_id,
        model_id=None,
        system_prompt="",
        output_type=str,
        max_tokens=1024,
        request_params=None,
        poll_interval=60,
        timeout=86400,
        deferrable=False,
        cancel_on_kill=True,
        cancel_on_timeout=True,
        fail_on_partial_error=False,
        on_stale_state="cancel_and_resubmit",
        on_orphaned_intent="resubmit",
        completion_window="24h",
        **kwargs,
    ):
        super().__init__(**kwargs)
        hold(self, locals())
