//! `SQLToolset`: four tools over one database connection, behind a guard.
//!
//! The guard decides from the text alone; the drivers in `hook` know nothing of it. Results are Python's `json.dumps`
//! to the byte, because the model reads them as text and their budgets count bytes.

mod allow_list;
pub mod guard;
pub(super) mod query_result;
pub(super) mod schema_result;
pub(super) mod tools;

use std::collections::HashSet;
use std::sync::Arc;

use async_trait::async_trait;
use serde_json::{Map, Value, json};
use tokio::sync::OnceCell;

pub use allow_list::AllowList;

use self::guard::{Dialect, Guard};
use self::query_result::QueryLimits;
use self::schema_result::SchemaLimits;
use crate::agent::{ToolDefinition, ToolError, Toolset};
use crate::airflow::python_text::{JsonStyle, casefold, dumps, repr_str};
use crate::hook::{self, Access, ConnectionSource, Database, TableFilter, blocking};

/// Replaces secrets in one piece of text.
pub type Mask = Arc<dyn Fn(&str) -> String + Send + Sync>;

/// The arguments of `SQLToolset`, after templates were rendered.
#[derive(Clone, Debug)]
pub struct SqlToolsetConfig {
    pub db_conn_id: String,
    /// `None` when the argument was left out: every table.
    pub allowed_tables: Option<Vec<String>>,
    /// Names of functions that the known-function lists do not hold and that may be called nevertheless.
    pub allowed_functions: Vec<String>,
    /// The schema of names that have none.
    pub schema: Option<String>,
    pub allow_writes: bool,
    pub max_rows: i64,
    /// Bytes of UTF-8.
    pub max_result_bytes: i64,
    pub max_columns: i64,
    /// `None`: the run's own budget.
    pub max_retries: Option<u32>,
}

impl SqlToolsetConfig {
    /// The defaults of the Python class.
    #[must_use]
    pub fn new(db_conn_id: impl Into<String>) -> Self {
        Self {
            db_conn_id: db_conn_id.into(),
            allowed_tables: None,
            allowed_functions: Vec::new(),
            schema: None,
            allow_writes: false,
            max_rows: 50,
            max_result_bytes: 65_536,
            max_columns: 100,
            max_retries: None,
        }
    }
}

/// Why a toolset can't be made of its arguments.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SqlToolsetError {
    /// An empty list must not widen to every table.
    #[error(
        "allowed_tables must name at least one table, got []. Omit the argument to expose every table in the schema. \
         An empty or missing value is rejected rather than read as 'no restriction' so that an allow-list built at \
         runtime cannot silently widen to every table."
    )]
    EmptyAllowList,
}

/// The toolset: see the [module](self).
pub struct SqlToolset {
    config: SqlToolsetConfig,
    allow_list: Option<AllowList>,
    allowed_functions: HashSet<String>,
    connections: Arc<dyn ConnectionSource>,
    mask: Mask,
    database: OnceCell<Arc<dyn Database>>,
}

/// What went wrong inside a tool: whatever it is, the model reads it and may try again.
type ToolFailure = Box<dyn std::error::Error + Send + Sync>;

impl SqlToolset {
    /// A toolset that looks its connection up at the first call.
    ///
    /// # Errors
    /// See [`SqlToolsetError`].
    pub fn new(
        config: SqlToolsetConfig,
        connections: Arc<dyn ConnectionSource>,
        mask: Mask,
    ) -> Result<Self, SqlToolsetError> {
        let allow_list = match config.allowed_tables.as_deref() {
            None => None,
            Some([]) => return Err(SqlToolsetError::EmptyAllowList),
            Some(entries) => Some(AllowList::new(entries, config.schema.as_deref())),
        };
        let allowed_functions = config
            .allowed_functions
            .iter()
            .map(|name| casefold(name))
            .collect();
        Ok(Self {
            config,
            allow_list,
            allowed_functions,
            connections,
            mask,
            database: OnceCell::new(),
        })
    }

    async fn database(&self) -> Result<&Arc<dyn Database>, ToolFailure> {
        self.database
            .get_or_try_init(|| async {
                let connection = self.connections.connection(&self.config.db_conn_id).await?;
                let tables: Option<TableFilter> = self.allow_list.clone().map(|list| {
                    let filter: TableFilter =
                        Arc::new(move |schema, table| list.allows(None, schema, table));
                    filter
                });
                let access = Access {
                    allow_writes: self.config.allow_writes,
                    tables,
                };
                Ok(hook::connect(&connection, access)?)
            })
            .await
    }

    async fn run(&self, name: &str, args: &Map<String, Value>) -> Result<String, ToolFailure> {
        let text = |key: &str| args.get(key).and_then(Value::as_str);
        match name {
            "list_tables" => self.list_tables().await,
            "get_schema" => {
                let filter = text("name_contains").filter(|filter| !filter.is_empty());
                self.get_schema(text("table_name").unwrap_or_default(), filter)
                    .await
            }
            "query" => self.query(text("sql").unwrap_or_default()).await,
            _ => Ok(self.check_query(text("sql").unwrap_or_default()).await),
        }
    }

