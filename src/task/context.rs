//! Airflow's context: for templates, and as JSON for Dag code.

use std::sync::Arc;

use minijinja::value::{Object, ObjectRepr, Value};
use serde_json::{Map, Value as Json, json};

use super::services::{Services, dag_run_fields};
use super::templates::datetime::PyDateTime;
use super::templates::objects::{
    CallFunction, ConnectionsObject, DagFunction, Macros, TaskInstanceObject, VariablesObject,
};
use super::templates::values::from_wire;
use crate::airflow::execution::TiRunContext;
use crate::dag::definitions::{Argument, Dag, Task};

/// Why the params of a run can't be used. The texts are Airflow's.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParamError {
    #[error("Invalid input for param {name}: {text}")]
    Invalid { name: String, text: String },
    #[error("The JSON schema of param {name} is not valid: {text}")]
    Schema { name: String, text: String },
}

/// The Dag's params, the task's over them, `dag_run.conf` over both (`[core] dag_run_conf_overrides_params`), each
/// checked against its schema.
///
/// # Errors
/// A value its schema refuses.
pub fn params(
    dag: &Dag,
    task: &Task,
    conf: Option<&Map<String, Json>>,
    conf_overrides: bool,
) -> Result<Map<String, Json>, ParamError> {
    let mut values = dag.params.clone();
    values.extend(task.params.clone());
    if let Some(conf) = conf.filter(|_| conf_overrides) {
        values.extend(conf.clone());
    }
    for (name, value) in &values {
        // A task's param without a schema replaces the Dag's param of that name, schema and all, unless it is a value
        // for it; Airflow takes a bare value as a value.
        let Some(schema) = task
            .params_schema
            .get(name)
            .or_else(|| dag.params_schema.get(name))
        else {
            continue;
        };
        let validator = jsonschema::options()
            .should_validate_formats(true)
            .build(schema)
            .map_err(|error| ParamError::Schema {
                name: name.clone(),
                text: error.to_string(),
            })?;
        if let Err(error) = validator.validate(value) {
            return Err(ParamError::Invalid {
                name: name.clone(),
                text: error.to_string(),
            });
        }
    }
    Ok(values)
}

/// One task instance's context, before its fields are rendered.
pub struct Context<'a> {
    pub dag: &'a Dag,
    pub task: &'a Task,
    pub run: &'a TiRunContext,
    pub services: &'a Services,
    pub params: Map<String, Json>,
    /// `StartupDetails.start_date`.
    pub start_date: &'a str,
}

