//! One local run of a Dag: its task instances in the order of their dependencies.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::Context;
use chrono::{SecondsFormat, Utc};
use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;

use super::display::Display;
use super::trigger_rules::{State, decide};
use crate::agent::events;
use crate::airflow::config::Config;
use crate::airflow::execution::{BundleInfo, DagRun, TaskInstance, TiRunContext};
use crate::airflow::supervisor::{StartupDetails, TaskRequest};
use crate::cli::dag_files::{CurrentTask, Place};
use crate::control_plane::ControlPlane;
use crate::control_plane::local::{LocalControlPlane, XComPlace};
use crate::control_plane::resolve::Resolver;
use crate::dag::Interpreter;
use crate::dag::definitions::{Dag, Task};
use crate::secrets::environment::connection_variable;
use crate::secrets::{Masker, SearchPath};
use crate::supervisor::{
    FinalState, Limits, LogSink, StopReason, StopSender, SupervisedTask, TaskCommand, TaskLog,
    TaskProcess, run_task, stop_channel,
};
use crate::task::agent_model::{
    RECORD_VARIABLE, REPLAY_VARIABLE, TRANSCRIPT_VARIABLE, UNATTENDED_VARIABLE,
};
use crate::task::attempt::Attempt;
use crate::task::services::Services;

const BUNDLE: &str = "local";

/// One task of a Dag, or one map index of it.
pub struct Only {
    pub task_id: String,
    pub map_index: Option<i64>,
}

/// What is done with what the models are asked and answer.
pub enum Exchange {
    /// It is written to this file.
    Record(PathBuf),
    /// It comes from this file.
    Replay(PathBuf),
}

/// Runs a Dag.
pub struct DagRunner {
    pub dag: Dag,
    pub exchange: Option<Exchange>,
    /// Run this alone.
    pub only: Option<Only>,
    pub logical_date: String,
    pub run_id: String,
    pub conf: Option<Map<String, Value>>,
    /// What an earlier try left in the task state store, by task id and key.
    pub task_state: Map<String, Value>,
    pub place: Place,
    pub plane: Arc<LocalControlPlane>,
    pub config: Arc<Config>,
    pub masker: Masker,
    pub search_path: SearchPath,
    pub interpreter: Arc<Interpreter>,
    pub current: CurrentTask,
    pub display: Arc<Display>,
}

/// What became of the run.
pub struct Report {
    success: bool,
    interrupted: bool,
    dag_id: String,
    run_id: String,
    instances: Vec<Instance>,
}

/// One task instance.
struct Instance {
    task_id: String,
    map_index: i64,
    try_number: u32,
    state: State,
    xcoms: Map<String, Value>,
    error: Option<String>,
    log: Vec<Value>,
}

impl Report {
    /// The object that `--json` prints.
    pub fn to_json(&self) -> Value {
        json!({
            "dag_id": self.dag_id,
            "run_id": self.run_id,
            "state": if self.success { "success" } else { "failed" },
            "tasks": self.instances.iter().map(|instance| json!({
                "task_id": instance.task_id,
                "map_index": instance.map_index,
                "try_number": instance.try_number,
                "state": instance.state.as_str(),
                "xcoms": instance.xcoms,
                "error": instance.error,
                "log": instance.log,
            })).collect::<Vec<_>>(),
        })
    }
}

impl Report {
    /// 0, or 1 when a task failed, or what a shell says of a program that Ctrl-C ended.
    pub fn exit_code(&self) -> ExitCode {
        match (self.interrupted, self.success) {
            (true, _) => ExitCode::from(130),
            (false, true) => ExitCode::SUCCESS,
            (false, false) => ExitCode::FAILURE,
        }
    }
}

impl DagRunner {
    /// Runs the tasks. A task that fails does not fail this.
    pub async fn run(self) -> anyhow::Result<Report> {
        let begin = Instant::now();
        self.display.run_starts(&self.dag.dag_id, &self.run_id);
        let (stop, _keep) = stop_channel();
        let interrupted = CancellationToken::new();
        let watch = tokio::spawn(stop_on_interrupt(stop.clone(), interrupted.clone()));
        let mut instances: Vec<Instance> = Vec::new();
        self.say_what_is_missing();
        let only = self.only.as_ref().map(|only| only.task_id.as_str());
        for task in in_order(&self.dag, only) {
            if interrupted.is_cancelled() {
                break;
            }
            self.run_task(task, &mut instances, &stop, &interrupted)
                .await?;
        }
        watch.abort();
        let success = !interrupted.is_cancelled()
            && instances
                .iter()
                .all(|one| matches!(one.state, State::Success | State::Skipped));
        self.display
            .run_ends(if success { "success" } else { "failed" }, begin.elapsed());
        Ok(Report {
            success,
            interrupted: interrupted.is_cancelled(),
            dag_id: self.dag.dag_id.clone(),
            run_id: self.run_id.clone(),
            instances,
        })
    }

