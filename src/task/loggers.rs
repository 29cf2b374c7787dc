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
/// A `LoggingToolset` that was given none.
pub(super) const TOOLS: &str = "airflow.providers.common.ai.toolsets.logging";
