//! `LLMSchemaCompareOperator`, `@task.llm_schema_compare`: the schemas of several tables side by side.

use std::sync::Arc;

use serde_json::Value;

use super::sql::{describe_database_error, say_empty, source_schemas, table_columns};
use super::{Prepared, indented, prompt, texts};
use crate::airflow::python_text::repr_str;
use crate::dag::definitions::{DataSourceSpec, SchemaQuestion};
use crate::hook::table_keys::TableKeys;
use crate::hook::{self, Access, ConnectionError, ConnectionSource as _, Database};
use crate::task::attempt::{Attempt, Rendered};
use crate::task::failure::Failure;
use crate::task::loggers;
use crate::task::services::Services;
use crate::task::toolsets::Connections;

const LOGGER: &str = loggers::LLM_SCHEMA;

/// Reads the schemas.
///
/// # Errors
/// A source that can't be described, or none at all.
pub(super) async fn prepare(
    attempt: &Attempt,
    question: &SchemaQuestion,
    rendered: &Rendered,
) -> Result<Prepared, Failure> {
    let strategy = rendered.text("context_strategy")?.unwrap_or_default();
    let schemas = schemas(&attempt.services, question, rendered, &strategy).await?;
    tracing::info!(target: "airflow.task", logger = LOGGER, "Schema comparison context:\n{schemas}");
    let more = rendered.text("system_prompt")?.unwrap_or_default();
    let prompt = prompt(rendered.field("prompt"))?;
    tracing::info!(target: "airflow.task", logger = LOGGER, "Running LLM schema comparison...");
    Ok(Prepared {
        instructions: instructions(&schemas, &more),
        prompt,
    })
}

/// Shows the comparison in the log.
pub(super) fn say_result(answer: &Value) {
    let shown = indented(answer, true);
    tracing::info!(target: "airflow.task", logger = LOGGER, "Schema comparison result: \n {shown}");
}

/// What a person is shown of the comparison.
pub(super) fn review_body(rendered: &Rendered, answer: &Value) -> String {
    let mismatches = answer.get("mismatches").and_then(Value::as_array);
    let severities = ["critical", "warning", "info"]
        .iter()
        .filter_map(|severity| {
            let is_it = |mismatch: &&Value| {
                mismatch.get("severity").and_then(Value::as_str) == Some(severity)
            };
            let count = mismatches.into_iter().flatten().filter(is_it).count();
            (count > 0).then(|| format!("{count} {severity}"))
        });
    let severities: Vec<String> = severities.collect();
    let mut text = match answer.get("compatible") {
        Some(Value::Bool(true)) => "Compatible: True".to_owned(),
        _ => "Compatible: False".to_owned(),
    };
    if !severities.is_empty() {
        text.push_str(&format!(" (mismatches: {})", severities.join(", ")));
    }
    let prompt = rendered.field("prompt").as_str().unwrap_or_default();
    format!(
        "{text}\n\n```\nPrompt: {prompt}\n\n{}\n```",
        indented(answer, false)
    )
}

async fn schemas(
    services: &Services,
    question: &SchemaQuestion,
    rendered: &Rendered,
    strategy: &str,
) -> Result<String, Failure> {
    let mut sections = Vec::new();
    let tables = texts(rendered, "table_names")?;
    for conn_id in texts(rendered, "db_conn_ids")? {
        let database = database(services, &conn_id).await.map_err(refused)?;
        for table in &tables {
            let described = describe(database.as_ref(), table, strategy).await;
            if let Some(schema) = described? {
                let dialect = database.dialect_name();
                sections.push(format!(
                    "Source: {conn_id} ({dialect})\nTable: {table}\n{schema}"
                ));
            }
        }
        database.close().await;
    }
    let mut files: Vec<(usize, &DataSourceSpec)> = Vec::new();
    for source in &question.data_sources {
        let conn_id = source.conn_id.as_deref().unwrap_or_default();
        let database = match database(services, conn_id).await {
            Ok(database) => database,
            Err(error @ ConnectionError::NoDriver { .. }) => return Err(refused(error)),
            // What is no database is read as files.
            Err(_) => {
                files.push((sections.len(), source));
                sections.push(String::new());
                continue;
            }
        };
        let table = &source.table_name;
        let schema = describe(database.as_ref(), table, strategy).await?;
        let (dialect, schema) = (database.dialect_name(), schema.unwrap_or_default());
        sections.push(format!(
            "Source: {conn_id} ({dialect})\nTable: {table}\n{schema}"
        ));
        database.close().await;
    }
    let sources: Vec<&DataSourceSpec> = files.iter().map(|(_, source)| *source).collect();
    if !sources.is_empty() {
        let described = source_schemas(services, &sources).await?;
        for ((index, source), columns) in files.iter().zip(described) {
            if let Some(section) = sections.get_mut(*index) {
                *section = format!(
                    "Source: {} \nFormat: ({})\nTable: {}\nColumns: {columns}",
                    source.conn_id.as_deref().unwrap_or_default(),
                    source.format,
                    source.table_name
                );
            }
        }
    }
    if sections.is_empty() {
        return Err(Failure::new(
            "ValueError",
            "No schema information could be retrieved from any of the configured sources. Check that connection IDs, \
             table names, and data source configs are correct.",
        ));
    }
    Ok(sections.join("\n\n"))
}

