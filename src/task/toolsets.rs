//! From the toolsets of a Dag file to those of an agent.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use serde_json::{Map, Value, json};

use super::attempt::{Attempt, Rendered};
use super::failure::Failure;
use super::loggers;
use super::native_toolsets::{Given, NativeToolsets};
use super::python_toolset::{PythonFilter, PythonSide, PythonToolset};
use super::rust;
use super::services::Services;
use crate::agent::durable::RecordedToolset;
use crate::agent::{Retries, Toolset};
use crate::airflow::config::Config;
use crate::airflow::connection::Connection;
use crate::control_plane::resolve::{ResolveError, Resolver};
use crate::dag::definitions::{
    Argument, DataFusionToolsetSpec, DataSourceSpec, Handle, McpServerSpec, McpToolsetSpec,
    ObjectStorageToolsetSpec, SkillSourceSpec, SkillsToolsetSpec, SqlToolsetSpec, ToolsetSpec,
};
use crate::hook::{ConnectionError, ConnectionSource};
use crate::secrets::Masker;
use crate::toolset::combined::CombinedToolset;
use crate::toolset::datafusion::{
    DataFusionToolset, DataFusionToolsetConfig, DataSourceConfig, EngineSettings,
};
use crate::toolset::deferred::{DeferredLoadingToolset, SearchToolset, ToolSearch};
use crate::toolset::filtered::FilteredToolset;
use crate::toolset::logging::LoggingToolset;
use crate::toolset::masking::MaskingToolset;
use crate::toolset::mcp::result::ToolErrorBehavior;
use crate::toolset::mcp::server::{HttpServer, Server, StdioServer, Transport, timeout_of};
use crate::toolset::mcp::{self, McpToolset, McpToolsetConfig};
use crate::toolset::object_storage::{ObjectStorageToolset, ObjectStorageToolsetConfig};
use crate::toolset::prefixed::PrefixedToolset;
use crate::toolset::renamed::RenamedToolset;
use crate::toolset::skills::{AgentSkillsToolset, GitSkills, SkillSource, SkillsToolsetConfig};
use crate::toolset::sql::{SqlToolset, SqlToolsetConfig};

/// Connections for toolsets.
pub struct Connections(pub Resolver);

#[async_trait::async_trait]
impl ConnectionSource for Connections {
    async fn connection(&self, conn_id: &str) -> Result<Connection, ConnectionError> {
        self.0
            .connection(conn_id)
            .await
            .map_err(|error| match error {
                ResolveError::ConnectionNotFound(conn_id) => ConnectionError::NotDefined(conn_id),
                other => ConnectionError::Unreadable(other.to_string()),
            })
    }
}

/// The toolsets of an agent, outermost wrapper last applied: logging, masking, prefix, tool.
///
/// # Errors
/// A toolset that does not run natively, or whose arguments are wrong.
pub(super) fn build(
    attempt: &Arc<Attempt>,
    rendered: &Rendered,
    retries: Retries,
    run: RunOfTask<'_>,
) -> Result<Vec<Arc<dyn Toolset>>, Failure> {
    let dag_code = attempt.interpreter().map_or(DagCode::Gone, |interpreter| {
        DagCode::Runs(PythonSide {
            interpreter,
            context: Arc::new(attempt.dag_code_context(rendered)),
            run_id: run.run_id.to_owned(),
            max_retries: retries.tools,
            files: Arc::clone(&attempt.native_toolsets.files),
        })
    });
    let fields = &rendered.fields;
    let around = Around {
        logging: run.logging,
        recording: run.recording,
    };
    make(attempt, &rendered.toolsets, dag_code, fields, around)
}

/// The run of a task's own agent.
#[derive(Clone, Copy)]
pub(super) struct RunOfTask<'a> {
    pub run_id: &'a str,
    /// Tool calls stand in the task log.
    pub logging: bool,
    /// Tool calls are steps of a durable run.
    pub recording: bool,
}

/// What is around every toolset.
#[derive(Clone, Copy)]
struct Around {
    logging: bool,
    recording: bool,
}

