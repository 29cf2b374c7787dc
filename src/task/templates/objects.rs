//! The lazy objects of a template's context: `ti`, `var`, `conn`, `macros`, functions of the Dag file.

use std::fmt;
use std::sync::Arc;

use chrono::{NaiveDate, NaiveDateTime, Utc};
use chrono_tz::Tz;
use minijinja::value::{Kwargs, Object, ObjectRepr, Value, ValueKind, from_args};
use minijinja::{Error, ErrorKind, State};
use serde_json::Value as Json;

use super::datetime::{PyDate, PyDateTime, PyTimeDelta, Zone};
use super::values;
use crate::airflow::connection::Connection;
use crate::airflow::python_text::{JsonStyle, dumps};
use crate::control_plane::resolve::ResolveError;
use crate::dag::host::XComQuery;
use crate::task::services::{LookupError, RETURN_VALUE, Services};

/// Calls a function that stayed in the interpreter: its handle, positional and keyword arguments in wire form.
pub type CallFunction = Arc<
    dyn Fn(
            crate::dag::definitions::Handle,
            Vec<Json>,
            serde_json::Map<String, Json>,
        ) -> Result<Json, String>
        + Send
        + Sync,
>;

fn lookup_error(error: &LookupError) -> Error {
    Error::new(ErrorKind::InvalidOperation, error.to_string())
}

fn unknown_method() -> Error {
    Error::from(ErrorKind::UnknownMethod)
}

/// `ti` and `task_instance`.
pub struct TaskInstanceObject {
    pub services: Services,
    /// Attributes: `task_id`, `try_number`, `start_date` ...
    pub attributes: Value,
}

impl fmt::Debug for TaskInstanceObject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ti = &self.services.ti;
        write!(
            f,
            "<TaskInstance: {}.{} {} [running]>",
            ti.dag_id, ti.task_id, ti.run_id
        )
    }
}

impl Object for TaskInstanceObject {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        ObjectRepr::Plain
    }

    fn get_value(self: &Arc<Self>, key: &Value) -> Option<Value> {
        self.attributes
            .get_item(key)
            .ok()
            .filter(|value| !value.is_undefined())
    }

    fn call_method(
        self: &Arc<Self>,
        _state: &mut State<'_, '_>,
        method: &str,
        args: &[Value],
    ) -> Result<Value, Error> {
        match method {
            "xcom_pull" => self.xcom_pull(args),
            "xcom_push" => {
                let (key, value, kwargs): (Option<String>, Option<Value>, Kwargs) =
                    from_args(args)?;
                let key = key.map_or_else(|| kwargs.get("key"), Ok)?;
                let value = value.map_or_else(|| kwargs.get("value"), Ok)?;
                kwargs.assert_all_used()?;
                self.services
                    .xcom_push(&key, values::to_wire(&value))
                    .map_err(|error| lookup_error(&error))?;
                Ok(Value::from(()))
            }
            _ => Err(unknown_method()),
        }
    }
}

