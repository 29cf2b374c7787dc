//! `DataFusionToolset`: SQL over files, object stores and Iceberg tables, run in the worker by Apache DataFusion.
//!
//! A Dag names its sources; each is a table. The engine is made at the first call: a task that never asks pays nothing.
//! The guard is that of `SQLToolset` for no dialect in particular, and DataFusion is told on its own to plan nothing
//! that writes. The row limit is part of the plan, and rows are taken as they come.

mod engine;
mod iceberg;
mod listing;
mod misfit;
mod naming;
mod options;
mod source;
mod stores;
mod threads;
mod type_name;
mod value;

use std::collections::HashSet;
use std::sync::{Arc, LazyLock};

use async_trait::async_trait;
use regex::Regex;
use serde_json::{Map, Value, json};
use tokio::sync::Mutex;

pub use self::engine::EngineSettings;
pub use self::source::{DataSourceConfig, DataSourceError};
pub(super) use self::type_name::python_name;
pub(super) use self::value::cell;

use self::engine::{Answer, Engine, EngineError, QueryError};
use super::sql::guard::{Dialect, Guard, Refusal};
use super::sql::query_result::{self, QueryLimits};
use super::sql::schema_result::{self, SchemaLimits};
use super::sql::{Mask, masked, tools};
use crate::agent::{ToolDefinition, ToolError, Toolset};
use crate::airflow::python_text::{JsonStyle, dumps, repr_str};
use crate::hook::{ConnectionSource, blocking};

/// Airflow's logger for the same warnings.
const LOGGER: &str = "airflow.providers.common.ai.toolsets.datafusion";
/// Bytes of an engine's error that a model is shown at least: some list every column there is.
const MIN_ERROR_BYTES: i64 = 4096;

/// The arguments of `DataFusionToolset`.
#[derive(Clone, Debug)]
pub struct DataFusionToolsetConfig {
    pub datasource_configs: Vec<DataSourceConfig>,
    pub allow_writes: bool,
    pub max_rows: i64,
    /// Bytes of UTF-8.
    pub max_result_bytes: i64,
    pub max_columns: i64,
    /// `None`: the run's own budget.
    pub max_retries: Option<u32>,
}

impl DataFusionToolsetConfig {
    /// The defaults of the Python class.
    #[must_use]
    pub fn new(datasource_configs: Vec<DataSourceConfig>) -> Self {
        Self {
            datasource_configs,
            allow_writes: false,
            max_rows: 50,
            max_result_bytes: 65_536,
            max_columns: 100,
            max_retries: None,
        }
    }
}

/// The sources could not be opened.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct SchemaError(#[from] EngineError);

/// The schemas of sources, as `DataFusionEngine.get_schema` gives them: what operators tell a model.
///
/// # Errors
/// See [`SchemaError`].
pub async fn schema_texts(
    sources: &[DataSourceConfig],
    connections: &dyn ConnectionSource,
    settings: &EngineSettings,
    mask: Mask,
) -> Result<Vec<String>, SchemaError> {
    let engine = Engine::build(sources, connections, settings, mask).await?;
    let mut texts = Vec::with_capacity(sources.len());
    for source in sources {
        texts.push(engine.schema_text(&source.table_name).await?);
    }
    Ok(texts)
}

/// Why a toolset can't be made of its arguments.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DataFusionToolsetError {
    #[error("datasource_configs must contain at least one DataSourceConfig")]
    NoSources,
    #[error(transparent)]
    Source(#[from] DataSourceError),
}

/// The toolset: see the [module](self).
pub struct DataFusionToolset {
    config: DataFusionToolsetConfig,
    settings: EngineSettings,
    connections: Arc<dyn ConnectionSource>,
    mask: Mask,
    engine: Mutex<Option<Arc<Engine>>>,
}

impl DataFusionToolset {
    /// A toolset that makes its engine at the first call.
    ///
    /// # Errors
    /// See [`DataFusionToolsetError`].
    pub fn new(
        config: DataFusionToolsetConfig,
        settings: EngineSettings,
        connections: Arc<dyn ConnectionSource>,
        mask: Mask,
    ) -> Result<Self, DataFusionToolsetError> {
        if config.datasource_configs.is_empty() {
            return Err(DataFusionToolsetError::NoSources);
        }
        for source in &config.datasource_configs {
            source.check()?;
        }
        Ok(Self {
            config,
            settings,
            connections,
            mask,
            engine: Mutex::default(),
        })
    }