/// The toolsets of an agent that Dag code runs: what they hold is no template, and they log nothing of their own.
///
/// # Errors
/// As [`build`].
pub(super) fn for_agent_of_dag_code(
    attempt: &Arc<Attempt>,
    specs: &[ToolsetSpec],
    side: PythonSide,
    recording: bool,
) -> Result<Vec<Arc<dyn Toolset>>, Failure> {
    let around = Around {
        logging: false,
        recording,
    };
    make(attempt, specs, DagCode::Runs(side), &Map::new(), around)
}

/// From now on Dag code can ask for the worker's own toolsets, outside of any agent that runs here. What it gives them is
/// no template.
pub(super) fn serve_dag_code(attempt: &Arc<Attempt>) {
    let native = &attempt.native_toolsets;
    let builder = Builder {
        services: attempt.services.clone(),
        dag_folder: attempt.dag_folder.clone(),
        dag_code: DagCode::Waits(Arc::clone(&native.given)),
        search: Arc::default(),
        recording: false,
        attempt: Arc::downgrade(attempt),
    };
    native.serve(Arc::new(move |spec| {
        builder.toolset(spec).map_err(|failure| failure.message)
    }));
}

fn make(
    attempt: &Arc<Attempt>,
    specs: &[ToolsetSpec],
    dag_code: DagCode,
    fields: &Map<String, Value>,
    around: Around,
) -> Result<Vec<Arc<dyn Toolset>>, Failure> {
    let builder = Builder {
        services: attempt.services.clone(),
        dag_folder: attempt.dag_folder.clone(),
        dag_code,
        search: Arc::default(),
        recording: around.recording,
        attempt: Arc::downgrade(attempt),
    };
    if let DagCode::Runs(_) = builder.dag_code {
        let native = &attempt.native_toolsets;
        let builder = builder.for_dag_code(native);
        let fields = fields.clone();
        // Not the attempt itself: the interpreter's host keeps this, and the attempt keeps the interpreter.
        let weak = Arc::downgrade(attempt);
        native.serve(Arc::new(move |spec| {
            let attempt = weak.upgrade().ok_or("the task has ended")?;
            let spec = attempt
                .render_toolset(spec, &fields)
                .map_err(|failure| failure.message)?;
            builder.toolset(&spec).map_err(|failure| failure.message)
        }));
    }
    let mut toolsets = specs
        .iter()
        .map(|spec| {
            let toolset: Arc<dyn Toolset> = Arc::new(MaskingToolset::new(
                builder.toolset(spec)?,
                attempt.services.resolver.masker().clone(),
            ));
            Ok(if around.logging {
                Arc::new(LoggingToolset::new(toolset, loggers::AGENT))
            } else {
                toolset
            })
        })
        .collect::<Result<Vec<_>, Failure>>()?;
    if specs
        .iter()
        .any(|spec| matches!(spec, ToolsetSpec::Deferred { .. }))
    {
        toolsets.push(Arc::new(SearchToolset::new(builder.search)));
    }
    Ok(toolsets)
}

/// Makes toolsets of what a Dag file, or a file of `updraft mcp serve`, says of them.
#[derive(Clone)]
pub(super) struct Builder {
    pub services: Services,
    /// What relative paths are relative to.
    pub dag_folder: PathBuf,
    pub dag_code: DagCode,
    pub search: Arc<ToolSearch>,
    /// Calls of what does the work, under all wrappers, are steps of a durable run.
    pub recording: bool,
    /// What toolsets in Rust are told of. None outside of a task.
    pub attempt: Weak<Attempt>,
}

/// The Dag file's functions and classes, for toolsets that need them.
#[derive(Clone)]
pub(super) enum DagCode {
    /// The interpreter has ended: nothing needed it.
    Gone,
    /// It can be asked.
    Runs(PythonSide),
    /// It asks for a toolset itself, and waits: what its functions give comes with the question.
    Waits(Arc<Given>),
}

impl Builder {
    /// The same for toolsets that Dag code asks for.
    pub(super) fn for_dag_code(&self, native: &NativeToolsets) -> Self {
        Self {
            dag_code: DagCode::Waits(Arc::clone(&native.given)),
            // The call of the Dag's toolset around it is the step.
            recording: false,
            ..self.clone()
        }
    }

