"""`LLMFileAnalysisOperator`: a model reads files."""

from airflow.providers.common.ai.operators.llm import LLMOperator
from updraft_hold import hold

_LIMITS = {
    "max_files": 20,
    "max_file_size_bytes": 5242880,
    "max_total_size_bytes": 20971520,
    "max_text_chars": 100000,
    "sample_rows": 10,
}


class LLMFileAnalysisOperator(LLMOperator):
    """Asks a model about files."""

    _updraft_own_fields = ("file_path", "file_conn_id")
    supports_decision_policy = False
    template_fields = (*LLMOperator.template_fields, *_updraft_own_fields)

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
        for name in _LIMITS:
            if getattr(self, name) <= 0:
                raise ValueError(f"{name} must be greater than zero.")

    @staticmethod
    def _updraft_question(settings, task):
        limits = {name: getattr(settings, name) or default for name, default in _LIMITS.items()}
        return {"file_analysis": {"multi_modal": bool(settings.multi_modal), **limits}}, settings.output_type