impl TaskInstanceObject {
    fn xcom_pull(&self, args: &[Value]) -> Result<Value, Error> {
        let (task_ids, dag_id, key, prior, kwargs): (
            Option<Value>,
            Option<String>,
            Option<String>,
            Option<bool>,
            Kwargs,
        ) = from_args(args)?;
        let task_ids = task_ids.map_or_else(
            || kwargs.get::<Option<Value>>("task_ids"),
            |ids| Ok(Some(ids)),
        )?;
        let default = kwargs
            .get::<Option<Value>>("default")?
            .unwrap_or_else(|| Value::from(()));
        let indexes_given = kwargs.has("map_indexes");
        let indexes = kwargs.get::<Option<Value>>("map_indexes")?;
        let (single, task_ids) = match task_ids {
            None => (true, Vec::new()),
            Some(ids) if ids.is_none() => (true, Vec::new()),
            Some(id) if id.kind() == ValueKind::String => (true, vec![id.to_string()]),
            Some(ids) => (false, ids.try_iter()?.map(|id| id.to_string()).collect()),
        };
        let index_of = |value: &Value| {
            value.as_i64().ok_or_else(|| {
                Error::new(
                    ErrorKind::InvalidOperation,
                    "map_indexes must be an int or a list of ints",
                )
            })
        };
        let (single_index, map_indexes) = match indexes {
            None if indexes_given => (true, Some(vec![-1])),
            None => (true, None),
            Some(value) if value.is_none() => (true, Some(vec![-1])),
            Some(value) if value.is_number() => (true, Some(vec![index_of(&value)?])),
            Some(value) => (
                false,
                Some(
                    value
                        .try_iter()?
                        .map(|v| index_of(&v))
                        .collect::<Result<_, _>>()?,
                ),
            ),
        };
        let query = XComQuery {
            task_ids,
            single,
            dag_id: dag_id.map_or_else(|| kwargs.get("dag_id"), |id| Ok(Some(id)))?,
            run_id: kwargs.get("run_id")?,
            key: key
                .map_or_else(|| kwargs.get::<Option<String>>("key"), |key| Ok(Some(key)))?
                .unwrap_or_else(|| RETURN_VALUE.to_owned()),
            map_indexes,
            include_prior_dates: prior
                .map_or_else(
                    || kwargs.get::<Option<bool>>("include_prior_dates"),
                    |b| Ok(Some(b)),
                )?
                .unwrap_or(false),
        };
        kwargs.assert_all_used()?;
        let mut rows = self
            .services
            .xcom_rows(&query)
            .map_err(|error| lookup_error(&error))?;
        // Only pulls by map index know a default, as in Airflow.
        let value = |row: &Json| match row {
            Json::Null if query.map_indexes.is_some() => default.clone(),
            row => values::from_wire(row),
        };
        if single && single_index && rows.len() == 1 {
            return Ok(value(&rows.pop().unwrap_or_default()));
        }
        Ok(rows.iter().map(value).collect())
    }
}

/// `var.value` and `var.json`.
pub struct VariablesObject {
    pub services: Services,
    pub json: bool,
}

impl fmt::Debug for VariablesObject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("<VariableAccessor>")
    }
}

impl VariablesObject {
    fn find(&self, key: &str) -> Result<Option<Value>, Error> {
        let Some(text) = self
            .services
            .variable(key)
            .map_err(|error| lookup_error(&error))?
        else {
            return Ok(None);
        };
        if !self.json {
            return Ok(Some(text.into()));
        }
        let value: Json = serde_json::from_str(&text).map_err(|error| {
            Error::new(
                ErrorKind::InvalidOperation,
                format!("Variable {key} is not JSON: {error}"),
            )
        })?;
        Ok(Some(values::from_wire(&value)))
    }
}

impl Object for VariablesObject {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        ObjectRepr::Plain
    }

    fn get_value(self: &Arc<Self>, key: &Value) -> Option<Value> {
        let key = key.as_str()?;
        Some(match self.find(key) {
            Ok(Some(value)) => value,
            Ok(None) => lookup_error(&LookupError::NoVariable(key.to_owned())).into(),
            Err(error) => error.into(),
        })
    }

    fn call_method(
        self: &Arc<Self>,
        _state: &mut State<'_, '_>,
        method: &str,
        args: &[Value],
    ) -> Result<Value, Error> {
        if method != "get" {
            return Err(unknown_method());
        }
        let (key, default) = key_and_default(args, "default_var")?;
        match (self.find(&key)?, default) {
            (Some(value), _) => Ok(value),
            (None, Some(default)) => Ok(default),
            (None, None) => Err(lookup_error(&LookupError::NoVariable(key))),
        }
    }
}

fn key_and_default(args: &[Value], old_name: &str) -> Result<(String, Option<Value>), Error> {
    let (key, default, kwargs): (String, Option<Value>, Kwargs) = from_args(args)?;
    let named = ["default", old_name]
        .into_iter()
        .find(|name| kwargs.has(name));
    let default = match (default, named) {
        (Some(default), _) => Some(default),
        (None, Some(name)) => Some(
            kwargs
                .get::<Option<Value>>(name)?
                .unwrap_or_else(|| Value::from(())),
        ),
        // `None` passed by position arrives as an absent value.
        (None, None) => (args.len() > 1).then(|| Value::from(())),
    };
    kwargs.assert_all_used()?;
    Ok((key, default))
}

