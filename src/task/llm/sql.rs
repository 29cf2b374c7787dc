//! `LLMSQLQueryOperator`, `@task.llm_sql`: a model writes a query, which is checked and not run.

use std::collections::HashSet;
use std::sync::Arc;

use serde_json::{Value, json};

use super::{Prepared, prompt, texts, with_mapped};
use crate::airflow::python_text::{repr_str, repr_value};
use crate::dag::definitions::{DataSourceSpec, SqlQuestion};
use crate::hook::{self, Access, ConnectionError, ConnectionSource as _, Database};
use crate::task::attempt::{Attempt, Rendered};
use crate::task::failure::Failure;
use crate::task::loggers;
use crate::task::services::Services;
use crate::task::toolsets::{Connections, data_source, engine_settings};
use crate::toolset::datafusion::{self, DataSourceConfig};
use crate::toolset::sql::guard::{Dialect, Guard};

/// sqlglot's dialects; others are as good as none.
const DIALECTS: [&str; 32] = [
    "athena",
    "bigquery",
    "clickhouse",
    "databricks",
    "dax",
    "doris",
    "dremio",
    "drill",
    "druid",
    "duckdb",
    "dune",
    "exasol",
    "fabric",
    "hive",
    "materialize",
    "mysql",
    "oracle",
    "postgres",
    "presto",
    "prql",
    "redshift",
    "risingwave",
    "snowflake",
    "solr",
    "spark",
    "spark2",
    "sqlite",
    "starrocks",
    "tableau",
    "teradata",
    "trino",
    "tsql",
];

/// Shows the model the schema that it may query.
///
/// # Errors
/// A connection that is no database's, a table that is not there.
pub(super) async fn prepare(
    attempt: &Attempt,
    question: &SqlQuestion,
    rendered: &Rendered,
) -> Result<Prepared, Failure> {
    let question = with_mapped(question, &rendered.mapped)?;
    let services = &attempt.services;
    let database = database_of(services, rendered).await?;
    let told = match &database {
        // Only the schema needs a session.
        Some(database) => {
            let told = schema(services, &question, rendered, Some(database.as_ref())).await;
            database.close().await;
            told?
        }
        None => schema(services, &question, rendered, None).await?,
    };
    let dialect = dialect(&question, database.as_deref());
    let more = rendered.text("system_prompt")?.unwrap_or_default();
    Ok(Prepared {
        instructions: instructions(dialect.as_deref(), &told, &more),
        prompt: prompt(rendered.field("prompt"))?,
    })
}

/// Takes the query out of the answer and checks it.
///
/// # Errors
/// `SQLSafetyError`: the query is refused.
pub(super) async fn settle(
    attempt: &Attempt,
    question: &SqlQuestion,
    rendered: &Rendered,
    answer: &Value,
) -> Result<String, Failure> {
    let question = with_mapped(question, &rendered.mapped)?;
    let database = database_of(&attempt.services, rendered).await?;
    let dialect = dialect(&question, database.as_deref());
    let query = without_fence(answer.as_str().unwrap_or_default(), dialect.as_deref());
    if question.validate_sql {
        check(&question, dialect.as_deref(), query.clone()).await?;
    }
    tracing::info!(target: "airflow.task", logger = loggers::LLM_SQL, "Generated SQL:\n{query}");
    Ok(query)
}

/// Checks a query that a person has edited, whether or not the model's own was to be checked.
///
/// # Errors
/// `SQLSafetyError`: the query is refused.
pub(super) async fn check_edited(
    attempt: &Attempt,
    question: &SqlQuestion,
    rendered: &Rendered,
    query: &Value,
) -> Result<(), Failure> {
    let question = with_mapped(question, &rendered.mapped)?;
    let database = database_of(&attempt.services, rendered).await?;
    let dialect = dialect(&question, database.as_deref());
    let query = query.as_str().unwrap_or_default().to_owned();
    check(&question, dialect.as_deref(), query).await
}

