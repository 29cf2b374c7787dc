//! Toolsets that are no task's: a file names them, and `updraft mcp serve` offers them to other programs.
//!
//! The file's data goes through the interpreter's own classes, so that arguments mean here what they mean in a Dag file,
//! and whatever a Dag's agent can use can be served.

use std::collections::HashSet;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};

use serde_json::{Value, json};
use tokio::runtime::Handle;

use super::loggers;
use super::native_hooks;
use super::native_toolsets::NativeToolsets;
use super::python_toolset::PythonSide;
use super::services::Services;
use super::toolsets::{Builder, DagCode};
use crate::agent::{ToolDefinition, ToolError, Toolset};
use crate::airflow::config::Config;
use crate::airflow::execution::TaskInstance;
use crate::airflow::python_text::repr_str;
use crate::airflow::yaml;
use crate::control_plane::ControlPlane;
use crate::control_plane::local::LocalControlPlane;
use crate::control_plane::resolve::Resolver;
use crate::dag::definitions::{TaskKind, ToolsetSpec};
use crate::dag::host::{Host, HostError, LogRecord, XComQuery};
use crate::dag::{Interpreter, LoadError, LoadOptions};
use crate::secrets::{Masker, SearchPath};
use crate::toolset::filtered::FilteredToolset;
use crate::toolset::logging::LoggingToolset;
use crate::toolset::masking::MaskingToolset;

/// Toolsets of a file, each with its tools logged and its results masked.
pub struct Served {
    /// The name that the file gives.
    pub name: Option<String>,
    /// What the file tells whoever uses the tools.
    pub instructions: Option<String>,
    pub toolsets: Vec<Arc<dyn Toolset>>,
    /// The tools that each entry of the file is restricted to.
    only: Vec<Option<Vec<String>>>,
    path: PathBuf,
}

/// Why toolsets can't be served.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServedError {
    /// The file can't be read.
    #[error("{} can't be read: {source}", path.display())]
    Read {
        path: PathBuf,
        #[source]
        source: std::io::Error,
    },
    /// Not YAML.
    #[error("{} is no YAML: {source}", path.display())]
    Yaml {
        path: PathBuf,
        #[source]
        source: yaml::YamlError,
    },
    /// The file says something that can't be.
    #[error("{}: {reason}", path.display())]
    Wrong { path: PathBuf, reason: String },
    /// The interpreter failed at something other than the file.
    #[error("the toolsets of {} can't be made: {source}", path.display())]
    Load {
        path: PathBuf,
        #[source]
        source: Box<LoadError>,
    },
}

/// Reads the file and makes its toolsets; they are not opened yet. Blocks; not to be called on a thread of the runtime.
///
/// # Errors
/// See [`ServedError`].
pub fn load(
    path: &Path,
    config: &Arc<Config>,
    search_path: SearchPath,
    masker: &Masker,
    runtime: &Handle,
) -> Result<Served, ServedError> {
    let wrong = |reason: String| ServedError::Wrong {
        path: path.to_owned(),
        reason,
    };
    let unreadable = |source| ServedError::Read {
        path: path.to_owned(),
        source,
    };
    let text = std::fs::read_to_string(path).map_err(unreadable)?;
    let file = yaml::load(&text).map_err(|source| ServedError::Yaml {
        path: path.to_owned(),
        source,
    })?;
    let folder = path.canonicalize().map_err(unreadable)?;
    let folder = folder.parent().map(Path::to_owned).unwrap_or_default();

    let plane: Arc<dyn ControlPlane> = Arc::new(LocalControlPlane::new());
    let resolver = Resolver::new(search_path, Arc::clone(&plane), masker.clone());
    let host = Arc::new(ServedHost {
        services: {
            let _runtime = runtime.enter();
            Services::new(plane, Arc::clone(config), resolver, Arc::new(nobody()))
        },
        native: Arc::default(),
    });
    let (specs, interpreter) = specs(path, &file, &folder, &host)?;
    let needs_interpreter = specs.iter().any(ToolsetSpec::needs_interpreter);
    let dag_code = if needs_interpreter {
        DagCode::Runs(PythonSide {
            interpreter: Arc::new(interpreter),
            context: Arc::new(Value::Null),
            run_id: String::new(),
            max_retries: 1,
            files: Arc::clone(&host.native.files),
        })
    } else {
        DagCode::Gone
    };
    let builder = Builder {
        services: host.services.clone(),
        dag_folder: folder,
        search: Arc::default(),
        dag_code,
        recording: false,
        attempt: Weak::new(),
    };
    if needs_interpreter {
        let builder = builder.for_dag_code(&host.native);
        host.native.serve(Arc::new(move |spec| {
            builder.toolset(spec).map_err(|failure| failure.message)
        }));
    }
    let text = |key: &str| file.get(key).and_then(Value::as_str).map(str::to_owned);
    let toolsets = specs
        .iter()
        .map(|spec| {
            let made = builder
                .toolset(spec)
                .map_err(|failure| wrong(failure.message))?;
            let masked = MaskingToolset::new(made, masker.clone());
            Ok(Arc::new(LoggingToolset::new(Arc::new(masked), loggers::TOOLS)) as Arc<dyn Toolset>)
        })
        .collect::<Result<_, ServedError>>()?;
    let entries = file.get("toolsets").and_then(Value::as_array);
    let only = entries.into_iter().flatten().map(|entry| {
        let tools = entry.get("tools")?.as_array()?;
        Some(
            tools
                .iter()
                .filter_map(Value::as_str)
                .map(str::to_owned)
                .collect(),
        )
    });
    Ok(Served {
        name: text("name"),
        instructions: text("instructions"),
        toolsets,
        only: only.collect(),
        path: path.to_owned(),
    })
}

