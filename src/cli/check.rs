//! `updraft check`: what of a Dag folder runs natively, and what it needs.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Context;
use serde::Serialize;
use serde_json::Value;

use super::dag_files::{self, CurrentTask, Place};
use crate::airflow::config::{Config, Environment};
use crate::control_plane::ControlPlane;
use crate::control_plane::local::LocalControlPlane;
use crate::control_plane::resolve::Resolver;
use crate::dag::Interpreter;
use crate::dag::definitions::{
    Argument, Dag, DataSourceSpec, LlmQuestion, QuestionKind, SkillSourceSpec, Task, TaskKind,
    ToolsetSpec,
};
use crate::secrets::{Masker, SearchPath, environment};
use crate::task::support;

/// Say for every Dag file which tasks run natively, which do not and why, and which connections each needs.
///
/// Exit status 1 when a file can't be loaded, or when a task of the queue given with --queue can't run.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// A Dag file, or a folder that is searched for Dag files.
    path: PathBuf,
    /// The queue that Updraft serves: its tasks must run.
    #[arg(long, value_name = "NAME")]
    queue: Option<String>,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Serialize)]
struct Report {
    /// False when the exit status is 1.
    ok: bool,
    files: Vec<FileReport>,
}

#[derive(Debug, Serialize)]
pub(super) struct FileReport {
    pub(super) file: String,
    /// Why the file can't be loaded.
    pub(super) error: Option<String>,
    /// Imported modules that are not there: whatever needs them fails when it is run.
    pub(super) unavailable_modules: Vec<String>,
    pub(super) dags: Vec<DagReport>,
}

impl FileReport {
    fn has_task_of(&self, queue: &str) -> bool {
        self.dags
            .iter()
            .flat_map(|dag| &dag.tasks)
            .any(|task| task.queue.as_deref() == Some(queue))
    }
}

#[derive(Debug, Serialize)]
pub(super) struct DagReport {
    pub(super) dag_id: String,
    pub(super) tasks: Vec<TaskReport>,
}

#[derive(Debug, Serialize)]
pub(super) struct TaskReport {
    pub(super) task_id: String,
    pub(super) operator: String,
    pub(super) module: String,
    /// `file:line`.
    pub(super) location: String,
    pub(super) queue: Option<String>,
    pub(super) mapped: bool,
    pub(super) native: bool,
    /// Why it does not run natively.
    pub(super) reason: Option<String>,
    /// Settings that only a Python worker acts on.
    pub(super) ignored: Vec<String>,
    pub(super) connections: Vec<ConnectionReport>,
}

#[derive(Debug, PartialEq, Eq, Serialize)]
pub(super) struct ConnectionReport {
    /// As written: it may be a template.
    conn_id: String,
    /// Which argument it stands in.
    used_as: &'static str,
    /// `environment`, `file` (beside the Dag file), or null: then Airflow must define it. Null for a template as well.
    defined_by: Option<&'static str>,
    templated: bool,
}

