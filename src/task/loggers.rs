//! The Python loggers under which lines stand in a task log.

/// `AgentOperator` and `@task.agent`.
pub const AGENT: &str =
    "airflow.task.operators.airflow.providers.common.ai.operators.agent.AgentOperator";
/// `LLMOperator` and `@task.llm`.
pub(super) const LLM: &str =
    "airflow.task.operators.airflow.providers.common.ai.operators.llm.LLMOperator";
/// `LLMBranchOperator` and `@task.llm_branch`.
pub(super) const LLM_BRANCH: &str =
    "airflow.task.operators.airflow.providers.common.ai.operators.llm_branch.LLMBranchOperator";
/// `LLMSQLQueryOperator` and `@task.llm_sql`.
pub(super) const LLM_SQL: &str =
    "airflow.task.operators.airflow.providers.common.ai.operators.llm_sql.LLMSQLQueryOperator";
/// `LLMFileAnalysisOperator` and `@task.llm_file_analysis`.
pub(super) const LLM_FILES: &str = "airflow.task.operators.airflow.providers.common.ai.operators.llm_file_analysis.LLMFileAnalysisOperator";
/// `LLMSchemaCompareOperator` and `@task.llm_schema_compare`.
pub(super) const LLM_SCHEMA: &str = "airflow.task.operators.airflow.providers.common.ai.operators.llm_schema_compare.LLMSchemaCompareOperator";
/// A `LoggingToolset` that was given none.
pub(super) const TOOLS: &str = "airflow.providers.common.ai.toolsets.logging";