    /// # Errors
    /// It does not run natively, or its arguments are wrong.
    pub(super) fn toolset(&self, spec: &ToolsetSpec) -> Result<Arc<dyn Toolset>, Failure> {
        let toolset = self.unrecorded(spec)?;
        Ok(match recorded_kind(spec).filter(|_| self.recording) {
            Some(kind) => {
                // No secret may reach the journal.
                let masker = self.services.resolver.masker().clone();
                let masked = Arc::new(MaskingToolset::new(toolset, masker));
                Arc::new(RecordedToolset::new(masked, kind))
            }
            None => toolset,
        })
    }

    fn unrecorded(&self, spec: &ToolsetSpec) -> Result<Arc<dyn Toolset>, Failure> {
        let masker = self.services.resolver.masker().clone();
        let connections = Arc::new(Connections(self.services.resolver.clone()));
        Ok(match spec {
            ToolsetSpec::Sql(sql) => {
                let mask = Arc::new(move |text: &str| masker.mask_str(text).into_owned());
                let toolset = SqlToolset::new(sql_config(sql), connections, mask)
                    .map_err(|error| Failure::of("ValueError", &error))?;
                Arc::new(toolset)
            }
            ToolsetSpec::DataFusion(datafusion) => {
                let mask = Arc::new(move |text: &str| masker.mask_str(text).into_owned());
                let config = datafusion_config(datafusion)?;
                let settings = engine_settings(&self.services.config)?;
                let toolset = DataFusionToolset::new(config, settings, connections, mask)
                    .map_err(|error| Failure::of("ValueError", &error))?;
                Arc::new(toolset)
            }
            ToolsetSpec::ObjectStorage(storage) => {
                let mask = Arc::new(move |text: &str| masker.mask_str(text).into_owned());
                let environment = self.services.config.environment().clone();
                let config = object_storage_config(storage);
                let toolset = ObjectStorageToolset::new(config, connections, environment, mask)
                    .map_err(|error| Failure::of("ValueError", &error))?;
                Arc::new(toolset)
            }
            ToolsetSpec::Skills(skills) => {
                let is_secret = |text: &str| masker.mask_str(text) != text;
                let config = skills_config(skills, &self.dag_folder)?;
                Arc::new(AgentSkillsToolset::new(config, connections, is_secret))
            }
            ToolsetSpec::Mcp(mcp) => {
                let toolset = self.mcp_toolset(mcp)?;
                match &mcp.tool_prefix {
                    Some(prefix) => Arc::new(PrefixedToolset::new(toolset, prefix)),
                    None => toolset,
                }
            }
            ToolsetSpec::McpServer(server) => {
                let source = mcp::Source::Server(mcp_server(server, &masker)?);
                let config = McpToolsetConfig {
                    id: server.id.clone().unwrap_or_default(),
                    label: server.class.clone(),
                    max_retries: server.max_retries,
                    tool_error_behavior: tool_error_behavior(&server.tool_error_behavior)?,
                    include_instructions: server.include_instructions,
                    uncached_tools: !server.cache_tools,
                };
                Arc::new(McpToolset::new(config, source, masker))
            }
            ToolsetSpec::Prefixed { prefix, wrapped } => {
                Arc::new(PrefixedToolset::new(self.toolset(wrapped)?, prefix))
            }
            ToolsetSpec::Renamed { names, wrapped } => {
                Arc::new(RenamedToolset::new(self.toolset(wrapped)?, names.clone()))
            }
            ToolsetSpec::Filtered { function, wrapped } => {
                let filter = PythonFilter {
                    side: self.python_side()?,
                    function: *function,
                };
                Arc::new(FilteredToolset::new(
                    self.toolset(wrapped)?,
                    Arc::new(filter),
                ))
            }
            ToolsetSpec::Deferred {
                tool_names,
                wrapped,
            } => {
                let names = tool_names.as_ref();
                Arc::new(DeferredLoadingToolset::new(
                    self.toolset(wrapped)?,
                    names.map(|names| names.iter().cloned().collect()),
                    Arc::clone(&self.search),
                ))
            }
            ToolsetSpec::Combined { toolsets } => {
                let toolsets = toolsets.iter().map(|toolset| self.toolset(toolset));
                Arc::new(CombinedToolset::new(toolsets.collect::<Result<_, _>>()?))
            }
            ToolsetSpec::Logging { logger, wrapped } => {
                let logger = logger.as_deref().unwrap_or(loggers::TOOLS);
                // A log shows no secret; what goes on from here is masked further out.
                let wrapped = MaskingToolset::new(self.toolset(wrapped)?, masker);
                Arc::new(LoggingToolset::new(Arc::new(wrapped), logger))
            }
            ToolsetSpec::Python {
                handle,
                class,
                id,
                templated,
                ..
            } => {
                let fields = templated.iter().filter_map(|(name, value)| match value {
                    Argument::String(text) => Some((name.clone(), text.as_str().into())),
                    _ => None,
                });
                Arc::new(PythonToolset {
                    side: self.python_side()?,
                    handle: *handle,
                    class: class.clone(),
                    id: id.clone(),
                    fields: fields.collect(),
                    checks: Mutex::default(),
                })
            }
            ToolsetSpec::Named { name } => {
                let attempt = self.attempt.upgrade();
                let attempt = attempt.ok_or_else(|| {
                    let text = format!("the toolset {name:?} is there for tasks only");
                    Failure::new("RuntimeError", text).for_good()
                })?;
                rust::toolset(&attempt, name)?
            }
            ToolsetSpec::Unsupported { .. } => {
                let text = spec.obstacle().unwrap_or_default();
                return Err(Failure::new("NotImplementedError", text).for_good());
            }
        })
    }