/// `conn`.
pub struct ConnectionsObject {
    pub services: Services,
}

impl fmt::Debug for ConnectionsObject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("<ConnectionAccessor>")
    }
}

impl Object for ConnectionsObject {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        ObjectRepr::Plain
    }

    fn get_value(self: &Arc<Self>, key: &Value) -> Option<Value> {
        Some(match self.services.connection(key.as_str()?) {
            Ok(connection) => Value::from_object(ConnectionObject(connection)),
            Err(error) => lookup_error(&error).into(),
        })
    }

    fn call_method(
        self: &Arc<Self>,
        _state: &mut State<'_, '_>,
        method: &str,
        args: &[Value],
    ) -> Result<Value, Error> {
        if method != "get" {
            return Err(unknown_method());
        }
        let (conn_id, default) = key_and_default(args, "default_conn")?;
        match (self.services.connection(&conn_id), default) {
            (Ok(connection), _) => Ok(Value::from_object(ConnectionObject(connection))),
            (Err(LookupError::Secret(ResolveError::ConnectionNotFound(_))), Some(default)) => {
                Ok(default)
            }
            (Err(error), _) => Err(lookup_error(&error)),
        }
    }
}

/// One connection.
#[derive(Debug)]
struct ConnectionObject(Connection);

impl Object for ConnectionObject {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        ObjectRepr::Plain
    }

    fn render(self: &Arc<Self>, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.conn_id)
    }

    fn get_value(self: &Arc<Self>, key: &Value) -> Option<Value> {
        let text = |field: &Option<String>| {
            field
                .as_deref()
                .map_or_else(|| Value::from(()), Value::from)
        };
        Some(match key.as_str()? {
            "conn_id" => self.0.conn_id.as_str().into(),
            "conn_type" => self.0.conn_type.as_str().into(),
            "host" => text(&self.0.host),
            "schema" => text(&self.0.schema),
            "login" => text(&self.0.login),
            "password" => text(&self.0.password),
            "port" => self.0.port.map_or_else(|| Value::from(()), Value::from),
            "extra" => text(&self.0.extra),
            "extra_dejson" => match self.0.extra.as_deref().map(serde_json::from_str::<Json>) {
                Some(Ok(value @ Json::Object(_))) => values::from_wire(&value),
                _ => Value::from_pairs(std::iter::empty::<(String, Value)>()),
            },
            _ => return None,
        })
    }
}

/// `macros`: modules and functions.
#[derive(Debug)]
pub struct Macros;

impl Object for Macros {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        ObjectRepr::Plain
    }

    fn get_value(self: &Arc<Self>, key: &Value) -> Option<Value> {
        let name: &'static str = match key.as_str()? {
            "datetime" => "datetime",
            "timedelta" => "timedelta",
            "json" => "json",
            "time" => "time",
            "uuid" => "uuid",
            "dateutil" => "dateutil",
            "yaml" => "yaml",
            "random" => "random",
            "ds_add" => "ds_add",
            "ds_format" => "ds_format",
            "ds_format_locale" => "ds_format_locale",
            "datetime_diff_for_humans" => "datetime_diff_for_humans",
            _ => return None,
        };
        Some(Value::from_object(Macro(name)))
    }

    fn call_method(
        self: &Arc<Self>,
        state: &mut State<'_, '_>,
        method: &str,
        args: &[Value],
    ) -> Result<Value, Error> {
        match self.get_value(&Value::from(method)) {
            Some(function) => function.call(state, args),
            None => Err(unknown_method()),
        }
    }
}

