//! Hooks that Dag code finds in their usual places and that the worker does: see `updraft_native_hook.py`.

use std::path::PathBuf;
use std::sync::Arc;

use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::services::Services;
use super::toolsets::Connections;
use crate::airflow::connection::Connection;
use crate::hook::http::{self, HttpRequest};
use crate::hook::local_storage::{LocalOperation, LocalStorage, LocalStorageError};
use crate::hook::object_store::{self, Location, Operation, Scheme};
use crate::hook::parameters::{self, Parameters, Style, bind};
use crate::hook::shell::{self, ShellCommand, ShellError};
use crate::hook::slack::{self, SlackMessage};
use crate::hook::smtp::{self, Email};
use crate::hook::{
    self, Access, Cell, ConnectionError, ConnectionSource as _, Database, Script, ScriptStatement,
};
use crate::model::exchange::{Exchange, exchange};
use crate::secrets::Masker;

/// Rows of a result that Dag code is given.
const MAX_ROWS: usize = 1_000_000;

/// What Dag code is told of a call that was not waited for.
pub(super) const STOPPED: &str = "the task is stopped, and this call with it";

/// Does what a hook asks: `{"hook", "conn_id", ...}`, until `stop` says that nobody waits for it any more.
///
/// # Errors
/// The text of the exception that Dag code gets.
pub(super) async fn answer(
    services: &Services,
    request: &Value,
    stop: &CancellationToken,
) -> Result<Value, String> {
    match text(request, "hook") {
        "sql" => return run_statements(services, request, stop).await,
        "shell" => return run_shell(services, request, stop).await,
        _ => {}
    }
    let done = stop.run_until_cancelled(ask(services, request)).await;
    done.unwrap_or_else(|| Err(stopped()))
}

async fn ask(services: &Services, request: &Value) -> Result<Value, String> {
    if text(request, "hook") == "bucket" {
        return bucket(services, request).await;
    }
    if text(request, "hook") == "local_storage" {
        return local_storage(services, request);
    }
    if text(request, "hook") == "model" {
        return exchange(&read::<Exchange>(request, "request")?).await;
    }
    let connection = Connections(services.resolver.clone())
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
        other => Err(format!("there is no hook {other:?}")),
    }
}

/// A command of `BashOperator`: `{"command", "inherited"}`. What the shell inherits is what Dag code may see of the worker's
/// environment, without connections, variables and whatever goes by the name of a secret.
async fn run_shell(
    services: &Services,
    request: &Value,
    stop: &CancellationToken,
) -> Result<Value, String> {
    if !services
        .config
        .get_bool("updraft", "allow_bash")
        .unwrap_or(false)
    {
        return Err(
            "shell commands are off on this worker: [updraft] allow_bash turns them on".to_owned(),
        );
    }
    let mut command = read::<ShellCommand>(request, "command")?;
    let masker = services.resolver.masker();
    let inherited = request.get("inherited").and_then(Value::as_object);
    for (name, value) in inherited.into_iter().flatten() {
        let is_secret = ["AIRFLOW_CONN_", "AIRFLOW_VAR_", "AIRFLOW__"]
            .iter()
            .any(|prefix| name.starts_with(prefix))
            || masker.is_sensitive_name(name);
        if let (false, Some(value)) = (is_secret, value.as_str()) {
            let entry = command.env.entry(name.clone());
            entry.or_insert_with(|| value.to_owned());
        }
    }
    match shell::run(&command, stop).await {
        Ok(done) => Ok(json!({ "exit_code": done.exit_code, "output": done.output })),
        Err(ShellError::Stopped) => Err(stopped()),
        Err(error) => Ok(json!({ "error": error.to_string() })),
    }
}

/// Objects of a cloud's store: `{"url", "overrides", "operation"}`, `copy` for one that leaves the bucket, `tags` for
/// what the bucket itself is marked with.
async fn bucket(services: &Services, request: &Value) -> Result<Value, String> {
    let environment = services.config.environment();
    let open = async |url: &str| {
        let (location, connection) = named_bucket(services, request, url).await?;
        object_store::open_bucket(&location, connection.as_ref(), environment)
            .await
            .map_err(|error| error.to_string())
    };
    let url = text(request, "url");
    if request.get("tags").is_some() {
        let (location, connection) = named_bucket(services, request, url).await?;
        return object_store::bucket_tags(&location, connection.as_ref(), environment).await;
    }
    let opened = open(url).await?;
    let done = match request.get("copy") {
        None => object_store::run(&opened, read::<Operation>(request, "operation")?).await,
        Some(copy) => {
            let (key, into, to) = (text(copy, "key"), text(copy, "into"), text(copy, "to"));
            if into == url {
                let (key, to) = (key.to_owned(), to.to_owned());
                object_store::run(&opened, Operation::Copy { key, to }).await
            } else {
                let into = open(into).await?;
                let copied = object_store::copy_between(&opened, key, &into, to).await;
                copied.map(|()| Value::Null)
            }
        }
    };
    done.map_err(|error| error.to_string())
}

/// The bucket that a hook names, and the connection to open it with.
async fn named_bucket(
    services: &Services,
    request: &Value,
    url: &str,
) -> Result<(Location, Option<Connection>), String> {
    let location = Location::parse(url).map_err(|error| error.to_string())?;
    // Hooks write the name that they are given into the URL, and a name may say more than which bucket.
    if location.account_host.is_some() || location.conn_id.is_some() || !location.path.is_empty() {
        return Err(format!(
            "{location}: a hook takes the bucket's or container's name alone, without connection, account or path"
        ));
    }
    let connection = bucket_connection(services, request, &location).await?;
    Ok((location, connection))
}