    fn mcp_toolset(&self, spec: &McpToolsetSpec) -> Result<Arc<dyn Toolset>, Failure> {
        let mcp_conn_id = match &spec.mcp_conn_id {
            Argument::String(text) => text.clone(),
            _ => String::new(),
        };
        let provider = |handle: Option<Handle>| {
            handle
                .map(|handle| {
                    Ok::<_, Failure>(match &self.dag_code {
                        DagCode::Waits(given) => given.provider(handle),
                        _ => provider(self.python_side()?, handle),
                    })
                })
                .transpose()
        };
        let config = McpToolsetConfig {
            id: format!("mcp-{mcp_conn_id}"),
            label: "MCPToolset".to_owned(),
            ..McpToolsetConfig::default()
        };
        let source = mcp::Source::Connection {
            mcp_conn_id,
            connections: Arc::new(Connections(self.services.resolver.clone())),
            token_provider: provider(spec.token_provider)?,
            env_provider: provider(spec.env_provider)?,
        };
        let masker = self.services.resolver.masker().clone();
        Ok(Arc::new(McpToolset::new(config, source, masker)))
    }

    fn python_side(&self) -> Result<PythonSide, Failure> {
        let text = match &self.dag_code {
            DagCode::Runs(side) => return Ok(side.clone()),
            DagCode::Gone => "the Dag interpreter has ended",
            DagCode::Waits(_) => {
                "a class of the Dag file that derives one of the worker's toolsets can't use that toolset's own methods: \
                 derive WrapperToolset, and wrap the worker's toolset in it"
            }
        };
        Err(Failure::new("NotImplementedError", text).for_good())
    }
}

/// What the provider's durable runs call toolsets of this kind; `None` for wrappers, whose calls are recorded further in.
fn recorded_kind(spec: &ToolsetSpec) -> Option<&'static str> {
    Some(match spec {
        ToolsetSpec::McpServer(_) => "mcp_server",
        ToolsetSpec::Python { class, .. } if class == "FunctionToolset" => "function_toolset",
        ToolsetSpec::Python { class, .. } if class == "DynamicToolset" => "dynamic_toolset",
        ToolsetSpec::Python { .. }
        | ToolsetSpec::Sql(_)
        | ToolsetSpec::DataFusion(_)
        | ToolsetSpec::ObjectStorage(_)
        | ToolsetSpec::Skills(_)
        | ToolsetSpec::Mcp(_)
        | ToolsetSpec::Named { .. } => "airflow_toolset",
        ToolsetSpec::Prefixed { .. }
        | ToolsetSpec::Renamed { .. }
        | ToolsetSpec::Filtered { .. }
        | ToolsetSpec::Deferred { .. }
        | ToolsetSpec::Combined { .. }
        | ToolsetSpec::Logging { .. }
        | ToolsetSpec::Unsupported { .. } => return None,
    })
}