    async fn engine(&self) -> Result<Arc<Engine>, EngineError> {
        let mut engine = self.engine.lock().await;
        if let Some(engine) = engine.as_ref() {
            return Ok(Arc::clone(engine));
        }
        let built = Engine::build(
            &self.config.datasource_configs,
            self.connections.as_ref(),
            &self.settings,
            Arc::clone(&self.mask),
        );
        let built = Arc::new(built.await?);
        *engine = Some(Arc::clone(&built));
        Ok(built)
    }

    async fn list_tables(&self) -> String {
        match self.engine().await {
            Ok(engine) => self.loose(json!(engine.table_names())),
            Err(error) => {
                tracing::warn!(target: "airflow.task", logger = LOGGER, "list_tables failed: {error}");
                self.loose(json!({ "error": self.shortened(&error.to_string()) }))
            }
        }
    }

    async fn get_schema(
        &self,
        table_name: &str,
        name_contains: Option<&str>,
    ) -> Result<String, ToolError> {
        let found = match self.engine().await {
            Ok(engine) => engine.columns(table_name).await,
            Err(error) => Err(error),
        };
        let found = found.map_err(|error| self.fatal(&error))?;
        let Some((columns, notes)) = found else {
            let error = format!("Table {} is not available", repr_str(table_name));
            return Ok(self.loose(json!({ "error": error })));
        };
        let limits = SchemaLimits {
            max_columns: self.config.max_columns,
            max_result_bytes: self.config.max_result_bytes,
        };
        let text = schema_result::render(&columns, limits, name_contains, &self.mask);
        Ok(self.with_notes(text, &notes, JsonStyle::COMPACT))
    }

    async fn query(&self, sql: &str) -> Result<String, ToolError> {
        if !self.config.allow_writes {
            self.check(sql).await?;
        }
        let engine = self.engine().await.map_err(|error| self.fatal(&error))?;
        let limit = usize::try_from(self.config.max_rows.saturating_add(1)).unwrap_or(0);
        let Answer { result, notes } = engine.query(sql, limit, self.config.allow_writes).await;
        let limits = QueryLimits {
            max_rows: self.config.max_rows,
            max_result_bytes: self.config.max_result_bytes,
        };
        let error = match result {
            Ok(result) => {
                let text = query_result::render(&result, limits, &self.mask);
                return Ok(self.with_notes(text, &notes, JsonStyle::COMPACT));
            }
            Err(error) => error,
        };
        let text = format!(
            "Error while executing query: {}",
            self.shortened(&error.to_string())
        );
        if is_retryable(&error) {
            return Err(ToolError::Retry((self.mask)(&format!(
                "error: {text}, Use get_schema and list_tables tools for more details."
            ))));
        }
        let text = self.loose(json!({"error": text, "query": sql}));
        Ok(self.with_notes(text, &notes, JsonStyle::LOOSE))
    }

    async fn check(&self, sql: &str) -> Result<(), ToolError> {
        let guard = Guard {
            dialect: Dialect::Generic,
            allow_writes: false,
            allow_list: None,
            allowed_functions: HashSet::new(),
        };
        let text = sql.to_owned();
        let verdict = match blocking::run(move || guard.check(&text)).await {
            Ok(verdict) => verdict,
            Err(error) => return Err(ToolError::Fatal(error.to_string())),
        };
        let refusal = match verdict {
            Ok(report) => match report.statement_type.as_str() {
                node @ ("Describe" | "Show") => not_a_select(node),
                _ => return Ok(()),
            },
            Err(Refusal::StatementType(node)) => not_a_select(node),
            Err(refusal) => refusal.to_string(),
        };
        let refusal = (self.mask)(&refusal);
        tracing::warn!(
            target: "airflow.task", logger = LOGGER, "query failed SQL safety validation: {refusal}"
        );
        Err(ToolError::Retry(format!(
            "error: {refusal}. Only read-only SELECT-family queries are allowed unless allow_writes is enabled; check \
             the SQL syntax and statement type, then try again."
        )))
    }

    fn fatal(&self, error: &EngineError) -> ToolError {
        ToolError::Fatal((self.mask)(&error.to_string()))
    }

    fn loose(&self, value: Value) -> String {
        dumps(&masked(value, &self.mask), JsonStyle::LOOSE)
    }

