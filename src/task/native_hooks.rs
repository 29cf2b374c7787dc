//! Hooks that Dag code finds in their usual places and that the worker does: see `updraft_native_hook.py`.

use serde_json::{Value, json};

use super::services::Services;
use super::toolsets::Connections;
use crate::hook::http::{self, HttpRequest};
use crate::hook::{self, Access, Cell, ConnectionSource as _};

/// Rows of a result that Dag code is given.
const MAX_ROWS: usize = 1_000_000;

/// Does what a hook asks: `{"hook", "conn_id", ...}`.
///
/// # Errors
/// The text of the exception that Dag code gets.
pub(super) async fn answer(services: &Services, request: &Value) -> Result<Value, String> {
    let text = |key: &str| request.get(key).and_then(Value::as_str).unwrap_or_default();
    let connection = Connections(services.resolver.clone())
        .connection(text("conn_id"))
        .await
        .map_err(|error| error.to_string())?;
    match text("hook") {
        "http" => {
            let request = request.get("request").cloned().unwrap_or_default();
            let request: HttpRequest =
                serde_json::from_value(request).map_err(|error| error.to_string())?;
            http::run(&connection, &request)
                .await
                .map_err(|error| error.to_string())
        }
        "sql" => {
            if connection.conn_type != text("conn_type") {
                return Err(format!(
                    "connection {} is of type {:?}, and the hook is for {:?}",
                    connection.conn_id,
                    connection.conn_type,
                    text("conn_type")
                ));
            }
            let access = Access {
                allow_writes: true,
                tables: None,
            };
            let database = hook::connect(&connection, access).map_err(|error| error.to_string())?;
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
        other => Err(format!("there is no hook {other:?}")),
    }
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
    }
}