/// One member of `macros`.
#[derive(Debug)]
struct Macro(&'static str);

impl Object for Macro {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        ObjectRepr::Plain
    }

    fn get_value(self: &Arc<Self>, key: &Value) -> Option<Value> {
        match (self.0, key.as_str()?) {
            ("dateutil", "parser") => Some(Value::from_object(Macro("dateutil.parser"))),
            ("datetime", "timedelta") => Some(Value::from_object(Macro("timedelta"))),
            ("datetime", "datetime") => Some(Value::from_object(Macro("datetime"))),
            _ => None,
        }
    }

    fn call(self: &Arc<Self>, _state: &mut State<'_, '_>, args: &[Value]) -> Result<Value, Error> {
        let unsupported = |text: &'static str| Err(Error::new(ErrorKind::InvalidOperation, text));
        match self.0 {
            "timedelta" => PyTimeDelta::from_arguments(args).map(Value::from_object),
            "datetime" => new_datetime(args),
            "random" => {
                let () = from_args(args)?;
                // 53 random bits make a double in [0, 1), as Python's random() does.
                #[allow(clippy::cast_precision_loss, reason = "53 bits fit a double")]
                let random = (uuid::Uuid::new_v4().as_u128() >> 75) as f64 / (1_u64 << 53) as f64;
                Ok(random.into())
            }
            "ds_add" => {
                let (ds, days): (Value, i64) = from_args(args)?;
                let day = parse_with(&values::text(&ds), "%Y-%m-%d")?.date();
                Ok((day + chrono::Duration::days(days)).to_string().into())
            }
            "ds_format" => {
                let (ds, from, to): (Value, &str, &str) = from_args(args)?;
                let at = parse_with(&values::text(&ds), from)?;
                PyDateTime::new(at, Zone::Naive)
                    .strftime(to)
                    .map(Value::from)
            }
            "ds_format_locale" => {
                unsupported("macros.ds_format_locale is not available here: use macros.ds_format")
            }
            "datetime_diff_for_humans" => {
                let (at, since): (Value, Option<Value>) = from_args(args)?;
                diff_for_humans(&at, since.as_ref())
            }
            _ => Err(Error::new(
                ErrorKind::InvalidOperation,
                format!("macros.{} is not callable", self.0),
            )),
        }
    }

    fn call_method(
        self: &Arc<Self>,
        state: &mut State<'_, '_>,
        method: &str,
        args: &[Value],
    ) -> Result<Value, Error> {
        let now = || PyDateTime::new(Utc::now().naive_utc(), Zone::Named(Tz::UTC));
        match (self.0, method) {
            ("datetime", "now" | "today") => {
                let (zone,): (Option<Value>,) = from_args(args)?;
                Ok(match zone {
                    None => {
                        Value::from_object(PyDateTime::new(Utc::now().naive_utc(), Zone::Naive))
                    }
                    Some(zone) => {
                        Value::from_object(now()).call_method(state, "in_timezone", &[zone])?
                    }
                })
            }
            ("datetime", "utcnow") => Ok(Value::from_object(PyDateTime::new(
                Utc::now().naive_utc(),
                Zone::Naive,
            ))),
            ("datetime", "strptime") => {
                let (text, pattern): (&str, &str) = from_args(args)?;
                Ok(Value::from_object(PyDateTime::new(
                    parse_with(text, pattern)?,
                    Zone::Naive,
                )))
            }
            ("datetime", "fromisoformat") | ("dateutil.parser", "parse" | "isoparse") => {
                let (text,): (&str,) = from_args(args)?;
                PyDateTime::parse(text)
                    .map(Value::from_object)
                    .ok_or_else(|| {
                        Error::new(
                            ErrorKind::InvalidOperation,
                            format!("{text:?} is not an ISO 8601 date or time"),
                        )
                    })
            }
            ("datetime", "timedelta") => PyTimeDelta::from_arguments(args).map(Value::from_object),
            ("datetime", "datetime") => new_datetime(args),
            ("json", "dumps") => {
                let (value, kwargs): (Value, Kwargs) = from_args(args)?;
                json_dumps(&value, &kwargs)
            }
            ("json", "loads") => {
                let (text,): (&str,) = from_args(args)?;
                let value: Json = serde_json::from_str(text).map_err(|error| {
                    Error::new(ErrorKind::InvalidOperation, format!("not JSON: {error}"))
                })?;
                Ok(values::from_wire(&value))
            }
            ("time", "time") => {
                #[allow(clippy::cast_precision_loss, reason = "Python gives a float here too")]
                let seconds = Utc::now().timestamp_micros() as f64 / 1e6;
                Ok(seconds.into())
            }
            ("uuid", "uuid4") => Ok(uuid::Uuid::new_v4().to_string().into()),
            _ => Err(unknown_method()),
        }
    }
}

