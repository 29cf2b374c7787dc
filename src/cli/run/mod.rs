//! `updraft run`: the tasks of a Dag, here and now.
//!
//! Every task runs in a process of its own under the supervisor, as on a worker; the control plane is in memory. Beside
//! the Dag file may lie `<stem>.connections.json`, `<stem>.variables.json`, `<stem>.transcript.json` and
//! `<stem>.task_state.json` (see `dag_files`); environment variables win over them.

mod dag_run;
mod display;
mod trigger_rules;

use std::fs::File;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Context;
use chrono::{DateTime, NaiveDate, NaiveDateTime, SecondsFormat, Utc};
use serde_json::{Map, Value, json};

use self::dag_run::{DagRunner, Exchange, Only};
use self::display::Display;
use super::dag_files::{self, CurrentTask, Place};
use crate::airflow::config::Config;
use crate::airflow::error_chain::error_chain;
use crate::control_plane::ControlPlane;
use crate::control_plane::resolve::Resolver;
use crate::dag::definitions::{Dag, DagFile};
use crate::secrets::{Masker, SearchPath};

/// Run a Dag's tasks here and now, in the order of their dependencies: no Airflow, no network, no key needed.
///
/// A failed task with retries left is run again at once. With the model's connection undefined, the transcript beside
/// the Dag file (<name>.transcript.json) answers; connections may stand in <name>.connections.json.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// The Dag file.
    dag_file: PathBuf,
    /// Run this task alone, without the tasks before and after it; of a mapped task, `task[3]` runs one instance.
    task_id: Option<String>,
    /// Which Dag, when the file makes several.
    #[arg(long, value_name = "ID")]
    dag_id: Option<String>,
    /// The run's logical date: ISO 8601, UTC unless it says otherwise. Now by default.
    #[arg(long, value_name = "DATE", value_parser = logical_date)]
    logical_date: Option<DateTime<Utc>>,
    /// The run's conf: a JSON object. Its values go over the Dag's params.
    #[arg(long, value_name = "JSON", value_parser = conf)]
    conf: Option<Conf>,
    /// Print one JSON object with states, XComs, errors and logs instead of a report.
    #[arg(long)]
    json: bool,
    /// Write what the models are asked and answer to FILE: JSON lines, known secrets masked. FILE is written anew.
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,
    /// Let FILE answer in the models' place: no network to them, no key. A task whose agent asks otherwise than
    /// recorded fails and says where.
    #[arg(long, value_name = "FILE", conflicts_with = "record")]
    replay: Option<PathBuf>,
    /// Show every line of the task logs.
    #[arg(long, short, conflicts_with = "json")]
    verbose: bool,
}

#[derive(Clone, Debug)]
struct Conf(Map<String, Value>);

fn conf(text: &str) -> Result<Conf, String> {
    match serde_json::from_str(text) {
        Ok(Value::Object(map)) => Ok(Conf(map)),
        Ok(_) => Err("not a JSON object".to_owned()),
        Err(error) => Err(format!("not JSON: {error}")),
    }
}

fn logical_date(text: &str) -> Result<DateTime<Utc>, String> {
    if let Ok(at) = DateTime::parse_from_rfc3339(text) {
        return Ok(at.to_utc());
    }
    text.parse::<NaiveDateTime>()
        .ok()
        .or_else(|| {
            text.parse::<NaiveDate>()
                .ok()
                .map(|day| day.and_time(chrono::NaiveTime::MIN))
        })
        .map(|at| at.and_utc())
        .ok_or_else(|| "neither 2026-01-31 nor 2026-01-31T12:00:00Z".to_owned())
}

impl Only {
    /// By its id, with `[map index]` after it or without.
    fn find(text: &str, dag: &Dag) -> Result<Self, WrongUsage> {
        let has = |task_id: &str| dag.tasks.iter().any(|task| task.task_id == task_id);
        let indexed = text
            .strip_suffix(']')
            .and_then(|text| text.split_once('['))
            .and_then(|(task_id, index)| Some((task_id, index.parse().ok()?)))
            .filter(|(task_id, _)| has(task_id));
        if let Some((task_id, map_index)) = indexed {
            return Ok(Self {
                task_id: task_id.to_owned(),
                map_index: Some(map_index),
            });
        }
        if has(text) {
            return Ok(Self {
                task_id: text.to_owned(),
                map_index: None,
            });
        }
        let known: Vec<_> = dag.tasks.iter().map(|task| task.task_id.as_str()).collect();
        Err(WrongUsage::UnknownTask {
            dag_id: dag.dag_id.clone(),
            task_id: text.to_owned(),
            known: known.join(", "),
        })
    }
}