impl Served {
    /// Opens the toolsets and restricts them to the tools that the file lists. On an error those that are open are
    /// closed again.
    ///
    /// # Errors
    /// A toolset does not open, lists no such tool, or two offer tools of one name.
    pub async fn open(mut self) -> Result<Self, ServedError> {
        let opened = self.open_all().await;
        if let Err(reason) = opened {
            self.close().await;
            return Err(ServedError::Wrong {
                path: self.path,
                reason,
            });
        }
        Ok(self)
    }

    async fn open_all(&mut self) -> Result<(), String> {
        let mut seen = HashSet::new();
        let mut twice = Vec::new();
        for (index, toolset) in self.toolsets.iter_mut().enumerate() {
            let failed = |error: ToolError| format!("toolsets[{index}]: {error}");
            toolset.open().await.map_err(failed)?;
            if let Some(Some(only)) = self.only.get(index) {
                let has = toolset.tools().await.map_err(failed)?;
                let has: Vec<&str> = has.iter().map(|tool| tool.name.as_str()).collect();
                if let Some(missing) = only.iter().find(|name| !has.contains(&name.as_str())) {
                    return Err(format!(
                        "toolsets[{index}].tools lists {}, and the toolset has {}",
                        repr_str(missing),
                        has.join(", ")
                    ));
                }
                let only: HashSet<String> = only.iter().cloned().collect();
                let keeps = move |tool: &ToolDefinition| only.contains(&tool.name);
                *toolset = Arc::new(FilteredToolset::new(Arc::clone(toolset), Arc::new(keeps)));
            }
            for tool in toolset.tools().await.map_err(failed)? {
                if !seen.insert(tool.name.clone()) {
                    twice.push(tool.name);
                }
            }
        }
        if twice.is_empty() {
            return Ok(());
        }
        twice.sort();
        Err(format!(
            "More than one tool is named {}. Give the toolsets different prefix values, so that each of them can be \
             called.",
            twice.join(", ")
        ))
    }

    /// Closes the toolsets.
    pub async fn close(&self) {
        futures::future::join_all(self.toolsets.iter().map(|toolset| toolset.close())).await;
    }
}