fn json_dumps(value: &Value, kwargs: &Kwargs) -> Result<Value, Error> {
    let indent = kwargs.get::<Option<usize>>("indent")?;
    let ascii = kwargs.get::<Option<bool>>("ensure_ascii")?.unwrap_or(true);
    let sort = kwargs.get::<Option<bool>>("sort_keys")?.unwrap_or(false);
    let _: Option<Value> = kwargs.get("default")?;
    kwargs.assert_all_used()?;
    let mut wire = plain(&values::to_wire(value));
    if sort {
        wire = sorted(wire);
    }
    if indent.is_some() {
        let mut out = Vec::new();
        let indent = " ".repeat(indent.unwrap_or(2));
        let formatter = serde_json::ser::PrettyFormatter::with_indent(indent.as_bytes());
        let mut serializer = serde_json::Serializer::with_formatter(&mut out, formatter);
        serde::Serialize::serialize(&wire, &mut serializer)
            .map_err(|error| Error::new(ErrorKind::BadSerialization, error.to_string()))?;
        return Ok(String::from_utf8_lossy(&out).into_owned().into());
    }
    Ok(dumps(
        &wire,
        JsonStyle {
            item_separator: ", ",
            key_separator: ": ",
            ensure_ascii: ascii,
        },
    )
    .into())
}

/// JSON as `json.dumps(default=str)` would make it: without envelopes.
pub fn plain(wire: &Json) -> Json {
    match wire {
        Json::Array(items) => items.iter().map(plain).collect(),
        Json::Object(map) => match (map.get("__classname__"), map.get("__data__")) {
            (Some(Json::String(class)), Some(data)) if class.starts_with("builtins.") => {
                plain(data)
            }
            (Some(Json::String(_)), Some(_)) => match values::from_wire(wire) {
                value if value.kind() == ValueKind::Map => plain(&values::to_wire(&value)),
                value => values::text(&value).into(),
            },
            _ => map
                .iter()
                .map(|(key, value)| (key.clone(), plain(value)))
                .collect::<serde_json::Map<_, _>>()
                .into(),
        },
        other => other.clone(),
    }
}

pub(super) fn sorted(value: Json) -> Json {
    match value {
        Json::Object(map) => {
            let mut pairs: Vec<_> = map
                .into_iter()
                .map(|(key, value)| (key, sorted(value)))
                .collect();
            pairs.sort_by(|(a, _), (b, _)| a.cmp(b));
            pairs.into_iter().collect::<serde_json::Map<_, _>>().into()
        }
        Json::Array(items) => items.into_iter().map(sorted).collect(),
        other => other,
    }
}

fn new_datetime(args: &[Value]) -> Result<Value, Error> {
    let (positional, kwargs): (&[Value], Kwargs) = from_args(args)?;
    let part = |n: usize, name: &str| match positional.get(n) {
        Some(value) => u32::try_from(value.clone()),
        None => kwargs
            .get::<Option<u32>>(name)
            .map(Option::unwrap_or_default),
    };
    let year = i32::try_from(part(0, "year")?).unwrap_or_default();
    let (hour, minute, second) = (part(3, "hour")?, part(4, "minute")?, part(5, "second")?);
    let at = NaiveDate::from_ymd_opt(year, part(1, "month")?, part(2, "day")?)
        .and_then(|date| date.and_hms_micro_opt(hour, minute, second, part(6, "microsecond").ok()?))
        .ok_or_else(|| Error::new(ErrorKind::InvalidOperation, "day is out of range for month"))?;
    Ok(Value::from_object(PyDateTime::new(at, Zone::Naive)))
}

