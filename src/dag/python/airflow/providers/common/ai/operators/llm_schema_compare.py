"""`LLMSchemaCompareOperator`: a model compares schemas."""

from typing import Literal

from airflow.providers.common.ai.operators.llm import LLMOperator
from pydantic import BaseModel, Field
from updraft_hold import hold


# The texts of these two reach the model.
class SchemaMismatch(BaseModel):
    """A single schema mismatch between data sources."""

    source: str = Field(description="Source table")
    target: str = Field(description="Target table")
    column: str = Field(description="Column name where the mismatch was detected")
    source_type: str = Field(description="Data type in the source system")
    target_type: str = Field(description="Data type in the target system")
    severity: Literal["critical", "warning", "info"] = Field(description="Mismatch severity")
    description: str = Field(description="Human-readable description of the mismatch")
    suggested_action: str = Field(description="Recommended action to resolve the mismatch")
    migration_query: str = Field(description="Provide migration query to resolve the mismatch")


class SchemaCompareResult(BaseModel):
    """Structured output from schema comparison."""

    compatible: bool = Field(description="Whether the schemas are compatible for data loading")
    mismatches: list[SchemaMismatch] = Field(default_factory=list)
    summary: str = Field(description="High-level summary of the comparison")


# Airflow's own text: it reaches the model when the Dag's author gives none.
DEFAULT_SYSTEM_PROMPT = (
    "Consider cross-system type equivalences:\n"
    "- varchar(n) / text / string / TEXT may be compatible\n"
    "- int / integer / int4 / INT32 are equivalent\n"
    "- bigint / int8 / int64 / BIGINT are equivalent\n"
    "- timestamp / timestamptz / TIMESTAMP_NTZ / datetime may differ in timezone handling\n"
    "- numeric(p,s) / decimal(p,s) / NUMBER — check precision and scale\n"
    "- boolean / bool / BOOLEAN / tinyint(1) — check semantic equivalence\n\n"
    "Severity levels:\n"
    "- critical: Will cause data loading failures or data loss "
    "(e.g., column missing in target, incompatible types)\n"
    "- warning: May cause data quality issues (e.g., precision loss, timezone mismatch)\n"
    "- info: Cosmetic differences that won't affect data loading "
    "(e.g., varchar length differences within safe range)\n\n"
)


class LLMSchemaCompareOperator(LLMOperator):
    """Compares the schemas of several sources."""

    # The sources themselves are no text: the worker gets them with the question.
    _updraft_own_fields = ("db_conn_ids", "table_names", "context_strategy")
    _updraft_serializes = True
    supports_decision_policy = False
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
        if "output_type" in kwargs:
            raise TypeError(
                "LLMSchemaCompareOperator does not accept 'output_type'; it always returns SchemaCompareResult."
            )
        super().__init__(
            system_prompt=system_prompt, output_type=SchemaCompareResult, **{**kwargs, "serialize_output": True}
        )
        data_sources = data_sources or []
        db_conn_ids = db_conn_ids or []
        table_names = table_names or []
        hold(self, locals())
        if not data_sources and not db_conn_ids:
            raise ValueError("Provide at least one of 'data_sources' or 'db_conn_ids'.")
        if db_conn_ids and not table_names:
            raise ValueError("'table_names' is required when using 'db_conn_ids'.")
        if isinstance(db_conn_ids, (list, tuple)) and isinstance(table_names, (list, tuple)):
            if len(db_conn_ids) * len(table_names) + len(data_sources) < 2:
                raise ValueError(
                    "Provide at-least two combinations of 'db_conn_ids' and 'table_names' or 'data_sources' to compare."
                )

    @staticmethod
    def _updraft_question(settings, task):
        sources = [source._updraft_spec() for source in settings.data_sources or ()]
        return {"schema_compare": {"data_sources": sources}}, SchemaCompareResult
