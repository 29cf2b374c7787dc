//! Argument trees of a Dag file become values: strings are rendered, XCom references pulled, objects asked.

use serde_json::{Map, Value};

use super::services::{LookupError, Services};
use super::templates::values::envelope;
use super::templates::{TemplateError, Templates};
use crate::airflow::python_text::repr_str;
use crate::dag::PythonError;
use crate::dag::definitions::{Argument, Dag, Handle, Task, TimeClass};

/// Why an argument has no value.
#[derive(Clone, Debug, thiserror::Error)]
pub enum ArgumentError {
    #[error(transparent)]
    Template(#[from] TemplateError),
    #[error(transparent)]
    Lookup(#[from] LookupError),
    /// Dag code that had to be asked for the value raised an exception, or could not be asked.
    #[error("{0}")]
    Object(#[source] Box<PythonError>),
}

/// Asks the interpreter for the value of an object (`.map(f)`, `.zip(..)`, `.concat(..)`), in wire form.
pub type ResolveObject<'a> = &'a dyn Fn(Handle) -> Result<Value, ArgumentError>;

/// Turns arguments into values in XCom wire form. Blocks.
pub struct Resolver<'a> {
    pub services: &'a Services,
    pub dag: &'a Dag,
    pub task: &'a Task,
    /// `None`: strings stay as they are.
    pub templates: Option<&'a Templates>,
    pub resolve_object: ResolveObject<'a>,
}

impl Resolver<'_> {
    /// # Errors
    /// The first argument, from left to right, that has no value.
    pub fn value(&self, field: &str, argument: &Argument) -> Result<Value, ArgumentError> {
        let list = |items: &[Argument]| {
            items
                .iter()
                .map(|item| self.value(field, item))
                .collect::<Result<Vec<_>, _>>()
        };
        Ok(match argument {
            Argument::String(text) => match self.templates {
                Some(templates) => templates.render(field, text)?,
                None => text.as_str().into(),
            },
            Argument::List(items) => list(items)?.into(),
            Argument::Tuple(items) => envelope("builtins.tuple", 1, list(items)?.into()),
            Argument::Set(items) => envelope("builtins.set", 1, list(items)?.into()),
            Argument::Dict(pairs) => {
                let mut map = Map::new();
                for (key, item) in pairs {
                    map.insert(key_text(key), self.value(field, item)?);
                }
                map.into()
            }
            Argument::XCom { task_id, key } => self.xcom(task_id, key)?,
            Argument::Object {
                handle,
                resolve: true,
                ..
            } => (self.resolve_object)(*handle)?,
            other => literal(other),
        })
    }

    /// What `task.output` is at run time: a mapped task's is the list of all its results.
    ///
    /// # Errors
    /// It can't be had.
    pub fn xcom(&self, task_id: &str, key: &str) -> Result<Value, LookupError> {
        let upstream = self.dag.tasks.iter().find(|task| task.task_id == task_id);
        let mapped = upstream.is_some_and(|task| !task.expansions.is_empty());
        let beside = upstream.is_some_and(|upstream| same_mapped_group(upstream, self.task));
        let map_index =
            (beside && self.services.ti.map_index >= 0).then_some(self.services.ti.map_index);
        self.services.xcom_argument(task_id, key, mapped, map_index)
    }
}

/// Do two tasks stand in one mapped task group, the upstream one not mapped by itself? Then map indexes correspond.
fn same_mapped_group(upstream: &Task, task: &Task) -> bool {
    !upstream.is_mapped
        && task.mapped_task_group.is_some()
        && task.mapped_task_group == upstream.mapped_task_group
}

fn key_text(key: &Argument) -> String {
    match key {
        Argument::String(text) => text.clone(),
        Argument::Null => "None".to_owned(),
        Argument::Bool(true) => "True".to_owned(),
        Argument::Bool(false) => "False".to_owned(),
        Argument::Number(number) => number.to_string(),
        Argument::Object { repr, .. } => repr.clone(),
        Argument::Time { value, .. } => value.clone(),
        other => python_repr(&literal(other)),
    }
}

/// An argument without templates, references or objects to ask, in wire form.
#[must_use]
pub fn literal(argument: &Argument) -> Value {
    let list = |items: &[Argument]| items.iter().map(literal).collect::<Vec<_>>();
    match argument {
        Argument::Null => Value::Null,
        Argument::Bool(b) => (*b).into(),
        Argument::Number(number) => Value::Number(number.clone()),
        Argument::String(text) => text.as_str().into(),
        Argument::List(items) => list(items).into(),
        Argument::Tuple(items) => envelope("builtins.tuple", 1, list(items).into()),
        Argument::Set(items) => envelope("builtins.set", 1, list(items).into()),
        Argument::Dict(pairs) => pairs
            .iter()
            .map(|(key, value)| (key_text(key), literal(value)))
            .collect::<Map<_, _>>()
            .into(),
        Argument::Time { class, value } => time(*class, value),
        Argument::XCom { task_id, key } => format!("XCom {key} of task {task_id}").into(),
        // The interpreter knows it again by its handle (see `python/updraft_xcom.py`).
        object @ Argument::Object { .. } => object.clone().into(),
    }
}

fn time(class: TimeClass, value: &str) -> Value {
    use super::templates::datetime::PyDateTime;
    use super::templates::values::datetime_to_wire;
    match class {
        TimeClass::DateTime => {
            PyDateTime::parse(value).map_or_else(|| value.into(), |at| datetime_to_wire(&at))
        }
        TimeClass::Date => envelope("datetime.date", 2, value.into()),
        // Python's serde has no time class.
        TimeClass::Time => value.into(),
        TimeClass::TimeDelta => {
            let seconds: f64 = value.parse().unwrap_or_default();
            envelope("datetime.timedelta", 2, seconds.into())
        }
    }
}

/// Python's `repr` of a value in wire form.
#[must_use]
pub fn python_repr(value: &Value) -> String {
    match value {
        Value::String(text) => repr_str(text),
        other => super::templates::values::repr(&super::templates::values::from_wire(other)),
    }
}

/// The name of the class that a value in wire form has in Python.
#[must_use]
pub fn python_class(value: &Value) -> String {
    match value {
        Value::Null => "NoneType".to_owned(),
        Value::Bool(_) => "bool".to_owned(),
        Value::Number(number) if number.is_f64() => "float".to_owned(),
        Value::Number(_) => "int".to_owned(),
        Value::String(_) => "str".to_owned(),
        Value::Array(_) => "list".to_owned(),
        Value::Object(map) => match map.get("__classname__") {
            Some(Value::String(class)) => class.trim_start_matches("builtins.").to_owned(),
            Some(other) => python_repr(other),
            None => "dict".to_owned(),
        },
    }
}
