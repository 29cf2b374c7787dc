"""`LLMSQLQueryOperator`: a model writes a query."""

from airflow.providers.common.ai.operators.llm import LLMOperator
from updraft_hold import hold

# Types of statements, by the names of sqlglot's classes.
_QUERIES = ("Select", "Union", "Intersect", "Except")


class LLMSQLQueryOperator(LLMOperator):
    """Turns a question into SQL."""

    _updraft_own_fields = ("db_conn_id", "table_names", "schema_context")
    supports_decision_policy = False
    template_fields = (*LLMOperator.template_fields, *_updraft_own_fields)

    def __init__(
        self,
        *,
        db_conn_id=None,
        table_names=None,
        schema_context=None,
        validate_sql=True,
        allowed_sql_types=_QUERIES,
        dialect=None,
        datasource_config=None,
        **kwargs,
    ):
        if "output_type" in kwargs:
            raise TypeError(
                "LLMSQLQueryOperator does not accept 'output_type'; it always returns the generated SQL as str."
            )
        super().__init__(**kwargs)
        hold(self, locals())

    @staticmethod
    def _updraft_question(settings, task):
        validate = settings.validate_sql
        types = tuple(_name(item) for item in settings.allowed_sql_types or ())
        source = settings.datasource_config
        question = {
            "validate_sql": validate is None or bool(validate),
            "allowed_sql_types": None if types in ((), _QUERIES) else list(types),
            "dialect": settings.dialect,
            "datasource_config": None if source is None else source._updraft_spec(),
        }
        return {"sql": question}, str


def _name(item):
    """The name of a class of sqlglot, which is not here."""
    origin = getattr(item, "_unavailable_origin", None)
    return item if origin is None else origin[1].rpartition(".")[2]