    async fn list_tables(&self) -> Result<String, ToolFailure> {
        let database = self.database().await?;
        let mut tables = Vec::new();
        let Some(allow_list) = &self.allow_list else {
            tables = database.table_names(self.config.schema.as_deref()).await?;
            return Ok(self.loose(&json!(tables)));
        };
        let mut seen = HashSet::new();
        for schema in allow_list.qualified_schemas() {
            for name in database.table_names(Some(schema)).await? {
                let key = AllowList::key(Some(schema), &name);
                if allow_list.allows(None, Some(schema), &name) && seen.insert(key) {
                    tables.push(format!("{schema}.{name}"));
                }
            }
        }
        if allow_list.includes_default_schema() {
            let schema = self.config.schema.as_deref();
            for name in database.table_names(schema).await? {
                let key = AllowList::key(schema, &name);
                if allow_list.allows(None, schema, &name) && seen.insert(key) {
                    tables.push(name);
                }
            }
        }
        Ok(self.loose(&json!(tables)))
    }

    async fn get_schema(
        &self,
        table_name: &str,
        name_contains: Option<&str>,
    ) -> Result<String, ToolFailure> {
        let (schema, table) = match table_name.rsplit_once('.') {
            Some((schema, table)) => (Some(schema), table),
            None => (self.config.schema.as_deref(), table_name),
        };
        if self
            .allow_list
            .as_ref()
            .is_some_and(|list| !list.allows(None, schema, table))
        {
            let name = repr_str(table_name);
            let error = format!("Table {name} is not in the allowed tables list.");
            return Ok(self.loose(&json!({ "error": error })));
        }
        let columns = self.database().await?.columns(table, schema).await?;
        let limits = SchemaLimits {
            max_columns: self.config.max_columns,
            max_result_bytes: self.config.max_result_bytes,
        };
        Ok(schema_result::render(
            &columns,
            limits,
            name_contains,
            &self.mask,
        ))
    }

    async fn query(&self, sql: &str) -> Result<String, ToolFailure> {
        let database = self.database().await?;
        let dialect = Dialect::of_database(database.dialect_name());
        // With writes allowed and no list there is nothing to check, and what the parser can't read may still run.
        if !self.config.allow_writes || self.allow_list.is_some() {
            self.check(sql, dialect).await?;
        }
        let limit = usize::try_from(self.config.max_rows.saturating_add(1)).unwrap_or(0);
        let statement = sql.trim().trim_end_matches(';');
        let result = database.run(statement, limit).await?;
        let limits = QueryLimits {
            max_rows: self.config.max_rows,
            max_result_bytes: self.config.max_result_bytes,
        };
        Ok(query_result::render(&result, limits, &self.mask))
    }

    async fn check_query(&self, sql: &str) -> String {
        let dialect = match self.database().await {
            Ok(database) => Dialect::of_database(database.dialect_name()),
            Err(_) => Dialect::Generic,
        };
        match self.check(sql, dialect).await {
            Ok(()) => self.loose(&json!({ "valid": true })),
            Err(error) => self.loose(&json!({ "valid": false, "error": error.to_string() })),
        }
    }

    async fn check(&self, sql: &str, dialect: Dialect) -> Result<(), ToolFailure> {
        let guard = Guard {
            dialect,
            allow_writes: self.config.allow_writes,
            allow_list: self.allow_list.clone(),
            allowed_functions: self.allowed_functions.clone(),
        };
        let sql = sql.to_owned();
        blocking::run(move || guard.check(&sql)).await??;
        Ok(())
    }

    fn loose(&self, value: &Value) -> String {
        dumps(&masked(value.clone(), &self.mask), JsonStyle::LOOSE)
    }
}

#[async_trait]
impl Toolset for SqlToolset {
    fn id(&self) -> String {
        format!("sql-{}", self.config.db_conn_id)
    }

    fn label(&self) -> &'static str {
        "SQLToolset"
    }

    async fn tools(&self) -> Result<Vec<ToolDefinition>, ToolError> {
        Ok(tools::definitions(self.config.max_retries))
    }

    async fn call(&self, name: &str, args: Map<String, Value>) -> Result<Value, ToolError> {
        if !tools::NAMES.contains(&name) {
            return Err(ToolError::Fatal(format!(
                "Unknown tool: {}",
                repr_str(name)
            )));
        }
        let _turn = blocking::exclusive().await;
        match self.run(name, &args).await {
            Ok(text) => Ok(Value::String(text)),
            Err(error) => Err(ToolError::Retry((self.mask)(&format!(
                "The {name} tool failed: {error}\nUse the list_tables and get_schema tools to inspect the database, \
                 then fix the query and try again."
            )))),
        }
    }

    async fn close(&self) {
        if let Some(database) = self.database.get() {
            database.close().await;
        }
    }
}

/// Secrets are replaced before the JSON is made: inside it a password with a quote in it would not be recognised.
pub(super) fn masked(value: Value, mask: &Mask) -> Value {
    match value {
        Value::String(text) => Value::String(mask(&text)),
        Value::Array(items) => items.into_iter().map(|item| masked(item, mask)).collect(),
        Value::Object(entries) => entries
            .into_iter()
            .map(|(key, item)| (mask(&key), masked(item, mask)))
            .collect::<Map<_, _>>()
            .into(),
        Value::Null | Value::Bool(_) | Value::Number(_) => value,
    }
}