    /// Runs all task instances of one task.
    async fn run_task(
        &self,
        task: &Task,
        instances: &mut Vec<Instance>,
        stop: &StopSender,
        interrupted: &CancellationToken,
    ) -> anyhow::Result<()> {
        let whole = self.upstream_states(task, None, instances);
        let left_out = |map_index: i64, state: State| {
            self.display.task_left_out(&shown(task, map_index), state);
            Instance::left_out(task, map_index, state)
        };
        // Within a mapped task group each map index waits for its own, so the group as a whole says nothing yet.
        if task.mapped_task_group.is_none()
            && let Err(state) = decide(&task.trigger_rule, &whole)
        {
            instances.push(left_out(-1, state));
            return Ok(());
        }
        let count = if task.expansions.is_empty() {
            None
        } else {
            match self.expansion_count(task).await {
                Ok(count) => count,
                Err(text) => {
                    self.display.task_starts(&task.task_id, 1);
                    self.display
                        .task_ends("failed", Duration::ZERO, &Map::new(), Some(&text));
                    instances.push(Instance {
                        error: Some(text),
                        ..Instance::left_out(task, -1, State::Failed)
                    });
                    return Ok(());
                }
            }
        };
        let only = self.only.as_ref().and_then(|only| only.map_index);
        let indexes: Vec<i64> = match count {
            None => vec![-1],
            Some(count) => (0..i64::try_from(count).unwrap_or(i64::MAX))
                .filter(|index| only.is_none_or(|only| only == *index))
                .collect(),
        };
        if let Some(only) = only
            && indexes != [only]
        {
            let count = count.unwrap_or_default();
            anyhow::bail!(
                "task {} has {count} map indexes, and none is {only}",
                task.task_id
            );
        }
        if indexes.is_empty() {
            instances.push(left_out(-1, State::Skipped));
            return Ok(());
        }
        for map_index in indexes {
            if interrupted.is_cancelled() {
                break;
            }
            let states = self.upstream_states(task, Some(map_index), instances);
            let instance = match decide(&task.trigger_rule, &states) {
                Err(state) => left_out(map_index, state),
                Ok(()) if self.skipped_by_upstream(&task.task_id, map_index) => {
                    left_out(map_index, State::Skipped)
                }
                Ok(()) => {
                    self.run_instance(task, map_index, stop, interrupted)
                        .await?
                }
            };
            instances.push(instance);
        }
        Ok(())
    }

    /// States of the task instances that a task (or one map index of it) waits for.
    fn upstream_states(
        &self,
        task: &Task,
        map_index: Option<i64>,
        instances: &[Instance],
    ) -> Vec<State> {
        let beside = |upstream: &str| {
            self.dag.tasks.iter().any(|other| {
                other.task_id == upstream
                    && other.mapped_task_group.is_some()
                    && other.mapped_task_group == task.mapped_task_group
            })
        };
        instances
            .iter()
            .filter(|one| task.upstream_task_ids.contains(&one.task_id))
            .filter(|one| {
                !beside(&one.task_id)
                    || one.map_index < 0
                    || map_index.is_none_or(|index| index == one.map_index)
            })
            .map(|one| one.state)
            .collect()
    }

    /// Did a branch or a short circuit say that this task instance is skipped?
    fn skipped_by_upstream(&self, task_id: &str, map_index: i64) -> bool {
        self.plane.messages().iter().any(|message| match message {
            TaskRequest::SkipDownstreamTasks { tasks } => tasks.iter().any(|task| match task {
                Value::String(id) => id == task_id,
                Value::Array(pair) => {
                    pair.first().and_then(Value::as_str) == Some(task_id)
                        && pair
                            .get(1)
                            .and_then(Value::as_i64)
                            .is_none_or(|index| index < 0 || index == map_index)
                }
                _ => false,
            }),
            _ => false,
        })
    }