async fn check(
    question: &SqlQuestion,
    dialect: Option<&str>,
    query: String,
) -> Result<(), Failure> {
    let guard = Guard {
        dialect: dialect.map_or(Dialect::Generic, Dialect::of_database),
        allow_writes: false,
        allow_list: None,
        allowed_functions: HashSet::new(),
    };
    let allowed = question.allowed_sql_types.clone();
    let checked = hook::blocking::run(move || guard.check_types(&query, allowed.as_deref())).await;
    let refused = |error: &(dyn std::error::Error + 'static)| {
        let class = "airflow.providers.common.ai.utils.sql_validation.SQLSafetyError";
        Failure::of(class, error)
    };
    match checked {
        Ok(verdict) => verdict.map_err(|refusal| refused(&refusal)),
        Err(error) => Err(refused(&error)),
    }
}

/// The database of `db_conn_id`, if there is one. Nothing is opened yet.
async fn database_of(
    services: &Services,
    rendered: &Rendered,
) -> Result<Option<Arc<dyn Database>>, Failure> {
    let conn_id = rendered.text("db_conn_id")?;
    match conn_id.filter(|conn_id| !conn_id.is_empty()) {
        Some(conn_id) => database(services, &conn_id).await.map(Some),
        None => Ok(None),
    }
}

async fn database(services: &Services, conn_id: &str) -> Result<Arc<dyn Database>, Failure> {
    let connection = Connections(services.resolver.clone())
        .connection(conn_id)
        .await
        .and_then(|connection| hook::connect(&connection, Access::default()));
    connection.map_err(|error| describe_database_error(&error))
}

/// The exception for a connection that is no database's.
pub(super) fn describe_database_error(error: &ConnectionError) -> Failure {
    match error {
        ConnectionError::NotDefined(_) => {
            Failure::of("airflow.sdk.exceptions.AirflowNotFoundException", error)
        }
        ConnectionError::NoDriver { .. } => Failure::of("NotImplementedError", error).for_good(),
        _ => Failure::of("ValueError", error),
    }
}

fn dialect(question: &SqlQuestion, database: Option<&dyn Database>) -> Option<String> {
    let given = question.dialect.as_deref().filter(|name| !name.is_empty());
    let name = given.or_else(|| database.map(Database::dialect_name))?;
    let name = match name {
        "postgresql" => "postgres",
        "mssql" => "tsql",
        other => other,
    };
    DIALECTS.contains(&name).then(|| name.to_owned())
}

async fn schema(
    services: &Services,
    question: &SqlQuestion,
    rendered: &Rendered,
    database: Option<&dyn Database>,
) -> Result<String, Failure> {
    if let Some(given) = rendered
        .text("schema_context")?
        .filter(|given| !given.is_empty())
    {
        return Ok(given);
    }
    let mut parts = Vec::new();
    if let Some(database) = database {
        let tables = texts(rendered, "table_names")?;
        for table in &tables {
            match table_columns(database, table).await? {
                Some(columns) => parts.push(format!("Table: {table}\nColumns: {columns}")),
                None => say_empty(loggers::LLM_SQL, table),
            }
        }
        if parts.is_empty() && !tables.is_empty() {
            let text = format!(
                "None of the requested tables ({}) returned schema information. Check that the table names are correct \
                 and the database connection has access.",
                repr_value(&json!(tables))
            );
            return Err(Failure::new("ValueError", text));
        }
    }
    if let Some(source) = &question.datasource_config {
        let columns = source_schemas(services, &[source]).await?.join("\n");
        let table = &source.table_name;
        parts.push(format!("Table: {table}\nColumns: {columns}"));
    }
    Ok(parts.join("\n\n"))
}

/// The columns of a table as a model is shown them; `None` when it has none.
///
/// # Errors
/// What the database says.
pub(super) async fn table_columns(
    database: &dyn Database,
    table: &str,
) -> Result<Option<String>, Failure> {
    let columns = database
        .columns(table, None)
        .await
        .map_err(|error| match error {
            hook::DatabaseError::NoSuchTable(_) => {
                Failure::of("sqlalchemy.exc.NoSuchTableError", &error)
            }
            _ => Failure::of("sqlalchemy.exc.SQLAlchemyError", &error),
        })?;
    let columns: Vec<_> = columns
        .iter()
        .map(|column| format!("{} {}", column.name, column.type_text))
        .collect();
    Ok((!columns.is_empty()).then(|| columns.join(", ")))
}