/// Has the interpreter make the toolsets, as if an agent had them.
fn specs(
    path: &Path,
    file: &Value,
    folder: &Path,
    host: &Arc<ServedHost>,
) -> Result<(Vec<ToolsetSpec>, Interpreter), ServedError> {
    let failed = |source: std::io::Error| ServedError::Read {
        path: std::env::temp_dir(),
        source,
    };
    let mut module = tempfile::Builder::new()
        .prefix("toolsets_")
        .suffix(".py")
        .tempfile()
        .map_err(failed)?;
    // JSON's escapes are Python's.
    write!(
        module,
        "from airflow.sdk import DAG\n\
         from airflow.providers.common.ai.operators.agent import AgentOperator\n\
         from updraft_serve import toolsets\n\
         from updraft_values import from_json\n\n\
         with DAG(dag_id=\"served\"):\n    \
         AgentOperator(task_id=\"served\", prompt=\"-\", llm_conn_id=\"-\", toolsets=toolsets(from_json({})))\n",
        json!(file.to_string())
    )
    .and_then(|()| module.flush())
    .map_err(failed)?;
    let options = LoadOptions::new(folder);
    let loaded = Interpreter::load(module.path(), options, Arc::clone(host) as Arc<dyn Host>);
    let (dags, interpreter) = loaded.map_err(|error| match error {
        LoadError::Exception { error, .. } if error.class == "ValueError" => ServedError::Wrong {
            path: path.to_owned(),
            reason: error.message,
        },
        source => ServedError::Load {
            path: path.to_owned(),
            source: Box::new(source),
        },
    })?;
    let task = dags.dags.into_iter().flat_map(|dag| dag.tasks).next();
    let specs = match task.map(|task| task.kind) {
        Some(TaskKind::Agent(agent)) => agent.toolsets,
        other => {
            let reason = match other {
                Some(TaskKind::Unsupported { reason }) => reason,
                _ => "the interpreter made no agent of it, which is a fault of Updraft".to_owned(),
            };
            return Err(ServedError::Wrong {
                path: path.to_owned(),
                reason,
            });
        }
    };
    Ok((specs, interpreter))
}

/// Services speak for a task instance, and here there is none.
fn nobody() -> TaskInstance {
    TaskInstance {
        id: String::new(),
        task_id: "served".to_owned(),
        dag_id: "served".to_owned(),
        run_id: String::new(),
        try_number: 1,
        dag_version_id: None,
        map_index: -1,
        hostname: None,
        context_carrier: None,
        queue: None,
    }
}

/// The interpreter's view of the world where no task runs.
struct ServedHost {
    services: Services,
    native: Arc<NativeToolsets>,
}

fn no_task(what: &str) -> HostError {
    HostError::Other(format!("{what}: there is no task here"))
}

impl Host for ServedHost {
    fn connection(&self, conn_id: &str) -> Result<Value, HostError> {
        let connection = self.services.connection(conn_id)?;
        serde_json::to_value(connection).map_err(|error| HostError::Other(error.to_string()))
    }

    fn variable(&self, key: &str) -> Result<Option<String>, HostError> {
        Ok(self.services.variable(key)?)
    }

    fn set_variable(&self, key: &str, _: Option<&str>, _: Option<&str>) -> Result<(), HostError> {
        Err(no_task(&format!("variable {key} can't be set")))
    }

    fn xcom_pull(&self, _: XComQuery) -> Result<Value, HostError> {
        Err(no_task("no XCom can be pulled"))
    }

    fn xcom_push(&self, key: &str, _: Value) -> Result<(), HostError> {
        Err(no_task(&format!("XCom {key} can't be pushed")))
    }

    fn config(&self, section: &str, key: &str) -> Option<String> {
        self.services.config.get(section, key).ok().flatten()
    }

    fn mask_secret(&self, value: &Value, name: Option<&str>) {
        self.services.resolver.masker().add_value(value, name);
    }

    fn mask(&self, text: &str) -> String {
        self.services.resolver.masker().mask_str(text).into_owned()
    }

    fn toolset(&self, request: &Value) -> Result<Value, HostError> {
        Ok(self
            .services
            .runtime()
            .block_on(self.native.answer(request)))
    }

    fn hook(&self, request: &Value) -> Result<Value, HostError> {
        self.services
            .runtime()
            .block_on(native_hooks::answer(
                &self.services,
                request,
                &self.services.stop_token(),
            ))
            .map_err(|text| HostError::Other(self.mask(&text)))
    }

    fn log(&self, record: LogRecord) {
        let (logger, text) = (record.logger.as_str(), self.mask(&record.message));
        match record.level.as_str() {
            "debug" => tracing::debug!(target: "airflow.task", logger, "{text}"),
            "info" => tracing::info!(target: "airflow.task", logger, "{text}"),
            "warning" => tracing::warn!(target: "airflow.task", logger, "{text}"),
            _ => tracing::error!(target: "airflow.task", logger, "{text}"),
        }
    }
}