impl Context<'_> {
    /// What the interpreter builds Dag code's context from (see `dag::Interpreter::call`).
    #[must_use]
    pub fn for_dag_code(&self) -> Json {
        let dag_run = &self.run.dag_run;
        let mut ti = self.task_instance();
        if let Some(carrier) = &self.services.ti.context_carrier {
            ti.insert("context_carrier".to_owned(), json!(carrier));
        }
        json!({
            "ti": ti,
            "dag_run": dag_run_fields(dag_run),
            "params": self.params,
            "run_id": self.services.ti.run_id,
            "dag_id": self.dag.dag_id,
            "task_id": self.task.task_id,
            "logical_date": dag_run.logical_date,
            "data_interval_start": dag_run.data_interval_start,
            "data_interval_end": dag_run.data_interval_end,
            "templates_dict": null,
            "map_index": self.services.ti.map_index,
            "map_index_template": self.task.map_index_template,
            "triggering_asset_events": dag_run.consumed_asset_events,
            "task_reschedule_count": self.run.task_reschedule_count,
        })
    }

    fn task_instance(&self) -> Map<String, Json> {
        let ti = &self.services.ti;
        let fields = json!({
            "id": ti.id,
            "dag_id": ti.dag_id,
            "task_id": ti.task_id,
            "run_id": ti.run_id,
            "try_number": ti.try_number,
            "map_index": ti.map_index,
            "hostname": ti.hostname,
            "queue": ti.queue,
            "dag_version_id": ti.dag_version_id,
            "max_tries": self.run.max_tries,
            "start_date": self.start_date,
            "end_date": null,
            "state": "running",
            "operator": self.task.operator,
        });
        match fields {
            Json::Object(fields) => fields,
            _ => Map::new(),
        }
    }

    /// What templates see. `call` runs functions among the Dag's `user_defined_macros`; `op_kwargs` and the like are
    /// reached through `task`.
    #[must_use]
    pub fn for_templates(&self, call: &CallFunction, task_fields: &Map<String, Json>) -> Value {
        let dag_run = &self.run.dag_run;
        let services = self.services;
        let mut pairs: Vec<(String, Value)> = Vec::new();
        let mut put = |key: &str, value: Value| pairs.push((key.to_owned(), value));

        let mut attributes = dated(&self.task_instance(), &["start_date"]);
        attributes.push(("log_url".to_owned(), self.log_url().into()));
        let ti = Value::from_object(TaskInstanceObject {
            services: services.clone(),
            attributes: Value::from_pairs(attributes),
        });
        put("ti", ti.clone());
        put("task_instance", ti);
        put("run_id", services.ti.run_id.as_str().into());
        put("params", from_wire(&Json::Object(self.params.clone())));
        put("macros", Value::from_object(Macros));
        put(
            "var",
            Value::from_pairs([
                (
                    "value",
                    Value::from_object(VariablesObject {
                        services: services.clone(),
                        json: false,
                    }),
                ),
                (
                    "json",
                    Value::from_object(VariablesObject {
                        services: services.clone(),
                        json: true,
                    }),
                ),
            ]),
        );
        put(
            "conn",
            Value::from_object(ConnectionsObject {
                services: services.clone(),
            }),
        );
        let run_fields = dag_run_fields(dag_run);
        put(
            "dag_run",
            Value::from_pairs(dated(
                &run_fields,
                &[
                    "logical_date",
                    "data_interval_start",
                    "data_interval_end",
                    "run_after",
                    "start_date",
                    "end_date",
                    "partition_date",
                ],
            )),
        );
        put(
            "dag",
            Value::from_object(Described {
                class: "DAG",
                fields: self.dag_fields(),
            }),
        );
        put(
            "task",
            Value::from_object(Described {
                class: "Task",
                fields: self.task_fields(task_fields),
            }),
        );
        put("inlets", self.task.inlets.iter().map(from_wire).collect());
        put("outlets", self.task.outlets.iter().map(from_wire).collect());
        put(
            "map_index_template",
            self.task.map_index_template.clone().into(),
        );
        put(
            "task_reschedule_count",
            self.run.task_reschedule_count.into(),
        );
        put("partition_key", dag_run.partition_key.clone().into());
        put("partition_date", date(dag_run.partition_date.as_deref()));
        put(
            "triggering_asset_events",
            asset_events(&dag_run.consumed_asset_events),
        );
        for (key, field) in [
            ("prev_start_date_success", "start_date"),
            ("prev_end_date_success", "end_date"),
        ] {
            put(
                key,
                Value::from_dyn_object(Arc::new(PreviousRun {
                    services: services.clone(),
                    field,
                })),
            );
        }
        let key = |suffix: &str| format!("{}__{}__{suffix}", self.dag.dag_id, self.task.task_id);
        match dag_run.logical_date.as_deref().and_then(PyDateTime::parse) {
            None => put("task_instance_key_str", key(&services.ti.run_id).into()),
            Some(at) => {
                let format = |pattern| at.strftime(pattern).unwrap_or_default();
                let ts = at.isoformat("T");
                put("task_instance_key_str", key(&format("%Y%m%d")).into());
                put("logical_date", Value::from_object(at));
                put("ds", format("%Y-%m-%d").into());
                put("ds_nodash", format("%Y%m%d").into());
                put("ts_nodash", format("%Y%m%dT%H%M%S").into());
                put("ts_nodash_with_tz", ts.replace(['-', ':'], "").into());
                put("ts", ts.into());
                put(
                    "data_interval_start",
                    date(dag_run.data_interval_start.as_deref()),
                );
                put(
                    "data_interval_end",
                    date(dag_run.data_interval_end.as_deref()),
                );
                for (key, field) in [
                    ("prev_data_interval_start_success", "data_interval_start"),
                    ("prev_data_interval_end_success", "data_interval_end"),
                ] {
                    put(
                        key,
                        Value::from_dyn_object(Arc::new(PreviousRun {
                            services: services.clone(),
                            field,
                        })),
                    );
                }
            }
        }
        for (name, argument) in &self.dag.user_defined_macros {
            let value = match argument {
                Argument::Object { handle, .. } => Value::from_object(DagFunction {
                    handle: *handle,
                    name: name.clone(),
                    call: Arc::clone(call),
                }),
                literal => from_wire(&super::arguments::literal(literal)),
            };
            pairs.push((name.clone(), value));
        }
        Value::from_pairs(pairs)
    }

    fn dag_fields(&self) -> Value {
        Value::from_pairs([
            ("dag_id", Value::from(self.dag.dag_id.as_str())),
            ("params", from_wire(&Json::Object(self.dag.params.clone()))),
            ("fileloc", self.dag.location.file.as_str().into()),
            (
                "task_ids",
                self.dag
                    .tasks
                    .iter()
                    .map(|task| Value::from(task.task_id.as_str()))
                    .collect(),
            ),
        ])
    }

    fn task_fields(&self, fields: &Map<String, Json>) -> Value {
        let ids = |ids: &[String]| {
            ids.iter()
                .map(|id| Value::from(id.as_str()))
                .collect::<Value>()
        };
        let mut pairs = vec![
            (
                "task_id".to_owned(),
                Value::from(self.task.task_id.as_str()),
            ),
            ("dag_id".to_owned(), self.dag.dag_id.as_str().into()),
            ("task_type".to_owned(), self.task.operator.as_str().into()),
            ("queue".to_owned(), self.task.queue.clone().into()),
            ("retries".to_owned(), self.task.retries.into()),
            (
                "upstream_task_ids".to_owned(),
                ids(&self.task.upstream_task_ids),
            ),
            (
                "downstream_task_ids".to_owned(),
                ids(&self.task.downstream_task_ids),
            ),
        ];
        pairs.extend(
            fields
                .iter()
                .map(|(name, value)| (name.clone(), from_wire(value))),
        );
        Value::from_pairs(pairs)
    }

    fn log_url(&self) -> String {
        let ti = &self.services.ti;
        let base = self
            .services
            .config
            .get("api", "base_url")
            .ok()
            .flatten()
            .unwrap_or_default();
        let mapped = if ti.map_index >= 0 {
            format!("/mapped/{}", ti.map_index)
        } else {
            String::new()
        };
        format!(
            "{}/dags/{}/runs/{}/tasks/{}{mapped}?try_number={}",
            base.trim_end_matches('/'),
            ti.dag_id,
            ti.run_id,
            ti.task_id,
            ti.try_number
        )
    }
}