    async fn expansion_count(&self, task: &Task) -> Result<Option<usize>, String> {
        let details = self.startup_details(task, &uuid::Uuid::now_v7().to_string(), -1, 1);
        let plane = Arc::clone(&self.plane) as Arc<dyn ControlPlane>;
        let resolver = Resolver::new(
            self.search_path.clone(),
            Arc::clone(&plane),
            self.masker.clone(),
        );
        let services = Services::new(
            plane,
            Arc::clone(&self.config),
            resolver,
            Arc::new(details.ti.clone()),
        );
        self.current.set(services.clone());
        let attempt = Attempt::new(
            details,
            self.dag.clone(),
            task.clone(),
            services,
            Arc::clone(&self.interpreter),
            self.place.root.clone(),
        )
        .map_err(|failure| failure.text())?;
        tokio::task::spawn_blocking(move || {
            attempt.expansion_count().map_err(|failure| failure.text())
        })
        .await
        .map_err(|error| format!("a fault of Updraft: {error}"))?
    }

    fn startup_details(
        &self,
        task: &Task,
        ti_id: &str,
        map_index: i64,
        try_number: u32,
    ) -> StartupDetails {
        let now = Utc::now().to_rfc3339_opts(SecondsFormat::Micros, true);
        StartupDetails {
            ti: TaskInstance {
                id: ti_id.to_owned(),
                task_id: task.task_id.clone(),
                dag_id: self.dag.dag_id.clone(),
                run_id: self.run_id.clone(),
                try_number,
                dag_version_id: None,
                map_index,
                hostname: None,
                context_carrier: None,
                queue: task.queue.clone(),
            },
            dag_rel_path: self.place.relative(),
            bundle_info: BundleInfo {
                name: BUNDLE.to_owned(),
                version: None,
            },
            start_date: now.clone(),
            ti_context: TiRunContext {
                dag_run: DagRun {
                    dag_id: self.dag.dag_id.clone(),
                    run_id: self.run_id.clone(),
                    logical_date: Some(self.logical_date.clone()),
                    data_interval_start: Some(self.logical_date.clone()),
                    data_interval_end: Some(self.logical_date.clone()),
                    run_after: self.logical_date.clone(),
                    start_date: Some(now),
                    run_type: "manual".to_owned(),
                    state: "running".to_owned(),
                    // As Airflow has it for a manual run without one.
                    conf: Some(self.conf.clone().unwrap_or_default()),
                    ..DagRun::default()
                },
                max_tries: i64::from(task.retries),
                should_retry: try_number <= task.retries,
                ..TiRunContext::default()
            },
            sentry_integration: String::new(),
        }
    }

    /// What a task process finds in its environment beside what this process has.
    fn environment(&self) -> Vec<(String, String)> {
        let bundles = json!([{
            "name": BUNDLE,
            "classpath": "airflow.dag_processing.bundles.local.LocalDagBundle",
            "kwargs": {"path": self.place.root.display().to_string()},
        }]);
        let levels = self
            .config
            .get("logging", "namespace_levels")
            .ok()
            .flatten()
            .unwrap_or_default();
        let mut variables = vec![
            (
                "AIRFLOW__DAG_PROCESSOR__DAG_BUNDLE_CONFIG_LIST".to_owned(),
                bundles.to_string(),
            ),
            (
                // The display lives on these events.
                "AIRFLOW__LOGGING__NAMESPACE_LEVELS".to_owned(),
                format!("{}=DEBUG,{levels}", events::TARGET),
            ),
            (UNATTENDED_VARIABLE.to_owned(), "1".to_owned()),
        ];
        if let Some(transcript) = self.place.transcript() {
            variables.push((
                TRANSCRIPT_VARIABLE.to_owned(),
                transcript.display().to_string(),
            ));
        }
        let exchange = match &self.exchange {
            None => return variables,
            Some(Exchange::Record(path)) => (RECORD_VARIABLE, path),
            Some(Exchange::Replay(path)) => (REPLAY_VARIABLE, path),
        };
        variables.push((exchange.0.to_owned(), exchange.1.display().to_string()));
        variables
    }