/// Warns of a table that has nothing to show.
pub(super) fn say_empty(logger: &'static str, table: &str) {
    tracing::warn!(
        target: "airflow.task", logger,
        "Table {} returned no columns — it may not exist.", repr_str(table)
    );
}

/// The schemas of sources that SQL over files reads.
///
/// # Errors
/// A source that can't be opened.
pub(super) async fn source_schemas(
    services: &Services,
    sources: &[&DataSourceSpec],
) -> Result<Vec<String>, Failure> {
    let sources = sources
        .iter()
        .map(|source| data_source(source))
        .collect::<Result<Vec<DataSourceConfig>, _>>()?;
    let settings = engine_settings(&services.config)?;
    let masker = services.resolver.masker().clone();
    let connections = Connections(services.resolver.clone());
    let texts = datafusion::schema_texts(
        &sources,
        &connections,
        &settings,
        Arc::new(move |text: &str| masker.mask_str(text).into_owned()),
    );
    texts
        .await
        .map_err(|error| Failure::of("ValueError", &error))
}

fn instructions(dialect: Option<&str>, schema: &str, more: &str) -> String {
    let mut text = format!(
        "You are a {} expert. Generate a single SQL query based on the user's request.\n\
         Return ONLY the SQL query, no explanation or markdown.\n",
        dialect.unwrap_or("SQL")
    );
    if !schema.is_empty() {
        text.push_str(&format!("\nAvailable schema:\n{schema}\n"));
    }
    text.push_str(
        "\nRules:\n\
         - Generate only SELECT queries (including CTEs, JOINs, subqueries, UNION)\n\
         - Never generate data modification statements (INSERT, UPDATE, DELETE, DROP, etc.)\n\
         - Use proper syntax for the specified dialect\n",
    );
    if !more.is_empty() {
        text.push_str(&format!("\nAdditional instructions:\n{more}\n"));
    }
    text
}

/// The query without the fence that models put around it.
fn without_fence(answer: &str, dialect: Option<&str>) -> String {
    let text = answer.trim();
    let Some(fenced) = text.strip_prefix("```") else {
        return text.to_owned();
    };
    let lines: Vec<&str> = text.split('\n').collect();
    if let [_, inside @ .., last] = lines.as_slice() {
        let mut inside = inside.to_vec();
        if !last.trim().starts_with("```") {
            inside.push(last);
        }
        return inside.join("\n").trim().to_owned();
    }
    let Some(inside) = fenced.strip_suffix("```").map(str::trim) else {
        return text.to_owned();
    };
    let is_tag = |word: &str| {
        word.eq_ignore_ascii_case("sql")
            || dialect.is_some_and(|dialect| word.eq_ignore_ascii_case(dialect))
    };
    match inside.split_once(' ') {
        Some((word, query)) if is_tag(word) => query.trim().to_owned(),
        _ => inside.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;

    use super::*;

    #[test]
    fn the_fence_that_a_model_puts_around_a_query_goes() {
        for (answer, query) in [
            ("  SELECT 1\n", "SELECT 1"),
            ("```sql\nSELECT 1\nFROM t\n```", "SELECT 1\nFROM t"),
            ("```\nSELECT 1", "SELECT 1"),
            ("```sql SELECT 1```", "SELECT 1"),
            ("```sqlite SELECT 1```", "SELECT 1"),
            ("```SELECT 1```", "SELECT 1"),
            ("```", "```"),
        ] {
            assert_eq!(without_fence(answer, Some("sqlite")), query, "{answer}");
        }
        assert_eq!(
            without_fence("```sqlite SELECT 1```", None),
            "sqlite SELECT 1"
        );
    }

    #[test]
    fn a_dialect_that_sqlglot_does_not_know_is_none() {
        let question = |dialect: &str| SqlQuestion {
            validate_sql: true,
            allowed_sql_types: None,
            dialect: Some(dialect.to_owned()),
            datasource_config: None,
        };
        assert_eq!(
            dialect(&question("postgresql"), None).as_deref(),
            Some("postgres")
        );
        assert_eq!(
            dialect(&question("teradata"), None).as_deref(),
            Some("teradata")
        );
        assert_eq!(dialect(&question("cobol"), None), None);
        assert_eq!(dialect(&question(""), None), None);
    }
}