/// Checks the files.
pub fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    let files = check_files(&arguments.path, &Arc::new(Config::from_env()))?;
    let hindered = |task: &TaskReport| {
        !task.native && arguments.queue.is_some() && task.queue == arguments.queue
    };
    let ok = files.iter().all(|file| {
        file.error.is_none() && !file.dags.iter().flat_map(|dag| &dag.tasks).any(hindered)
    });
    if let Some(queue) = &arguments.queue
        && !files.iter().any(|file| file.has_task_of(queue))
    {
        eprintln!(
            "note: no task names the queue {queue:?}; a queue that a cluster policy sets is not in the Dag files"
        );
    }
    let report = Report { ok, files };
    if arguments.json {
        outln!("{}", serde_json::to_string(&report)?);
    } else {
        print(&report);
    }
    Ok(if ok {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// Reads a Dag file, or those of a folder, and says of each what runs natively.
///
/// # Errors
/// There is no Dag file, or the worker's configuration can't be read. A file that can't be loaded is a report.
pub(super) fn check_files(path: &Path, config: &Arc<Config>) -> anyhow::Result<Vec<FileReport>> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("the asynchronous runtime could not be started")?;
    let masker = Masker::from_config(config)?;
    // Here it may differ from the worker's, and Dag files rarely ask for anything while they are read.
    let search_path = SearchPath::from_config(config).unwrap_or_else(|error| {
        eprintln!("warning: {error}");
        SearchPath::of_environment(config.environment().clone())
    });
    let mut files = Vec::new();
    for file in dag_files_under(path)? {
        let checked = check_file(&file, config, &search_path, &masker, runtime.handle());
        files.push(checked.unwrap_or_else(|error| FileReport {
            file: file.display().to_string(),
            error: Some(format!("{error:#}")),
            unavailable_modules: Vec::new(),
            dags: Vec::new(),
        }));
    }
    runtime.shutdown_background();
    anyhow::ensure!(
        !files.is_empty(),
        "there is no Dag file under {}",
        path.display()
    );
    Ok(files)
}

/// The Dag files of a folder are those that Airflow's safe mode takes for some: they mention a Dag and Airflow. A file
/// that can't be read is among them, so that its report says so.
fn dag_files_under(path: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let metadata =
        std::fs::metadata(path).with_context(|| format!("{} can't be read", path.display()))?;
    if metadata.is_file() {
        return Ok(vec![path.to_owned()]);
    }
    let mut found = Vec::new();
    let mut folders = vec![path.to_owned()];
    // A link may lead back to a folder above it.
    let mut seen = HashSet::new();
    while let Some(folder) = folders.pop() {
        let real = folder.canonicalize();
        let entries = real.and_then(|real| match seen.insert(real) {
            true => std::fs::read_dir(&folder).map(Some),
            false => Ok(None),
        });
        let entries = entries.with_context(|| format!("{} can't be read", folder.display()))?;
        for entry in entries.into_iter().flatten() {
            let path = entry?.path();
            let name = path
                .file_name()
                .and_then(|name| name.to_str())
                .unwrap_or_default();
            if name.starts_with('.') || name == "__pycache__" {
                continue;
            }
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "py")
                && std::fs::read(&path).map_or(true, |text| mentions_a_dag(&text))
            {
                found.push(path);
            }
        }
    }
    found.sort();
    Ok(found)
}

fn mentions_a_dag(text: &[u8]) -> bool {
    let text = String::from_utf8_lossy(text).to_lowercase();
    text.contains("dag") && text.contains("airflow")
}

fn check_file(
    path: &Path,
    config: &Arc<Config>,
    search_path: &SearchPath,
    masker: &Masker,
    runtime: &tokio::runtime::Handle,
) -> anyhow::Result<FileReport> {
    let place = Place::of(path, config)?;
    let shown = path.display().to_string();
    let plane = dag_files::control_plane(&place)?;
    let resolver = Resolver::new(
        search_path.clone(),
        Arc::clone(&plane) as Arc<dyn ControlPlane>,
        masker.clone(),
    );
    Ok(
        match dag_files::load(&place, config, &resolver, runtime, &CurrentTask::default()) {
            Ok((file, interpreter)) => {
                let missing = |dag: &Dag, task: &Task| {
                    runtime.block_on(missing_in_bodies(&interpreter, dag, task))
                };
                FileReport {
                    file: shown,
                    error: None,
                    unavailable_modules: file.unavailable_modules,
                    dags: file
                        .dags
                        .iter()
                        .map(|dag| check_dag(dag, config.environment(), &plane, &missing))
                        .collect(),
                }
            }
            Err(error) => FileReport {
                file: shown,
                error: Some(error.to_string()),
                unavailable_modules: Vec::new(),
                dags: Vec::new(),
            },
        },
    )
}

/// What the functions of a task need that is not here, as one sentence; `None` when nothing is seen to be missing.
async fn missing_in_bodies(interpreter: &Interpreter, dag: &Dag, task: &Task) -> Option<String> {
    let request = serde_json::json!({"dag_id": dag.dag_id, "task_id": task.task_id});
    let missing = match interpreter.step("needs", &request).await {
        Ok(missing) => missing,
        Err(error) => {
            eprintln!(
                "warning: what the functions of task {} need could not be seen: {error}",
                task.task_id
            );
            return None;
        }
    };
    let parts: Vec<String> = missing
        .as_array()?
        .iter()
        .map(|item| {
            let text = |name: &str| item.get(name).and_then(Value::as_str).unwrap_or_default();
            let line = item.get("line").and_then(Value::as_u64).unwrap_or_default();
            format!("{} ({}:{line})", text("what"), text("file"))
        })
        .collect();
    (!parts.is_empty()).then(|| format!("its code needs {}", parts.join("; ")))
}

