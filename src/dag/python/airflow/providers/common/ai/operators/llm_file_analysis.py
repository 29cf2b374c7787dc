"""`LLMFileAnalysisOperator`: a model reads files."""

from airflow.providers.common.ai.operators.llm import LLMOperator
from updraft_hold import hold


class LLMFileAnalysisOperator(LLMOperator):
    """Asks a model about files."""

    _updraft_kind = None
    _updraft_reason = "it is not run natively yet"
    template_fields = (*LLMOperator.template_fields, "file_path", "file_conn_id")

    def __init__(
        self,
        *,
        file_path,
        file_conn_id=None,
        multi_modal=False,
        max_files=20,
        max_file_size_bytes=5242880,
        max_total_size_bytes=20971520,
        max_text_chars=100000,
        sample_rows=10,
        **kwargs,
    ):
        super().__init__(**kwargs)
        hold(self, locals())
