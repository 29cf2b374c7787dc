"""`LLMSQLQueryOperator`: a model writes a query."""

from airflow.providers.common.ai.operators.llm import LLMOperator
from updraft_hold import hold


class LLMSQLQueryOperator(LLMOperator):
    """Turns a question into SQL."""

    _updraft_kind = None
    _updraft_reason = "it is not run natively yet"
    template_fields = (*LLMOperator.template_fields, "db_conn_id", "table_names", "schema_context")

    def __init__(
        self,
        *,
        db_conn_id=None,
        table_names=None,
        schema_context=None,
        validate_sql=True,
        allowed_sql_types=("Select", "Union", "Intersect", "Except"),
        dialect=None,
        datasource_config=None,
        **kwargs,
    ):
        super().__init__(**kwargs)
        hold(self, locals())