/// `datetime.strptime`: a pattern may leave out the time, or the day.
fn parse_with(text: &str, pattern: &str) -> Result<NaiveDateTime, Error> {
    let translated = pattern.replace("%f", "%6f");
    NaiveDateTime::parse_from_str(text, &translated)
        .ok()
        .or_else(|| {
            NaiveDate::parse_from_str(text, &translated)
                .ok()
                .map(|day| day.and_time(chrono::NaiveTime::MIN))
        })
        .or_else(|| {
            chrono::DateTime::parse_from_str(text, &translated)
                .ok()
                .map(|at| at.naive_local())
        })
        .or_else(|| {
            NaiveDate::parse_from_str(&format!("{text} 01"), &format!("{translated} %d"))
                .ok()
                .map(|day| day.and_time(chrono::NaiveTime::MIN))
        })
        .ok_or_else(|| {
            Error::new(
                ErrorKind::InvalidOperation,
                format!("time data {text:?} does not match format {pattern:?}"),
            )
        })
}

fn diff_for_humans(at: &Value, since: Option<&Value>) -> Result<Value, Error> {
    let moment = |value: &Value| {
        value
            .downcast_object_ref::<PyDateTime>()
            .map(PyDateTime::utc)
            .or_else(|| {
                value
                    .downcast_object_ref::<PyDate>()
                    .map(|day| day.0.and_time(chrono::NaiveTime::MIN))
            })
            .ok_or_else(|| {
                Error::new(
                    ErrorKind::InvalidOperation,
                    "macros.datetime_diff_for_humans needs a date or a datetime",
                )
            })
    };
    let other = since
        .filter(|value| !value.is_none())
        .map(moment)
        .transpose()?;
    let span = moment(at)? - other.unwrap_or_else(|| Utc::now().naive_utc());
    let seconds = span.num_seconds().abs();
    let (count, unit) = match seconds {
        s if s >= 31_536_000 => (s / 31_536_000, "year"),
        s if s >= 2_592_000 => (s / 2_592_000, "month"),
        s if s >= 604_800 => (s / 604_800, "week"),
        s if s >= 86_400 => (s / 86_400, "day"),
        s if s >= 3600 => (s / 3600, "hour"),
        s if s >= 60 => (s / 60, "minute"),
        s if s > 10 => (s, "second"),
        _ => (0, "few seconds"),
    };
    let amount = match count {
        0 => "a few seconds".to_owned(),
        1 => format!("1 {unit}"),
        n => format!("{n} {unit}s"),
    };
    let past = span < chrono::Duration::zero();
    Ok(match (other.is_some(), past) {
        (false, true) => format!("{amount} ago"),
        (false, false) => format!("in {amount}"),
        (true, true) => format!("{amount} before"),
        (true, false) => format!("{amount} after"),
    }
    .into())
}

/// A function of the Dag file, from `user_defined_macros` or `user_defined_filters`.
pub struct DagFunction {
    pub handle: crate::dag::definitions::Handle,
    pub name: String,
    pub call: CallFunction,
}

impl fmt::Debug for DagFunction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "<function {}>", self.name)
    }
}

impl DagFunction {
    /// Calls it with template values.
    ///
    /// # Errors
    /// The exception it raised.
    pub fn invoke(&self, args: &[Value]) -> Result<Value, Error> {
        let (positional, kwargs): (&[Value], Kwargs) = from_args(args)?;
        let positional = positional.iter().map(values::to_wire).collect();
        let mut named = serde_json::Map::new();
        for name in kwargs.args() {
            named.insert(
                name.to_owned(),
                values::to_wire(&kwargs.get::<Value>(name)?),
            );
        }
        (self.call)(self.handle, positional, named)
            .map(|wire| values::from_wire(&wire))
            .map_err(|error| Error::new(ErrorKind::InvalidOperation, error))
    }
}

impl Object for DagFunction {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        ObjectRepr::Plain
    }

    fn call(self: &Arc<Self>, _state: &mut State<'_, '_>, args: &[Value]) -> Result<Value, Error> {
        self.invoke(args)
    }
}