fn date(text: Option<&str>) -> Value {
    text.and_then(PyDateTime::parse)
        .map_or_else(|| Value::from(()), Value::from_object)
}

fn dated(fields: &Map<String, Json>, dates: &[&str]) -> Vec<(String, Value)> {
    fields
        .iter()
        .map(|(key, value)| {
            let value = if dates.contains(&key.as_str()) {
                date(value.as_str())
            } else {
                from_wire(value)
            };
            (key.clone(), value)
        })
        .collect()
}

/// Events by asset: keyed by the asset's name and by its URI.
fn asset_events(events: &[Json]) -> Value {
    let mut by_asset: Vec<(String, Vec<Value>)> = Vec::new();
    for event in events {
        let asset = event.get("asset").unwrap_or(&Json::Null);
        let mut keys: Vec<_> = ["name", "uri"]
            .iter()
            .filter_map(|key| asset.get(key)?.as_str())
            .collect();
        keys.dedup();
        for key in keys {
            match by_asset.iter_mut().find(|(known, _)| known == key) {
                Some((_, list)) => list.push(from_wire(event)),
                None => by_asset.push((key.to_owned(), vec![from_wire(event)])),
            }
        }
    }
    Value::from_pairs(by_asset)
}

/// A Dag or a task: attributes, and a printed form of its own.
#[derive(Debug)]
struct Described {
    class: &'static str,
    fields: Value,
}

impl Object for Described {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        ObjectRepr::Plain
    }

    fn get_value(self: &Arc<Self>, key: &Value) -> Option<Value> {
        self.fields
            .get_item(key)
            .ok()
            .filter(|value| !value.is_undefined())
    }

    fn render(self: &Arc<Self>, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let id = if self.class == "Task" {
            "task_id"
        } else {
            "dag_id"
        };
        write!(
            f,
            "<{}: {}>",
            self.class,
            self.fields.get_attr(id).unwrap_or_default()
        )
    }
}

/// A date of the last successful run, looked up when it is used.
struct PreviousRun {
    services: Services,
    field: &'static str,
}

impl std::fmt::Debug for PreviousRun {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.field)
    }
}

impl PreviousRun {
    fn value(&self) -> Value {
        match self.services.previous_successful_run() {
            Ok(body) => date(body.get(self.field).and_then(Json::as_str)),
            Err(error) => {
                minijinja::Error::new(minijinja::ErrorKind::InvalidOperation, error.to_string())
                    .into()
            }
        }
    }
}

impl Object for PreviousRun {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        ObjectRepr::Plain
    }

    fn is_true(self: &Arc<Self>) -> bool {
        self.value().is_true()
    }

    fn render(self: &Arc<Self>, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&super::templates::values::text(&self.value()))
    }

    fn get_value(self: &Arc<Self>, key: &Value) -> Option<Value> {
        self.value()
            .get_item(key)
            .ok()
            .filter(|value| !value.is_undefined())
    }

    fn call_method(
        self: &Arc<Self>,
        state: &mut minijinja::State<'_, '_>,
        method: &str,
        args: &[Value],
    ) -> Result<Value, minijinja::Error> {
        self.value().call_method(state, method, args)
    }
}
