//! Hooks that Dag code finds in their usual places and that the worker does: see `updraft_native_hook.py`.

use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tracing::instrument::WithSubscriber as _;
use tracing::subscriber::NoSubscriber;

use super::services::Services;
use super::toolsets::Connections;
use crate::airflow::connection::Connection;
use crate::hook::http::{self, HttpRequest};
use crate::hook::slack::{self, SlackMessage};
use crate::hook::smtp::{self, Email};
use crate::hook::{self, Access, Cell, ConnectionSource as _};

/// Rows of a result that Dag code is given.
const MAX_ROWS: usize = 1_000_000;

/// Does what a hook asks: `{"hook", "conn_id", ...}`.
///
/// # Errors
/// The text of the exception that Dag code gets.
pub(super) async fn answer(services: &Services, request: &Value) -> Result<Value, String> {
    let mut connection = Connections(services.resolver.clone())
        .connection(text(request, "conn_id"))
        .await
        .map_err(|error| error.to_string())?;
    match text(request, "hook") {
        "http" => http::run(&connection, &read::<HttpRequest>(request, "request")?)
            .await
            .map_err(|error| error.to_string()),
        "slack" => slack::send(&connection, &read::<SlackMessage>(request, "message")?)
            .await
            .map_err(|error| error.to_string()),
        "smtp" => smtp::send(&connection, &read::<Email>(request, "email")?)
            .await
            .map(|()| Value::Null)
            .map_err(|error| error.to_string()),
        "smtp_test" => smtp::test_connection(&connection, text(request, "auth_type"))
            .await
            .map(|()| Value::Null)
            .map_err(|error| error.to_string()),
        "sql" => {
            let run = run_statements(&mut connection, request);
            if request.get("log_sql") == Some(&Value::Bool(false)) {
                run.with_subscriber(NoSubscriber::new()).await
            } else {
                run.await
            }
        }
        other => Err(format!("there is no hook {other:?}")),
    }
}

fn text<'a>(request: &'a Value, key: &str) -> &'a str {
    request.get(key).and_then(Value::as_str).unwrap_or_default()
}

fn read<T: DeserializeOwned>(request: &Value, key: &str) -> Result<T, String> {
    let value = request.get(key).cloned().unwrap_or_default();
    serde_json::from_value(value).map_err(|error| error.to_string())
}

/// Runs the statements one after another; the answer is the last one's.
async fn run_statements(connection: &mut Connection, request: &Value) -> Result<Value, String> {
    if connection.conn_type != text(request, "conn_type") {
        return Err(format!(
            "connection {} is of type {:?}, and the hook is for {:?}",
            connection.conn_id,
            connection.conn_type,
            text(request, "conn_type")
        ));
    }
    // The hook's own goes over the connection's.
    if !text(request, "schema").is_empty() {
        connection.schema = Some(text(request, "schema").to_owned());
    }
    if !text(request, "options").is_empty() {
        let mut extra = connection.extra_json().map_err(|error| error.to_string())?;
        extra.insert("options".to_owned(), text(request, "options").into());
        connection.extra = Some(Value::Object(extra).to_string());
    }
    let access = Access {
        allow_writes: true,
        tables: None,
    };
    let database = hook::connect(connection, access).map_err(|error| error.to_string())?;
    let mut answer = Value::Null;
    for statement in request
        .get("statements")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
    {
        let statement = statement.as_str().unwrap_or_default();
        let result = database
            .run(statement.trim().trim_end_matches(';'), MAX_ROWS)
            .await
            .map_err(|error| error.to_string())?;
        let rows: Vec<Value> = result
            .rows
            .iter()
            .map(|row| row.iter().map(cell).collect())
            .collect();
        answer = json!({"columns": result.columns, "rows": rows});
    }
    database.close().await;
    Ok(answer)
}

/// A value for Python; bytes as `{"base64"}`.
fn cell(cell: &Cell) -> Value {
    use base64::Engine as _;

    match cell {
        Cell::Null => Value::Null,
        Cell::Bool(value) => (*value).into(),
        Cell::Int(value) => (*value).into(),
        Cell::Float(value) => (*value).into(),
        Cell::Text(text) => text.as_str().into(),
        Cell::Bytes(bytes) => {
            json!({"base64": base64::engine::general_purpose::STANDARD.encode(bytes)})
        }
        Cell::Json(value) => json!({ "json": value }),
        Cell::List(items) => items.iter().map(self::cell).collect(),
        Cell::Object(entries) => {
            let entries = entries.iter();
            let entries: serde_json::Map<_, _> = entries
                .map(|(name, item)| (name.clone(), self::cell(item)))
                .collect();
            json!({ "json": entries })
        }
    }
}