fn check_dag(
    dag: &Dag,
    environment: &Environment,
    plane: &LocalControlPlane,
    missing: &dyn Fn(&Dag, &Task) -> Option<String>,
) -> DagReport {
    let tasks = dag.tasks.iter().map(|task| {
        let reason = support::obstacle(task).or_else(|| missing(dag, task));
        TaskReport {
            task_id: task.task_id.clone(),
            operator: task.operator.clone(),
            module: task.module.clone(),
            location: task.location.to_string(),
            queue: task.queue.clone(),
            mapped: !task.expansions.is_empty(),
            native: reason.is_none(),
            reason,
            ignored: task.ignored.clone(),
            connections: connections(task, environment, plane),
        }
    });
    DagReport {
        dag_id: dag.dag_id.clone(),
        tasks: tasks.collect(),
    }
}

/// An argument with the id of a connection, when it is written out.
fn literal<'a>(used_as: &'static str, argument: &'a Argument) -> Option<(&'static str, &'a str)> {
    match argument {
        Argument::String(conn_id) => Some((used_as, conn_id)),
        _ => None,
    }
}

fn toolset_connections<'a>(toolset: &'a ToolsetSpec, named: &mut Vec<(&'static str, &'a str)>) {
    match toolset {
        ToolsetSpec::Sql(sql) => named.extend(literal("db_conn_id", &sql.db_conn_id)),
        ToolsetSpec::DataFusion(datafusion) => {
            for source in &datafusion.datasource_configs {
                if let Some(conn_id) = source
                    .conn_id
                    .as_deref()
                    .filter(|_| source.uses_connection())
                {
                    named.push(("conn_id", conn_id));
                }
            }
        }
        ToolsetSpec::Mcp(mcp) => named.extend(literal("mcp_conn_id", &mcp.mcp_conn_id)),
        ToolsetSpec::ObjectStorage(storage) => {
            let in_path = connection_in_path(&storage.path);
            match (literal("conn_id", &storage.conn_id), in_path) {
                (Some(conn_id), _) => named.push(conn_id),
                (None, Some(conn_id)) => named.push(("path", conn_id)),
                (None, None) => {}
            }
        }
        ToolsetSpec::Skills(skills) => {
            for source in &skills.sources {
                if let SkillSourceSpec::Git {
                    conn_id: Some(conn_id),
                    ..
                } = source
                {
                    named.push(("conn_id", conn_id));
                }
            }
        }
        _ => {
            if let ToolsetSpec::Python { templated, .. } = toolset {
                // Of a hook.
                named.extend(
                    templated
                        .iter()
                        .filter(|(name, _)| name == "conn_id")
                        .filter_map(|(_, value)| literal("conn_id", value)),
                );
            }
            for inner in toolset.inner() {
                toolset_connections(inner, named);
            }
        }
    }
}

/// The connection that a path names: `s3://conn_id@bucket/folder`.
fn connection_in_path(path: &Argument) -> Option<&str> {
    let Argument::String(path) = path else {
        return None;
    };
    let (_, rest) = path.split_once("://")?;
    let (conn_id, _) = rest.split('/').next()?.rsplit_once('@')?;
    Some(conn_id)
}

fn question_connections<'a>(question: &'a LlmQuestion, named: &mut Vec<(&'static str, &'a str)>) {
    let field = |name: &str| question.field(name).unwrap_or(&Argument::Null);
    named.extend(literal("db_conn_id", field("db_conn_id")));
    if let Argument::List(items) | Argument::Tuple(items) = field("db_conn_ids") {
        named.extend(items.iter().filter_map(|item| literal("db_conn_ids", item)));
    }
    match (
        literal("file_conn_id", field("file_conn_id")),
        connection_in_path(field("file_path")),
    ) {
        (Some(conn_id), _) => named.push(conn_id),
        (None, Some(conn_id)) => named.push(("file_path", conn_id)),
        (None, None) => {}
    }
    let sources: &[DataSourceSpec] = match &question.kind {
        QuestionKind::Sql(sql) => sql.datasource_config.as_slice(),
        QuestionKind::SchemaCompare(compared) => &compared.data_sources,
        _ => &[],
    };
    // A source without files is a table of its connection's database.
    let used = sources
        .iter()
        .filter(|source| source.uses_connection() || source.uri.is_empty());
    named.extend(used.filter_map(|source| Some(("conn_id", source.conn_id.as_deref()?))));
}