/// A path on the worker's own disk: `{"path", "operation"}`. `{"refused"}` says why it is none for Dag code.
fn local_storage(services: &Services, request: &Value) -> Result<Value, String> {
    let folders = services
        .config
        .text("updraft", "local_storage")
        .map_err(|error| error.to_string())?;
    let folders = folders.as_deref().unwrap_or_default().split(',');
    let storage = LocalStorage::new(folders.map(str::trim).map(PathBuf::from));
    let path = PathBuf::from(text(request, "path"));
    match storage.run(&path, read::<LocalOperation>(request, "operation")?) {
        Ok(value) => Ok(json!({ "value": value })),
        Err(error @ LocalStorageError::Outside) => Ok(json!({ "refused": error.to_string() })),
        Err(error) => Err(format!("{}: {error}", path.display())),
    }
}

/// The connection that a bucket is opened with, with what the hook itself was given in its extra.
async fn bucket_connection(
    services: &Services,
    request: &Value,
    location: &Location,
) -> Result<Option<Connection>, String> {
    let overrides = request.get("overrides").and_then(Value::as_object);
    let conn_id = text(request, "conn_id");
    let mut connection = match Connections(services.resolver.clone())
        .connection(conn_id)
        .await
    {
        Ok(connection) => Some(connection),
        // The Amazon provider takes a missing connection for an empty one.
        Err(ConnectionError::NotDefined(_)) if location.scheme == Scheme::S3 => None,
        Err(ConnectionError::NotDefined(_)) if conn_id.is_empty() => None,
        Err(error) => return Err(error.to_string()),
    };
    if let Some(overrides) = overrides.filter(|overrides| !overrides.is_empty()) {
        let own = connection.get_or_insert_with(|| Connection {
            conn_id: "none".to_owned(),
            conn_type: "aws".to_owned(),
            ..Connection::default()
        });
        let mut extra = own.extra_json().map_err(|error| error.to_string())?;
        extra.extend(overrides.clone());
        own.extra = Some(Value::Object(extra).to_string());
    }
    Ok(connection)
}

fn text<'a>(request: &'a Value, key: &str) -> &'a str {
    request.get(key).and_then(Value::as_str).unwrap_or_default()
}

fn read<T: DeserializeOwned>(request: &Value, key: &str) -> Result<T, String> {
    let value = request.get(key).cloned().unwrap_or_default();
    serde_json::from_value(value).map_err(|error| error.to_string())
}

/// The database of a connection, with what the hook was made with in it.
fn database(connection: &mut Connection, request: &Value) -> Result<Arc<dyn Database>, String> {
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
    hook::connect(connection, access).map_err(|error| error.to_string())
}

/// The statements of a request, with their parameters written in. The log is told them without, and what of the
/// parameters is no secret.
fn script(masker: &Masker, style: Style, request: &Value) -> Result<Script, String> {
    let is = |key: &str| request.get(key) == Some(&Value::Bool(true));
    let given = request.get("parameters").cloned().unwrap_or_default();
    let shown = parameters::shown(&masker.redact_value(given.clone(), None));
    let parameters = match given {
        Value::Array(values) => Some(Parameters::Positional(values)),
        Value::Object(values) => Some(Parameters::Named(values)),
        _ => None,
    };
    let statements = request.get("statements").and_then(Value::as_array);
    let statements = statements.into_iter().flatten().map(|statement| {
        let unbound = statement.as_str().unwrap_or_default();
        let unbound = unbound.trim().trim_end_matches(';');
        let sql = match &parameters {
            None => unbound.to_owned(),
            Some(parameters) => {
                bind(style, unbound, parameters).map_err(|error| error.to_string())?
            }
        };
        let shown = is("log_sql").then(|| format!("{unbound}, parameters: {shown}"));
        Ok(ScriptStatement { sql, shown })
    });
    Ok(Script {
        statements: statements.collect::<Result<_, String>>()?,
        autocommit: is("autocommit"),
        max_rows: is("fetch").then_some(MAX_ROWS),
    })
}

/// Runs statements; the answer has the columns and rows of each.
async fn run_statements(
    services: &Services,
    request: &Value,
    stop: &CancellationToken,
) -> Result<Value, String> {
    let mut connection = Connections(services.resolver.clone())
        .connection(text(request, "conn_id"))
        .await
        .map_err(|error| error.to_string())?;
    let database = database(&mut connection, request)?;
    let style = match connection.conn_type.as_str() {
        "mysql" => Style::Mysql,
        "postgres" => Style::Postgres,
        _ => Style::Sqlite,
    };
    let script = script(services.resolver.masker(), style, request)?;
    let outcome = stop.run_until_cancelled(database.run_all(&script)).await;
    // It waits until a server knows that what it does is not wanted any more.
    database.close().await;
    let results = outcome.ok_or_else(stopped)?.map_err(|error| {
        let has_literals = matches!(
            request.get("parameters"),
            Some(Value::Array(_) | Value::Object(_))
        );
        if has_literals {
            parameters::without_literals(style, &error.to_string())
        } else {
            error.to_string()
        }
    })?;
    let answers = results.iter().map(|result| {
        let rows: Vec<Value> = result
            .rows
            .iter()
            .map(|row| row.iter().map(cell).collect())
            .collect();
        json!({"columns": result.columns, "rows": rows})
    });
    Ok(answers.collect())
}

fn stopped() -> String {
    STOPPED.to_owned()
}

/// A value for Python; bytes as `{"base64"}`, a number that JSON has not as `{"float"}`.
fn cell(cell: &Cell) -> Value {
    use base64::Engine as _;

    match cell {
        Cell::Null => Value::Null,
        Cell::Bool(value) => (*value).into(),
        Cell::Int(value) => (*value).into(),
        Cell::Float(value) if value.is_finite() => (*value).into(),
        Cell::Float(value) => json!({ "float": value.to_string() }),
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