    /// An object as JSON text with the key `note`, where there is something to say.
    fn with_notes(&self, mut object: String, notes: &[String], style: JsonStyle) -> String {
        if notes.is_empty() || object.pop() != Some('}') {
            return object;
        }
        let note = json!({ "note": (self.mask)(&notes.join(" ")) });
        let note = dumps(&note, style);
        object.push_str(style.item_separator);
        object.push_str(note.trim_start_matches('{'));
        object
    }

    /// Masked before it is cut: half of a secret would not be known for one.
    fn shortened(&self, text: &str) -> String {
        let text = (self.mask)(text);
        let most = self.config.max_result_bytes.max(MIN_ERROR_BYTES);
        let most = usize::try_from(most).unwrap_or(usize::MAX);
        if text.len() <= most {
            return text;
        }
        let end = text.floor_char_boundary(most);
        format!("{} ...", text.get(..end).unwrap_or_default())
    }
}

fn not_a_select(node: &str) -> String {
    format!(
        "Statement type '{node}' is not allowed. Allowed types: Select, Union, Intersect, Except"
    )
}

/// A name that is not there is the model's mistake. The original looks for it in the text of the engine's error, which
/// has this form.
fn is_retryable(error: &QueryError) -> bool {
    static NOT_FOUND: LazyLock<Option<Regex>> = LazyLock::new(|| {
        Regex::new(r#"(?i)(?:column|table)\s+(?:['"][^'"]+['"]|\w+)\s+not\s+found"#).ok()
    });
    let QueryError::Engine(error) = error else {
        return false;
    };
    NOT_FOUND
        .as_ref()
        .is_some_and(|pattern| pattern.is_match(&format!("{error:?}")))
}

#[async_trait]
impl Toolset for DataFusionToolset {
    fn id(&self) -> String {
        let tables = self.config.datasource_configs.iter();
        let tables: Vec<_> = tables
            .map(|source| source.table_name.replace('-', "_"))
            .collect();
        format!("sql_datafusion_{}", tables.join("_"))
    }

    fn label(&self) -> &'static str {
        "DataFusionToolset"
    }

    async fn tools(&self) -> Result<Vec<ToolDefinition>, ToolError> {
        Ok(tools::common(
            "List available table names.",
            self.config.max_retries,
        ))
    }

    async fn call(&self, name: &str, args: Map<String, Value>) -> Result<Value, ToolError> {
        let text = |key: &str| args.get(key).and_then(Value::as_str);
        let _turn = blocking::exclusive().await;
        let answer = match name {
            "list_tables" => self.list_tables().await,
            "get_schema" => {
                let filter = text("name_contains").filter(|filter| !filter.is_empty());
                self.get_schema(text("table_name").unwrap_or_default(), filter)
                    .await?
            }
            "query" => self.query(text("sql").unwrap_or_default()).await?,
            _ => {
                return Err(ToolError::Fatal(format!(
                    "Unknown tool: {}",
                    repr_str(name)
                )));
            }
        };
        Ok(Value::String(answer))
    }

    async fn close(&self) {
        self.engine.lock().await.take();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::airflow::config::Environment;
    use crate::airflow::connection::Connection;
    use crate::hook::ConnectionError;

    struct Nobody;

    #[async_trait]
    impl ConnectionSource for Nobody {
        async fn connection(&self, conn_id: &str) -> Result<Connection, ConnectionError> {
            Err(ConnectionError::NotDefined(conn_id.to_owned()))
        }
    }

    #[test]
    fn a_secret_that_the_cut_would_halve_is_masked_before() {
        let source = DataSourceConfig {
            table_name: "t".to_owned(),
            uri: "file:///t.csv".to_owned(),
            format: "csv".to_owned(),
            ..DataSourceConfig::default()
        };
        let mut config = DataFusionToolsetConfig::new(vec![source]);
        config.max_result_bytes = 1;
        let settings = EngineSettings::new(Environment::default());
        let mask: Mask = Arc::new(|text| text.replace("made-up-secret", "***"));
        let toolset = DataFusionToolset::new(config, settings, Arc::new(Nobody), mask).unwrap();
        let most = usize::try_from(MIN_ERROR_BYTES).unwrap();
        let long = format!("{}made-up-secret", "x".repeat(most - 9));
        let shown = toolset.shortened(&format!("{long} and more"));
        assert!(shown.ends_with("x*** and m ..."), "{shown}");
    }
}
