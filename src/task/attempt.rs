//! One try of one task instance: what it runs, with what, and its rendered arguments.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::{Map, Value};

use super::agent_runs::AgentRuns;
use super::arguments::{ArgumentError, Resolver, python_repr};
use super::context::{Context, params};
use super::failure::Failure;
use super::loggers;
use super::mapping;
use super::native_toolsets::NativeToolsets;
use super::services::Services;
use super::templates::objects::{CallFunction, DagFunction};
use super::templates::values::from_wire;
use super::templates::{Options, Templates};
use crate::airflow::supervisor::StartupDetails;
use crate::dag::Interpreter;
use crate::dag::definitions::{
    AgentTask, Argument, Dag, FunctionCall, Handle, Task, TaskKind, ToolsetSpec,
};

/// What the interface shows for a prompt that a function makes while the task runs.
const SET_DURING_EXECUTION: &str = "DYNAMIC (set during execution)";

/// One try.
pub struct Attempt {
    pub details: StartupDetails,
    pub dag: Dag,
    pub task: Task,
    pub services: Services,
    /// Where template files are looked up first.
    pub dag_folder: PathBuf,
    params: Map<String, Value>,
    interpreter: Mutex<Option<Arc<Interpreter>>>,
    /// What the interpreter had noted for the outlets when it was ended.
    outlet_events: Mutex<Vec<Value>>,
    /// The worker's own toolsets that Dag code holds.
    pub(super) native_toolsets: Arc<NativeToolsets>,
    /// The agents that Dag code runs.
    pub(super) agents: AgentRuns,
}

/// A task's arguments, rendered, in XCom wire form.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Rendered {
    /// The template fields, in the operator's order.
    pub fields: Map<String, Value>,
    /// Toolsets with their own fields rendered.
    pub toolsets: Vec<ToolsetSpec>,
    /// Arguments that this map index gets and that are no template fields.
    pub mapped: Map<String, Value>,
}

impl Rendered {
    /// A field; null when the operator has none of this name.
    #[must_use]
    pub fn field(&self, name: &str) -> &Value {
        self.fields.get(name).unwrap_or(&Value::Null)
    }

    /// A field that is text, or `None`.
    ///
    /// # Errors
    /// It is something else.
    pub fn text(&self, name: &str) -> Result<Option<String>, Failure> {
        match self.field(name) {
            Value::Null => Ok(None),
            Value::String(text) => Ok(Some(text.clone())),
            other => Err(Failure::new(
                "TypeError",
                format!("{name} must be text, and is {}", python_repr(other)),
            )),
        }
    }
}

impl Attempt {
    /// Puts a try together; checks the run's params.
    ///
    /// # Errors
    /// Params that their schemas refuse.
    pub fn new(
        details: StartupDetails,
        dag: Dag,
        task: Task,
        services: Services,
        interpreter: Arc<Interpreter>,
        dag_folder: PathBuf,
    ) -> Result<Self, Failure> {
        let overrides = services
            .config
            .get_bool("core", "dag_run_conf_overrides_params")
            .unwrap_or(true);
        let params = params(
            &dag,
            &task,
            details.ti_context.dag_run.conf.as_ref(),
            overrides,
        )?;
        Ok(Self {
            details,
            dag,
            task,
            services,
            dag_folder,
            params,
            interpreter: Mutex::new(Some(interpreter)),
            outlet_events: Mutex::new(Vec::new()),
            native_toolsets: Arc::default(),
            agents: AgentRuns::default(),
        })
    }

    /// The params of the run.
    #[must_use]
    pub fn params(&self) -> &Map<String, Value> {
        &self.params
    }