/// The database of a connection.
async fn database(
    services: &Services,
    conn_id: &str,
) -> Result<Arc<dyn Database>, ConnectionError> {
    let connections = Connections(services.resolver.clone());
    let connection = connections.connection(conn_id).await?;
    // What is sent are the queries of TableKeys, of which SQLite takes some for more than reading.
    let access = Access {
        allow_writes: connection.conn_type == "sqlite",
        tables: None,
    };
    hook::connect(&connection, access)
}

fn refused(error: ConnectionError) -> Failure {
    describe_database_error(&error)
}

/// Columns, and with the strategy `full` keys and indexes; `None` for a table without columns.
async fn describe(
    database: &dyn Database,
    table: &str,
    strategy: &str,
) -> Result<Option<String>, Failure> {
    let Some(columns) = table_columns(database, table).await? else {
        say_empty(LOGGER, table);
        return Ok(None);
    };
    let mut parts = vec![format!("Columns: {columns}")];
    match strategy {
        "basic" => {}
        "full" => add_keys(database, table, &mut parts).await,
        other => {
            let text = format!("Invalid context_strategy: {other}");
            return Err(Failure::new("ValueError", text));
        }
    }
    Ok(Some(parts.join("\n")))
}

/// Keys that can't be read are left out, with a warning.
async fn add_keys(database: &dyn Database, table: &str, parts: &mut Vec<String>) {
    let Some(keys) = TableKeys::of(database, table) else {
        for what in ["primary key", "foreign key", "index"] {
            tracing::warn!(
                target: "airflow.task", logger = LOGGER,
                "{what} introspection not implemented for dialect {}", database.dialect_name()
            );
        }
        return;
    };
    let failed = |what: &str, error: &dyn std::fmt::Display| {
        tracing::warn!(
            target: "airflow.task", logger = LOGGER,
            "Could not retrieve {what} for {}: {error}", repr_str(table)
        );
    };
    match keys.primary_key().await {
        Ok(columns) if columns.is_empty() => {}
        Ok(columns) => parts.push(format!("Primary Key: {}", columns.join(", "))),
        Err(error) => failed("PK", &error),
    }
    match keys.foreign_keys().await {
        Ok(keys) => parts.extend(keys.iter().map(|key| {
            format!(
                "Foreign Key: ({}) -> {}({})",
                key.columns.join(", "),
                key.table,
                key.referred_columns.join(", ")
            )
        })),
        Err(error) => failed("FK", &error),
    }
    match keys.indexes().await {
        Ok(indexes) => parts.extend(indexes.iter().map(|index| {
            let unique = if index.unique { " UNIQUE" } else { "" };
            format!(
                "Index{unique}: {} ({})",
                index.name,
                index.columns.join(", ")
            )
        })),
        Err(error) => failed("index", &error),
    }
}

fn instructions(schemas: &str, more: &str) -> String {
    let mut text = "You are a database schema comparison expert. You understand type systems across PostgreSQL, MySQL, \
        Snowflake, BigQuery, Redshift, S3 Parquet/CSV, Iceberg, and other data systems.\n\n\
        Analyze the schemas from the following data sources and identify mismatches that could break data loading, \
        cause data loss, or produce unexpected behavior.\n\n"
        .to_owned();
    if !more.is_empty() {
        text.push_str(&format!("Additional instructions:\n{more}\n"));
    }
    text.push_str(&format!("Schemas to compare:\n\n{schemas}\n"));
    text
}