    /// Tries of one task instance, until one is final. Retries are not delayed here.
    async fn run_instance(
        &self,
        task: &Task,
        map_index: i64,
        stop: &StopSender,
        interrupted: &CancellationToken,
    ) -> anyhow::Result<Instance> {
        let place = XComPlace {
            dag_id: self.dag.dag_id.clone(),
            run_id: self.run_id.clone(),
            task_id: task.task_id.clone(),
            map_index,
        };
        let records = Arc::new(Mutex::new(Records::default()));
        // One for all tries: the task state store outlives them.
        let ti_id = uuid::Uuid::now_v7().to_string();
        if let Some(Value::Object(left)) = self.task_state.get(&task.task_id) {
            for (key, value) in left {
                self.plane.set_task_state(&ti_id, key, value.clone());
            }
        }
        self.plane.set_started(
            &ti_id,
            &Utc::now().to_rfc3339_opts(SecondsFormat::Micros, true),
        );
        let (mut try_number, mut reschedules) = (1, 0);
        loop {
            let begin = Instant::now();
            self.display
                .task_starts(&shown(task, map_index), try_number);
            self.plane.clear_xcoms(&place);
            let mut command =
                TaskCommand::this_program().context("this program can't find itself")?;
            command.environment = self.environment();
            let process = TaskProcess::spawn(&command).await?;
            let sink = Sink {
                records: Arc::clone(&records),
                display: Arc::clone(&self.display),
            };
            let outcome = run_task(SupervisedTask {
                process,
                startup: {
                    let mut details = self.startup_details(task, &ti_id, map_index, try_number);
                    details.ti_context.task_reschedule_count = reschedules;
                    details
                },
                control_plane: Arc::clone(&self.plane) as Arc<dyn ControlPlane>,
                log: TaskLog::new(Box::new(sink), self.masker.clone()),
                limits: Limits::default(),
                stop: stop.subscribe(),
                ended: CancellationToken::new(),
            })
            .await;
            let later = outcome.state == FinalState::UpForReschedule && !interrupted.is_cancelled();
            let again =
                later || outcome.state == FinalState::UpForRetry && !interrupted.is_cancelled();
            let state = match outcome.state {
                FinalState::Success => State::Success,
                FinalState::Skipped => State::Skipped,
                _ => State::Failed,
            };
            let (log, error) = records
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .take();
            let error = (state == State::Failed).then(|| {
                error.unwrap_or_else(|| match outcome.state {
                    FinalState::Deferred => {
                        "the task waits for a trigger, and a local run has no triggerer: run the Dag in Airflow, or \
                         without deferrable=True"
                            .to_owned()
                    }
                    FinalState::AwaitingInput => {
                        "the answer waits for a person, and a local run asks nobody: run the Dag in Airflow to approve \
                         it"
                            .to_owned()
                    }
                    _ => "the task failed without saying why; see its log".to_owned(),
                })
            });
            let xcoms = self.plane.xcoms(&place);
            let word = if later {
                "rescheduled"
            } else if again {
                "failed, tried again,"
            } else {
                state.as_str()
            };
            self.display
                .task_ends(word, begin.elapsed(), &xcoms, error.as_deref());
            if let Some(hint) = error.as_deref().and_then(|error| self.hint(error)) {
                self.display.note(&hint);
            }
            if later {
                reschedules += 1;
                self.wait_until_rescheduled(interrupted).await;
                records.lock().unwrap_or_else(PoisonError::into_inner).log = log;
                continue;
            }
            if again {
                try_number += 1;
                records.lock().unwrap_or_else(PoisonError::into_inner).log = log;
                continue;
            }
            return Ok(Instance {
                task_id: task.task_id.clone(),
                map_index,
                try_number,
                state,
                xcoms,
                error,
                log,
            });
        }
    }
}

impl DagRunner {
    /// What to do about a connection that is not there.
    fn hint(&self, error: &str) -> Option<String> {
        let (_, rest) = error.split_once("The conn_id `")?;
        let (conn_id, _) = rest.split_once("` isn't defined")?;
        let stem = self.place.file.with_extension("");
        let stem = stem.file_name()?.to_string_lossy().into_owned();
        let transcript = match self.place.transcript() {
            Some(_) => String::new(),
            None => format!(", or let {stem}.transcript.json answer for the model"),
        };
        Some(format!(
            "define it as {} or in {stem}.connections.json beside the Dag file{transcript}",
            connection_variable(conn_id)
        ))
    }