    /// The interpreter, as long as it is kept.
    #[must_use]
    pub fn interpreter(&self) -> Option<Arc<Interpreter>> {
        self.interpreter
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Ends the interpreter and frees its memory: nothing of the Dag file's code is needed any more.
    pub fn drop_interpreter(&self) {
        drop(
            self.interpreter
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .take(),
        );
    }

    /// What was kept of the outlets' events.
    #[must_use]
    pub fn outlet_events(&self) -> Vec<Value> {
        self.outlet_events
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Keeps the outlets' events beyond the end of the interpreter.
    pub fn keep_outlet_events(&self, events: Vec<Value>) {
        *self
            .outlet_events
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = events;
    }

    /// Renders a template that Dag code asks for while it runs; `more` goes over the context. Blocks.
    ///
    /// # Errors
    /// The template fails, or it calls a function of the Dag file: those are busy.
    pub fn render_for_dag_code(
        &self,
        text: &str,
        more: &Map<String, Value>,
    ) -> Result<String, String> {
        let call: CallFunction = Arc::new(|_, _, _| {
            Err("functions of the Dag file can't be called from a template that its own code renders".to_owned())
        });
        self.templates_with(&call, &Map::new(), more)
            .render_text("template", text)
            .map_err(|error| error.to_string())
    }

    fn context(&self) -> Context<'_> {
        Context {
            dag: &self.dag,
            task: &self.task,
            run: &self.details.ti_context,
            services: &self.services,
            params: self.params.clone(),
            start_date: &self.details.start_date,
        }
    }

    /// The context for Dag code, with the rendered `templates_dict`.
    #[must_use]
    pub fn dag_code_context(&self, rendered: &Rendered) -> Value {
        let mut context = self.context().for_dag_code();
        if let Some(fields) = context.as_object_mut() {
            fields.insert(
                "templates_dict".to_owned(),
                rendered.field("templates_dict").clone(),
            );
        }
        context
    }

    /// A way to call functions of the Dag file from a thread that may block.
    fn call_function(&self) -> CallFunction {
        let runtime = self.services.runtime().clone();
        let interpreter = self.interpreter();
        let context = self.context().for_dag_code();
        Arc::new(move |handle, args, kwargs| {
            let interpreter = interpreter
                .as_ref()
                .ok_or_else(|| "the Dag interpreter has ended".to_owned())?;
            runtime
                .block_on(interpreter.call(handle, args.into(), kwargs.into(), &context))
                .map_err(|error| error.to_string())
        })
    }

    fn templates(&self, task_fields: &Map<String, Value>, extra: &Map<String, Value>) -> Templates {
        self.templates_with(&self.call_function(), task_fields, extra)
    }

    fn templates_with(
        &self,
        call: &CallFunction,
        task_fields: &Map<String, Value>,
        extra: &Map<String, Value>,
    ) -> Templates {
        let mut searchpath = vec![self.dag_folder.clone()];
        searchpath.extend(self.dag.template_searchpath.iter().map(PathBuf::from));
        let filters = self
            .dag
            .user_defined_filters
            .iter()
            .filter_map(|(name, argument)| match argument {
                Argument::Object { handle, .. } => Some((
                    name.clone(),
                    Arc::new(DagFunction {
                        handle: *handle,
                        name: name.clone(),
                        call: Arc::clone(call),
                    }),
                )),
                _ => None,
            })
            .collect();
        let options = Options {
            searchpath,
            native: self.dag.render_template_as_native_obj,
            extensions: self.task.template_ext.clone(),
            filters,
        };
        let mut context = self.context().for_templates(call, task_fields);
        if !extra.is_empty() {
            context = minijinja::context! { ..from_wire(&Value::Object(extra.clone())), ..context };
        }
        Templates::new(options, context)
    }

    fn with_resolver<T>(
        &self,
        templates: Option<&Templates>,
        use_it: impl FnOnce(&Resolver<'_>) -> T,
    ) -> T {
        let resolve_object = |handle: Handle| -> Result<Value, ArgumentError> {
            let gone = || {
                ArgumentError::Object(Box::new(crate::dag::PythonError {
                    class: "RuntimeError".to_owned(),
                    message: "the Dag interpreter has ended".to_owned(),
                    ..Default::default()
                }))
            };
            let interpreter = self.interpreter().ok_or_else(gone)?;
            let context = self.context().for_dag_code();
            self.services
                .runtime()
                .block_on(interpreter.resolve(handle, &context))
                .map_err(|error| ArgumentError::Object(Box::new(error)))
        };
        use_it(&Resolver {
            services: &self.services,
            dag: &self.dag,
            task: &self.task,
            templates,
            resolve_object: &resolve_object,
        })
    }

    /// How many task instances the task expands to; `None` for a task that is not mapped. Blocks.
    ///
    /// # Errors
    /// What is mapped over can't be had, or is no list.
    pub fn expansion_count(&self) -> Result<Option<usize>, Failure> {
        let Some(expansion) = self.task.expansions.last() else {
            return Ok(None);
        };
        self.with_resolver(None, |resolver| mapping::count(expansion, resolver))
            .map(Some)
            .map_err(Failure::from)
    }

    /// Renders the template fields and the toolsets. Blocks.
    ///
    /// # Errors
    /// A template, a lookup or an upstream value that fails.
    pub fn render(&self) -> Result<Rendered, Failure> {
        let templates = self.templates(&Map::new(), &Map::new());
        let mut rendered =
            self.with_resolver(Some(&templates), |resolver| self.render_fields(resolver))?;
        if let TaskKind::Agent(agent) = &self.task.kind
            && agent.prompt_function.is_some()
            && let Some(prompt) = rendered.fields.get_mut("prompt")
            && prompt.is_null()
        {
            *prompt = SET_DURING_EXECUTION.into();
        }
        if let TaskKind::Agent(agent) = &self.task.kind {
            rendered.toolsets = self.render_toolsets(&agent.toolsets, &rendered.fields)?;
        }
        Ok(rendered)
    }

    /// The template fields, and the arguments of this map index that are none.
    fn render_fields(&self, resolver: &Resolver<'_>) -> Result<Rendered, Failure> {
        let mut mapped = Vec::new();
        if self.task.is_mapped
            && let Some(expansion) = self.task.expansions.last()
        {
            mapped = mapping::arguments(expansion, self.services.ti.map_index, resolver)?;
        }
        // `@task.x` functions are mapped over their own arguments, operators over theirs.
        let decorated = self.task.operator.starts_with('@');
        let mut fields = Map::new();
        for name in &self.task.template_fields {
            let mut value = match argument(&self.task.kind, name) {
                Some(argument) => resolver.value(name, argument)?,
                None => Value::Null,
            };
            if decorated && name == "op_kwargs" && !mapped.is_empty() {
                let mut kwargs = match value {
                    Value::Object(kwargs) => kwargs,
                    _ => Map::new(),
                };
                kwargs.extend(mapped.iter().cloned());
                value = kwargs.into();
            } else if !decorated
                && let Some((_, item)) = mapped.iter().find(|(mapped, _)| mapped == name)
            {
                value = item.clone();
            }
            fields.insert(name.clone(), value);
        }
        if decorated {
            mapped.clear();
        }
        mapped.retain(|(name, _)| !fields.contains_key(name));
        Ok(Rendered {
            fields,
            toolsets: Vec::new(),
            mapped: mapped.into_iter().collect(),
        })
    }

    /// Renders a toolset that Dag code holds. Blocks.
    ///
    /// # Errors
    /// See [`Self::render`].
    pub(super) fn render_toolset(
        &self,
        toolset: &ToolsetSpec,
        fields: &Map<String, Value>,
    ) -> Result<ToolsetSpec, Failure> {
        let templates = self.templates(fields, &Map::new());
        self.with_resolver(Some(&templates), |resolver| {
            render_toolset(toolset, resolver)
        })
    }

    fn render_toolsets(
        &self,
        toolsets: &[ToolsetSpec],
        fields: &Map<String, Value>,
    ) -> Result<Vec<ToolsetSpec>, Failure> {
        let templates = self.templates(fields, &Map::new());
        self.with_resolver(Some(&templates), |resolver| {
            toolsets
                .iter()
                .map(|toolset| render_toolset(toolset, resolver))
                .collect()
        })
    }

    /// Renders everything once more, as `@task.agent` does when its function has made the prompt: templates in the
    /// prompt and in upstream values count now. Blocks.
    ///
    /// # Errors
    /// See [`Self::render`].
    pub fn render_again(&self, rendered: &mut Rendered, prompt: Value) -> Result<(), Failure> {
        rendered.fields.insert("prompt".to_owned(), prompt);
        let templates = self.templates(&rendered.fields, &Map::new());
        for (name, value) in &mut rendered.fields {
            *value = again(name, value, &templates)?;
        }
        Ok(())
    }

    /// The label of a mapped task instance; `None` when the task has no `map_index_template`. `added` is what Dag code
    /// put into the context. Blocks.
    ///
    /// # Errors
    /// The template fails.
    pub fn rendered_map_index(
        &self,
        rendered: &Rendered,
        added: Map<String, Value>,
    ) -> Result<Option<String>, Failure> {
        let Some(template) = &self.task.map_index_template else {
            return Ok(None);
        };
        let mut own = match rendered.field("op_kwargs") {
            Value::Object(kwargs) => kwargs.clone(),
            _ => Map::new(),
        };
        own.extend(added);
        let templates = self.templates(&rendered.fields, &own);
        templates
            .render_text("map_index_template", template)
            .map(|label| Some(label.chars().take(250).collect()))
            .map_err(|error| ArgumentError::Template(error).into())
    }
}

fn again(field: &str, value: &Value, templates: &Templates) -> Result<Value, ArgumentError> {
    Ok(match value {
        Value::String(text) => templates.render(field, text)?,
        Value::Array(items) => items
            .iter()
            .map(|item| again(field, item, templates))
            .collect::<Result<_, _>>()?,
        Value::Object(map) if map.contains_key("$") => value.clone(),
        Value::Object(map) => {
            let plain = !map.contains_key("__classname__");
            let mut rendered = Map::new();
            for (key, item) in map {
                let render = plain || key == "__data__" && item.is_array();
                rendered.insert(
                    key.clone(),
                    if render {
                        again(field, item, templates)?
                    } else {
                        item.clone()
                    },
                );
            }
            rendered.into()
        }
        other => other.clone(),
    })
}

fn rendered_text(
    name: &str,
    argument: &Argument,
    resolver: &Resolver<'_>,
) -> Result<String, Failure> {
    Ok(match resolver.value(name, argument)? {
        Value::String(text) => text,
        other => super::arguments::python_repr(&other),
    })
}

/// The rendered id of a toolset's connection; the log says what a template has become.
fn rendered_conn_id(
    kind: &str,
    name: &str,
    argument: &Argument,
    resolver: &Resolver<'_>,
) -> Result<Argument, Failure> {
    let rendered = rendered_text(name, argument, resolver)?;
    if !matches!(argument, Argument::String(before) if *before == rendered) {
        tracing::info!(
            logger = loggers::AGENT,
            "Rendered toolset {kind}-{rendered}"
        );
    }
    Ok(Argument::String(rendered))
}

fn render_toolset(toolset: &ToolsetSpec, resolver: &Resolver<'_>) -> Result<ToolsetSpec, Failure> {
    Ok(match toolset {
        ToolsetSpec::Sql(sql) => {
            let mut sql = sql.clone();
            sql.db_conn_id = rendered_conn_id("sql", "db_conn_id", &sql.db_conn_id, resolver)?;
            ToolsetSpec::Sql(sql)
        }
        ToolsetSpec::Mcp(mcp) => {
            let mut mcp = mcp.clone();
            mcp.mcp_conn_id = rendered_conn_id("mcp", "mcp_conn_id", &mcp.mcp_conn_id, resolver)?;
            ToolsetSpec::Mcp(mcp)
        }
        ToolsetSpec::ObjectStorage(storage) => {
            let mut rendered = storage.clone();
            rendered.path = Argument::String(rendered_text("path", &storage.path, resolver)?);
            if storage.conn_id != Argument::Null {
                let conn_id = rendered_text("conn_id", &storage.conn_id, resolver)?;
                rendered.conn_id = Argument::String(conn_id);
            }
            if rendered != *storage {
                let logger = loggers::AGENT;
                tracing::info!(logger, "Rendered toolset {}", rendered.id());
            }
            ToolsetSpec::ObjectStorage(rendered)
        }
        ToolsetSpec::Prefixed { prefix, wrapped } => ToolsetSpec::Prefixed {
            prefix: prefix.clone(),
            wrapped: Box::new(render_toolset(wrapped, resolver)?),
        },
        ToolsetSpec::Renamed { names, wrapped } => ToolsetSpec::Renamed {
            names: names.clone(),
            wrapped: Box::new(render_toolset(wrapped, resolver)?),
        },
        ToolsetSpec::Filtered { function, wrapped } => ToolsetSpec::Filtered {
            function: *function,
            wrapped: Box::new(render_toolset(wrapped, resolver)?),
        },
        ToolsetSpec::Deferred {
            tool_names,
            wrapped,
        } => ToolsetSpec::Deferred {
            tool_names: tool_names.clone(),
            wrapped: Box::new(render_toolset(wrapped, resolver)?),
        },
        ToolsetSpec::Logging { logger, wrapped } => ToolsetSpec::Logging {
            logger: logger.clone(),
            wrapped: Box::new(render_toolset(wrapped, resolver)?),
        },
        ToolsetSpec::Combined { toolsets } => ToolsetSpec::Combined {
            toolsets: toolsets
                .iter()
                .map(|toolset| render_toolset(toolset, resolver))
                .collect::<Result<_, _>>()?,
        },
        ToolsetSpec::Python {
            handle,
            class,
            id,
            templated,
            inner,
        } => {
            let mut id = id.clone();
            let mut rendered = Vec::new();
            for (name, argument) in templated {
                let value = rendered_text(name, argument, resolver)?;
                if let (Argument::String(before), Some(id)) = (argument, &mut id)
                    && *before != value
                {
                    *id = id.replace(before.as_str(), &value);
                    tracing::info!(logger = loggers::AGENT, "Rendered toolset {id}");
                }
                rendered.push((name.clone(), Argument::String(value)));
            }
            ToolsetSpec::Python {
                handle: *handle,
                class: class.clone(),
                id,
                templated: rendered,
                // What Dag code holds is rendered when it asks for it.
                inner: inner.clone(),
            }
        }
        ToolsetSpec::DataFusion(_)
        | ToolsetSpec::Skills(_)
        | ToolsetSpec::McpServer(_)
        | ToolsetSpec::Named { .. }
        | ToolsetSpec::Unsupported { .. } => toolset.clone(),
    })
}

fn argument<'a>(kind: &'a TaskKind, field: &str) -> Option<&'a Argument> {
    match kind {
        TaskKind::Agent(agent) => agent_argument(agent, field),
        TaskKind::Python(task) => task.field(field),
        TaskKind::Stub(stub) => match field {
            "op_args" => Some(&stub.op_args),
            "op_kwargs" => Some(&stub.op_kwargs),
            _ => None,
        },
        TaskKind::Empty | TaskKind::Unsupported { .. } => None,
    }
}

fn call_argument<'a>(call: &'a FunctionCall, field: &str) -> Option<&'a Argument> {
    match field {
        "op_args" => Some(&call.op_args),
        "op_kwargs" => Some(&call.op_kwargs),
        "templates_dict" => Some(&call.templates_dict),
        _ => None,
    }
}

fn agent_argument<'a>(agent: &'a AgentTask, field: &str) -> Option<&'a Argument> {
    match field {
        "prompt" => Some(&agent.prompt),
        "llm_conn_id" => Some(&agent.llm_conn_id),
        "model_id" => Some(&agent.model_id),
        "fallback_conn_ids" => Some(&agent.fallback_conn_ids),
        "system_prompt" => Some(&agent.system_prompt),
        "agent_params" => Some(&agent.agent_params),
        "message_history" => Some(&agent.message_history),
        "usage_limits" => Some(&agent.usage_limits),
        "model_settings" => agent.llm.as_ref().map(|llm| &llm.model_settings),
        other => {
            let call = agent.prompt_function.as_ref();
            call.and_then(|call| call_argument(call, other))
                .or_else(|| agent.llm.as_ref()?.field(other))
        }
    }
}