/// What can't be: told like wrong usage, with exit status 2.
#[derive(Debug, thiserror::Error)]
enum WrongUsage {
    #[error("{file} makes no Dag")]
    NoDag { file: String },
    #[error("{file} makes several Dags: choose one with --dag-id ({known})")]
    SeveralDags { file: String, known: String },
    #[error("{file} has no Dag {dag_id}, it has {known}")]
    UnknownDag {
        file: String,
        dag_id: String,
        known: String,
    },
    #[error("Dag {dag_id} has no task {task_id}, it has {known}")]
    UnknownTask {
        dag_id: String,
        task_id: String,
        known: String,
    },
}

/// Runs the Dag.
pub fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .context("the asynchronous runtime could not be started")?;
    let json = arguments.json;
    let outcome = start(arguments, &runtime);
    runtime.shutdown_background();
    match outcome {
        Ok(code) => Ok(code),
        Err(error) if error.is::<WrongUsage>() => {
            super::say_wrong_usage(&error.to_string(), json);
            Ok(ExitCode::from(2))
        }
        Err(error) if json => {
            let failed = json!({"dag_id": null, "run_id": null, "state": "failed", "tasks": [],
                "error": error_chain(&*error)});
            outln!("{failed}");
            Ok(ExitCode::FAILURE)
        }
        Err(error) => Err(error),
    }
}

fn start(arguments: Arguments, runtime: &tokio::runtime::Runtime) -> anyhow::Result<ExitCode> {
    let config = Arc::new(Config::from_env());
    let place = Place::of(&arguments.dag_file, &config)?;
    let plane = dag_files::control_plane(&place)?;
    let masker = Masker::from_config(&config)?;
    let search_path = SearchPath::from_config(&config)?;
    let resolver = Resolver::new(
        search_path.clone(),
        Arc::clone(&plane) as Arc<dyn ControlPlane>,
        masker.clone(),
    );
    let current = CurrentTask::default();
    let (file, interpreter) =
        dag_files::load(&place, &config, &resolver, runtime.handle(), &current)?;
    let dag = choose(file, &arguments)?;
    let only = match arguments.task_id {
        Some(text) => Some(Only::find(&text, &dag)?),
        None => None,
    };
    let exchange = exchange(arguments.record, arguments.replay)?;
    let at = arguments.logical_date.unwrap_or_else(Utc::now);
    let runner = DagRunner {
        dag,
        exchange,
        only,
        logical_date: at.to_rfc3339_opts(SecondsFormat::Micros, true),
        run_id: format!(
            "manual__{}",
            at.to_rfc3339_opts(SecondsFormat::Micros, false)
        ),
        conf: arguments.conf.map(|Conf(conf)| conf),
        task_state: dag_files::task_state(&place)?,
        place,
        plane,
        config,
        masker,
        search_path,
        interpreter: Arc::new(interpreter),
        current,
        display: Arc::new(if arguments.json {
            Display::silent()
        } else {
            Display::new(arguments.verbose)
        }),
    };
    let report = runtime.block_on(runner.run())?;
    if arguments.json {
        outln!("{}", report.to_json());
    }
    Ok(report.exit_code())
}

/// Task processes may have another working folder, so they get absolute paths.
fn exchange(record: Option<PathBuf>, replay: Option<PathBuf>) -> anyhow::Result<Option<Exchange>> {
    if let Some(path) = record {
        let shown = path.display();
        File::create(&path).with_context(|| format!("{shown} can't be written"))?;
        let path = path.canonicalize();
        return Ok(Some(Exchange::Record(path?)));
    }
    let Some(path) = replay else { return Ok(None) };
    let found = path
        .canonicalize()
        .with_context(|| format!("the recording {} can't be opened", path.display()))?;
    Ok(Some(Exchange::Replay(found)))
}

fn choose(file: DagFile, arguments: &Arguments) -> Result<Dag, WrongUsage> {
    let path = arguments.dag_file.display().to_string();
    let known = file
        .dags
        .iter()
        .map(|dag| dag.dag_id.as_str())
        .collect::<Vec<_>>()
        .join(", ");
    let mut dags = file.dags;
    match &arguments.dag_id {
        Some(dag_id) => dags
            .into_iter()
            .find(|dag| dag.dag_id == *dag_id)
            .ok_or_else(|| WrongUsage::UnknownDag {
                file: path,
                dag_id: dag_id.clone(),
                known: if known.is_empty() {
                    "none".to_owned()
                } else {
                    known
                },
            }),
        None if dags.len() > 1 => Err(WrongUsage::SeveralDags { file: path, known }),
        None => dags.pop().ok_or(WrongUsage::NoDag { file: path }),
    }
}