/// How SQL engines over files are set up on this worker.
///
/// # Errors
/// A setting that can't be used.
pub(super) fn engine_settings(config: &Config) -> Result<EngineSettings, Failure> {
    let mut settings = EngineSettings::new(config.environment().clone());
    let key = "datafusion_memory_limit";
    let limit = config
        .text("updraft", key)
        .map_err(|error| Failure::of("AirflowConfigException", &error))?;
    if let Some(limit) = limit {
        let mebibytes: Option<usize> = limit.trim().parse().ok();
        settings.memory_limit = mebibytes
            .and_then(|limit| limit.checked_mul(1 << 20))
            .filter(|limit| *limit > 0)
            .ok_or_else(|| {
                let text = format!("[updraft] {key} must be a number of MiB, not {limit:?}");
                Failure::new("AirflowConfigException", text)
            })?;
    }
    Ok(settings)
}

/// A function of the Dag file, without arguments.
fn provider(side: PythonSide, function: Handle) -> mcp::Provider {
    Arc::new(move || {
        let interpreter = Arc::clone(&side.interpreter);
        Box::pin(async move {
            let (args, kwargs) = (Value::Array(Vec::new()), Value::Object(Map::new()));
            let called = interpreter.call(function, args, kwargs, &Value::Null).await;
            called.map_err(|error| error.message)
        })
    })
}

fn tool_error_behavior(name: &str) -> Result<ToolErrorBehavior, Failure> {
    match name {
        "retry" => Ok(ToolErrorBehavior::Retry),
        "failed" => Ok(ToolErrorBehavior::Failed),
        "error" => Ok(ToolErrorBehavior::Error),
        other => Err(Failure::new(
            "ValueError",
            format!("tool_error_behavior must be 'retry', 'error' or 'failed', and is {other:?}"),
        )),
    }
}

/// The server of a Dag file. A token in its headers is a secret from now on.
fn mcp_server(spec: &McpServerSpec, masker: &Masker) -> Result<Server, Failure> {
    let seconds = |timeout: Option<f64>| {
        timeout.map_or(Ok(Duration::MAX), |seconds| {
            timeout_of(seconds).ok_or_else(|| {
                let text =
                    format!("{seconds:?} is no number of seconds that an MCP server may take");
                Failure::new("ValueError", text)
            })
        })
    };
    let transport = match (&spec.server.http, &spec.server.stdio) {
        (Some(http), _) => {
            for (name, value) in &http.headers {
                if masker.is_sensitive_name(name) || name.eq_ignore_ascii_case("authorization") {
                    masker.add_secret(value.strip_prefix("Bearer ").unwrap_or(value));
                }
            }
            let headers = http.headers.iter();
            let server = HttpServer {
                url: http.url.clone(),
                headers: headers
                    .map(|(name, value)| (name.clone(), value.as_str().into()))
                    .collect(),
                event_timeout: http
                    .sse_read_timeout
                    .map(|timeout| seconds(Some(timeout)))
                    .transpose()?,
            };
            if http.sse {
                Transport::Sse(server)
            } else {
                Transport::Http(server)
            }
        }
        (None, Some(stdio)) => {
            for (name, value) in &stdio.env {
                if masker.is_sensitive_name(name) {
                    masker.add_secret(value);
                }
            }
            let env = stdio.env.iter();
            Transport::Stdio(StdioServer {
                command: stdio.command.clone(),
                args: stdio.args.clone(),
                env: env
                    .map(|(name, value)| (name.clone(), value.as_str().into()))
                    .collect(),
                cwd: stdio.cwd.as_ref().map(PathBuf::from),
            })
        }
        (None, None) => {
            let text = format!("{} does not say how its server is reached", spec.class);
            return Err(Failure::new("ValueError", text));
        }
    };
    Ok(Server {
        transport,
        init_timeout: seconds(spec.server.init_timeout)?,
        read_timeout: seconds(spec.server.read_timeout)?,
    })
}

fn sql_config(spec: &SqlToolsetSpec) -> SqlToolsetConfig {
    SqlToolsetConfig {
        db_conn_id: match &spec.db_conn_id {
            Argument::String(text) => text.clone(),
            _ => String::new(),
        },
        allowed_tables: spec.allowed_tables.clone(),
        allowed_functions: spec.allowed_functions.clone(),
        schema: spec.schema.clone(),
        allow_writes: spec.allow_writes,
        max_rows: spec.max_rows,
        max_result_bytes: spec.max_result_bytes,
        max_columns: spec.max_columns,
        max_retries: spec.max_retries,
    }
}