    /// With one task alone: what it will miss.
    fn say_what_is_missing(&self) {
        let Some(only) = &self.only else { return };
        let Some(task) = self
            .dag
            .tasks
            .iter()
            .find(|task| task.task_id == only.task_id)
        else {
            return;
        };
        if !task.upstream_task_ids.is_empty() {
            self.display.note(&format!(
                "alone: what {} would give it is not there",
                task.upstream_task_ids.join(", ")
            ));
        }
    }

    /// Waits for the moment that the last rescheduled task has named.
    async fn wait_until_rescheduled(&self, interrupted: &CancellationToken) {
        let messages = self.plane.messages();
        let date = messages.iter().rev().find_map(|message| match message {
            TaskRequest::RescheduleTask {
                reschedule_date, ..
            } => chrono::DateTime::parse_from_rfc3339(reschedule_date).ok(),
            _ => None,
        });
        let wait = date.and_then(|date| (date.to_utc() - Utc::now()).to_std().ok());
        tokio::select! {
            () = tokio::time::sleep(wait.unwrap_or_default()) => {}
            () = interrupted.cancelled() => {}
        }
    }
}

impl Instance {
    fn left_out(task: &Task, map_index: i64, state: State) -> Self {
        Self {
            task_id: task.task_id.clone(),
            map_index,
            try_number: 0,
            state,
            xcoms: Map::new(),
            error: None,
            log: Vec::new(),
        }
    }
}

fn shown(task: &Task, map_index: i64) -> String {
    if map_index < 0 {
        task.task_id.clone()
    } else {
        format!("{}[{map_index}]", task.task_id)
    }
}

async fn stop_on_interrupt(stop: StopSender, interrupted: CancellationToken) {
    if tokio::signal::ctrl_c().await.is_ok() {
        interrupted.cancel();
        let message = "Interrupted from the keyboard".to_owned();
        // Without a running task nobody listens.
        let _ = stop.send(Some(StopReason::Shutdown { message }));
    }
}

/// The tasks, each after the tasks upstream of it, otherwise in the order of the file.
fn in_order<'a>(dag: &'a Dag, only: Option<&str>) -> Vec<&'a Task> {
    if let Some(only) = only {
        return dag
            .tasks
            .iter()
            .filter(|task| task.task_id == only)
            .collect();
    }
    let mut ordered: Vec<&Task> = Vec::new();
    let mut waiting: Vec<&Task> = dag.tasks.iter().collect();
    let all: BTreeMap<&str, ()> = dag
        .tasks
        .iter()
        .map(|task| (task.task_id.as_str(), ()))
        .collect();
    while !waiting.is_empty() {
        let ready = waiting.iter().position(|task| {
            task.upstream_task_ids.iter().all(|id| {
                !all.contains_key(id.as_str()) || ordered.iter().any(|before| before.task_id == *id)
            })
        });
        // The interpreter refuses Dags with cycles, so one is always ready.
        let Some(ready) = ready else { break };
        ordered.push(waiting.remove(ready));
    }
    ordered
}

/// What a task's log says, for the report.
#[derive(Default)]
struct Records {
    log: Vec<Value>,
    error: Option<String>,
}

impl Records {
    fn take(&mut self) -> (Vec<Value>, Option<String>) {
        (std::mem::take(&mut self.log), self.error.take())
    }
}

struct Sink {
    records: Arc<Mutex<Records>>,
    display: Arc<Display>,
}

impl LogSink for Sink {
    fn write(&mut self, record: &Map<String, Value>) {
        self.display.record(record);
        if record.get("logger").and_then(Value::as_str) == Some(events::TARGET) {
            return;
        }
        let mut records = self.records.lock().unwrap_or_else(PoisonError::into_inner);
        let error = record
            .get("level")
            .and_then(Value::as_str)
            .is_some_and(|level| level == "error" || level == "critical");
        if let Some(detail) = record
            .get("error_detail")
            .and_then(Value::as_array)
            .and_then(|list| list.first())
        {
            let text = |key: &str| {
                detail
                    .get(key)
                    .and_then(Value::as_str)
                    .unwrap_or_default()
                    .to_owned()
            };
            records.error = Some(match (text("exc_type"), text("exc_value")) {
                (class, value) if value.is_empty() => class,
                (class, value) => format!("{class}: {value}"),
            });
        } else if error && records.error.is_none() {
            records.error = record
                .get("event")
                .and_then(Value::as_str)
                .map(ToOwned::to_owned);
        }
        records.log.push(Value::Object(record.clone()));
    }
}
