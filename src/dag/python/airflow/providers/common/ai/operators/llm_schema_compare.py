"""`LLMSchemaCompareOperator`: a model compares schemas."""

from airflow.providers.common.ai.operators.llm import LLMOperator
from updraft_hold import hold

# Airflow's own text: it reaches the model when the Dag's author gives none.
DEFAULT_SYSTEM_PROMPT = None


class LLMSchemaCompareOperator(LLMOperator):
    """Compares the schemas of several sources."""

    _updraft_kind = None
    _updraft_reason = "it is not run natively yet"
    template_fields = (
        *LLMOperator.template_fields,
        "data_sources",
        "db_conn_ids",
        "table_names",
        "context_strategy",
    )

    def __init__(
        self,
        *,
        data_sources=None,
        db_conn_ids=None,
        table_names=None,
        context_strategy="full",
        system_prompt=DEFAULT_SYSTEM_PROMPT,
        **kwargs,
    ):
        super().__init__(system_prompt=system_prompt, **kwargs)
        hold(self, locals())