fn datafusion_config(spec: &DataFusionToolsetSpec) -> Result<DataFusionToolsetConfig, Failure> {
    let sources = spec.datasource_configs.iter().map(data_source);
    Ok(DataFusionToolsetConfig {
        datasource_configs: sources.collect::<Result<_, _>>()?,
        allow_writes: spec.allow_writes,
        max_rows: spec.max_rows,
        max_result_bytes: spec.max_result_bytes,
        max_columns: spec.max_columns,
        max_retries: spec.max_retries,
    })
}

/// A source of SQL over files.
///
/// # Errors
/// An option that is there with a Python library only.
pub(super) fn data_source(spec: &DataSourceSpec) -> Result<DataSourceConfig, Failure> {
    let options = spec.options.iter().map(|(name, argument)| {
        let value = option_value(argument).ok_or_else(|| {
            let text = format!(
                "option {name:?} of the source {:?} can't be used here: it needs the Python library it comes from",
                spec.table_name
            );
            Failure::new("NotImplementedError", text).for_good()
        })?;
        Ok((name.clone(), value))
    });
    Ok(DataSourceConfig {
        conn_id: spec.conn_id.clone().unwrap_or_default(),
        table_name: spec.table_name.clone(),
        uri: spec.uri.clone(),
        format: spec.format.clone(),
        db_name: spec.db_name.clone(),
        storage_type: spec.storage_type.clone(),
        options: options.collect::<Result<_, Failure>>()?,
    })
}

/// An option as plain data. pyarrow is not there when a Dag loads: a type of its is known by the name it was asked for.
fn option_value(argument: &Argument) -> Option<Value> {
    Some(match argument {
        Argument::Null => Value::Null,
        Argument::Bool(value) => (*value).into(),
        Argument::Number(number) => Value::Number(number.clone()),
        Argument::String(text) => text.as_str().into(),
        Argument::List(items) | Argument::Tuple(items) | Argument::Set(items) => items
            .iter()
            .map(option_value)
            .collect::<Option<Vec<_>>>()?
            .into(),
        Argument::Object { repr, .. } => {
            let call = repr
                .strip_prefix("<unavailable pyarrow.")?
                .strip_suffix('>')?;
            json!({ "pyarrow": call })
        }
        Argument::Dict(_) | Argument::Time { .. } | Argument::XCom { .. } => return None,
    })
}

/// A source as the toolset takes it.
///
/// # Errors
/// It is none: the text of the `TypeError`.
pub(super) fn skill_source(source: &SkillSourceSpec) -> Result<SkillSource, String> {
    match source {
        SkillSourceSpec::Folder(folder) => Ok(SkillSource::Folder(folder.into())),
        SkillSourceSpec::Git {
            repo_url,
            conn_id,
            path,
            branch,
        } => Ok(SkillSource::Git(GitSkills {
            repo_url: repo_url.clone(),
            conn_id: conn_id.clone(),
            path: path.clone(),
            branch: branch.clone(),
        })),
        SkillSourceSpec::Other(class) => Err(format!(
            "Unsupported skill source '{class}'; expected a path or GitSkills."
        )),
    }
}

fn object_storage_config(spec: &ObjectStorageToolsetSpec) -> ObjectStorageToolsetConfig {
    let text = |argument: &Argument| match argument {
        Argument::String(text) => text.clone(),
        _ => String::new(),
    };
    ObjectStorageToolsetConfig {
        path: text(&spec.path),
        conn_id: Some(text(&spec.conn_id)).filter(|conn_id| !conn_id.is_empty()),
        max_files: spec.max_files,
        max_read_bytes: spec.max_read_bytes,
        max_output_bytes: spec.max_output_bytes,
        tool_prefix: spec.tool_prefix.clone(),
        max_retries: spec.max_retries,
    }
}

fn skills_config(
    spec: &SkillsToolsetSpec,
    dag_folder: &Path,
) -> Result<SkillsToolsetConfig, Failure> {
    let sources = spec
        .sources
        .iter()
        .map(|source| skill_source(source).map_err(|text| Failure::new("TypeError", text)));
    Ok(SkillsToolsetConfig {
        sources: sources.collect::<Result<_, _>>()?,
        exclude_tools: spec.exclude_tools.clone(),
        exclude_resources: spec.exclude_resources.clone(),
        max_retries: spec.max_retries,
        base: dag_folder.to_owned(),
    })
}