/// The connections that stand literally in an agent's arguments, in their order, each once.
fn connections(
    task: &Task,
    environment: &Environment,
    plane: &LocalControlPlane,
) -> Vec<ConnectionReport> {
    let TaskKind::Agent(agent) = &task.kind else {
        return Vec::new();
    };
    let mut named = Vec::new();
    named.extend(literal("llm_conn_id", &agent.llm_conn_id));
    if let Argument::List(items) | Argument::Tuple(items) = &agent.fallback_conn_ids {
        named.extend(
            items
                .iter()
                .filter_map(|item| literal("fallback_conn_ids", item)),
        );
    }
    for toolset in &agent.toolsets {
        toolset_connections(toolset, &mut named);
    }
    if let Some(question) = &agent.llm {
        question_connections(question, &mut named);
    }
    let mut reports: Vec<ConnectionReport> = Vec::new();
    for (used_as, conn_id) in named {
        if reports
            .iter()
            .any(|report| report.conn_id == *conn_id && report.used_as == used_as)
        {
            continue;
        }
        let templated = conn_id.contains("{{") || conn_id.contains("{%");
        let defined_by = match environment::connection(environment, conn_id) {
            _ if templated => None,
            // A malformed one is defined, and says so itself when it is used.
            Ok(Some(_)) | Err(_) => Some("environment"),
            Ok(None) if plane.has_connection(conn_id) => Some("file"),
            Ok(None) => None,
        };
        reports.push(ConnectionReport {
            conn_id: conn_id.to_owned(),
            used_as,
            defined_by,
            templated,
        });
    }
    reports
}

fn print(report: &Report) {
    let (mut native, mut other, mut broken) = (0, 0, 0);
    for file in &report.files {
        outln!("{}", file.file);
        if let Some(error) = &file.error {
            broken += 1;
            outln!("  can't be loaded: {error}");
        } else if file.dags.is_empty() {
            outln!("  makes no Dag");
        }
        if !file.unavailable_modules.is_empty() {
            outln!(
                "  modules that are not here: {}",
                file.unavailable_modules.join(", ")
            );
        }
        for dag in &file.dags {
            outln!("  Dag {}", dag.dag_id);
            for task in &dag.tasks {
                let queue = task
                    .queue
                    .as_deref()
                    .map(|queue| format!(", queue {queue}"))
                    .unwrap_or_default();
                let mapped = if task.mapped { ", mapped" } else { "" };
                let word = if task.native { "native" } else { "not native" };
                outln!(
                    "    {} {} ({}{mapped}{queue})",
                    word,
                    task.task_id,
                    task.operator
                );
                if let Some(reason) = &task.reason {
                    outln!(
                        "      {}: {} ({})",
                        task.location,
                        reason.trim_end_matches('.'),
                        task.module
                    );
                    other += 1;
                } else {
                    native += 1;
                }
                if task.native && !task.ignored.is_empty() {
                    outln!(
                        "      only a Python worker acts on its {}",
                        task.ignored.join(", ")
                    );
                }
                for connection in &task.connections {
                    let defined = match (connection.templated, connection.defined_by) {
                        (true, _) => "known only when the task runs",
                        (_, Some("file")) => "defined beside the Dag file (for local runs)",
                        (_, Some(_)) => "defined in the environment",
                        (_, None) => "not in the environment: Airflow must define it",
                    };
                    outln!(
                        "      {} {}: {defined}",
                        connection.used_as,
                        connection.conn_id
                    );
                }
            }
        }
    }
    let broken = if broken > 0 {
        format!(", {broken} files can't be loaded")
    } else {
        String::new()
    };
    outln!("\n{native} tasks run natively, {other} do not{broken}");
}
