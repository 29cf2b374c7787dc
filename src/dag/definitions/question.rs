//! What `LLMOperator` and the operators that derive from it take beside the arguments of agents.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Argument, DataSourceSpec};

/// What `LLMOperator` and its subclasses take in place of `agent_params`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LlmQuestion {
    #[serde(default)]
    pub model_settings: Argument,
    #[serde(default)]
    pub output_retries: Argument,
    #[serde(default)]
    pub kind: QuestionKind,
    #[serde(default)]
    pub approval: Approval,
    /// The operator's template fields that `LLMOperator` has not.
    #[serde(default)]
    pub fields: Vec<(String, Argument)>,
}

impl LlmQuestion {
    /// Is the answer which downstream tasks to follow?
    #[must_use]
    pub fn is_branch(&self) -> bool {
        matches!(self.kind, QuestionKind::Branch)
    }

    /// A template field that `LLMOperator` has not.
    #[must_use]
    pub fn field(&self, name: &str) -> Option<&Argument> {
        let mut fields = self.fields.iter();
        fields.find_map(|(field, value)| (field == name).then_some(value))
    }
}

/// What is asked, by the operator.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum QuestionKind {
    /// `LLMOperator`, `@task.llm`: the prompt as it is.
    #[default]
    Plain,
    /// `LLMBranchOperator`, `@task.llm_branch`: which downstream tasks to follow. The field `branches` has task ids with
    /// what the model is told of them.
    Branch,
    /// `LLMSQLQueryOperator`, `@task.llm_sql`: a query.
    Sql(SqlQuestion),
    /// `LLMFileAnalysisOperator`, `@task.llm_file_analysis`: something about files.
    FileAnalysis(FileQuestion),
    /// `LLMSchemaCompareOperator`, `@task.llm_schema_compare`: what differs between tables.
    SchemaCompare(SchemaQuestion),
}

/// What `LLMSQLQueryOperator` takes beside its template fields `db_conn_id`, `table_names` and `schema_context`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SqlQuestion {
    pub validate_sql: bool,
    /// Names of sqlglot's classes; `None`: those of queries.
    #[serde(default)]
    pub allowed_sql_types: Option<Vec<String>>,
    #[serde(default)]
    pub dialect: Option<String>,
    #[serde(default)]
    pub datasource_config: Option<DataSourceSpec>,
}

/// What `LLMFileAnalysisOperator` takes beside its template fields `file_path` and `file_conn_id`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileQuestion {
    pub multi_modal: bool,
    pub max_files: usize,
    /// Bytes of one file.
    pub max_file_size_bytes: u64,
    /// Bytes of all files.
    pub max_total_size_bytes: u64,
    /// Characters of all contents.
    pub max_text_chars: usize,
    pub sample_rows: usize,
}

/// What `LLMSchemaCompareOperator` takes beside its template fields `db_conn_ids`, `table_names` and `context_strategy`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SchemaQuestion {
    #[serde(default)]
    pub data_sources: Vec<DataSourceSpec>,
}

/// Who must see an answer before it counts (`require_approval`, `decision_policy` and their kin).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Approval {
    pub require_approval: bool,
    /// The policy's bar, from 0 to 1; `None`: no gate.
    pub min_confidence: Option<f64>,
    /// `review` or `fail`.
    pub on_uncertain: String,
    /// Bars of branches that have their own.
    pub branch_bars: BTreeMap<String, f64>,
    /// Seconds that a person has.
    pub timeout: Option<f64>,
    /// `fail`, `approve` or `reject`.
    pub on_timeout: String,
    pub allow_modifications: bool,
    /// `{"id", "name"}` each; empty: whoever may.
    pub assigned_users: Vec<Value>,
    /// Is somebody told of an open review? Notifiers run in the interpreter.
    pub has_notifiers: bool,
}

impl Approval {
    /// Can an answer come to wait for a person?
    #[must_use]
    pub fn may_review(&self) -> bool {
        self.require_approval || self.min_confidence.is_some() && self.on_uncertain == "review"
    }
}
