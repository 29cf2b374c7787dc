//! `MCPToolset`: the tools of an MCP server, behind an Airflow connection or as a Dag file names it.
//!
//! `rmcp` speaks the protocol over standard input and output and over streamable HTTP; the older transport with
//! server-sent events is our own (`sse.rs`). What a result becomes is in `result.rs`.
//!
//! `serve/` is the other side: our toolsets as a server for agents of other frameworks.
//!
//! What may not go in here: Airflow's task, or a Dag file.

mod http;
pub mod result;
pub mod serve;
pub mod server;
mod session;
mod size_limit;
mod slow_start;
mod sse;
mod stdio;
mod watched_http;

use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use futures::future::BoxFuture;
use rmcp::model::Tool;
use serde_json::{Map, Value, json};
use tokio::sync::RwLock;

use crate::agent::{ToolDefinition, ToolError, ToolOutput, Toolset, arguments};
use crate::hook::ConnectionSource;
use crate::secrets::Masker;
use result::ToolErrorBehavior;
use server::{Provided, Server, of_connection, transport_name};
use session::{RequestError, Session};

/// A function of the Dag file that is called once for a value; its error is the exception's text.
pub type Provider = Arc<dyn Fn() -> BoxFuture<'static, Result<Value, String>> + Send + Sync>;

/// Where a toolset's server comes from.
pub enum Source {
    /// A connection of type `mcp`.
    Connection {
        mcp_conn_id: String,
        connections: Arc<dyn ConnectionSource>,
        /// Gives the token of an HTTP server, instead of the password.
        token_provider: Option<Provider>,
        /// Gives variables for the environment of a stdio server.
        env_provider: Option<Provider>,
    },
    /// As the Dag file says it.
    Server(Server),
}

/// Settings of a toolset. The defaults are pydantic-ai's.
#[derive(Clone, Debug, Default)]
pub struct McpToolsetConfig {
    /// The toolset's id; empty for none.
    pub id: String,
    /// The class that the Dag file names.
    pub label: String,
    /// `None`: the run's own budget.
    pub max_retries: Option<u32>,
    pub tool_error_behavior: ToolErrorBehavior,
    /// Does what the server says of itself go into the system prompt?
    pub include_instructions: bool,
    /// Are the tools asked for before every request, though the server has not said that they changed?
    pub uncached_tools: bool,
}

/// The tools of an MCP server.
pub struct McpToolset {
    config: McpToolsetConfig,
    source: Source,
    masker: Masker,
    /// Found out once: functions of the Dag file are not called again for a new session.
    server: tokio::sync::OnceCell<Server>,
    session: RwLock<Option<Arc<Session>>>,
    tools: Mutex<Option<Vec<ToolDefinition>>>,
}

impl McpToolset {
    /// What `token_provider` and `env_provider` give is a secret from then on.
    #[must_use]
    pub fn new(config: McpToolsetConfig, source: Source, masker: Masker) -> Self {
        Self {
            config,
            source,
            masker,
            server: tokio::sync::OnceCell::new(),
            session: RwLock::new(None),
            tools: Mutex::new(None),
        }
    }

    async fn server(&self) -> Result<&Server, ToolError> {
        self.server
            .get_or_try_init(|| async {
                match &self.source {
                    Source::Server(server) => Ok(server.clone()),
                    Source::Connection {
                        mcp_conn_id,
                        connections,
                        token_provider,
                        env_provider,
                    } => {
                        let connection = connections
                            .connection(mcp_conn_id)
                            .await
                            .map_err(|error| error.to_string())?;
                        let mut provided = Provided::default();
                        let stdio = transport_name(&connection).is_ok_and(|name| name == "stdio");
                        if let Some(provider) = env_provider
                            && stdio
                        {
                            provided.env = Some(self.secret(provider).await?);
                        } else if let Some(provider) = token_provider
                            && !stdio
                        {
                            provided.token = Some(self.secret(provider).await?);
                        }
                        of_connection(&connection, provided).map_err(|error| error.to_string())
                    }
                }
            })
            .await
            .map_err(ToolError::Fatal)
    }

    async fn secret(&self, provider: &Provider) -> Result<Value, String> {
        let value = provider().await?;
        match &value {
            Value::String(text) => self.masker.add_secret(text),
            Value::Object(map) => {
                for text in map.values().filter_map(Value::as_str) {
                    self.masker.add_secret(text);
                }
            }
            _ => {}
        }
        Ok(value)
    }

    async fn connect(&self) -> Result<Arc<Session>, ToolError> {
        let session = Session::connect(self.server().await?)
            .await
            .map_err(|text| ToolError::Fatal(format!("Client failed to connect: {text}")))?;
        Ok(Arc::new(session))
    }

    async fn session(&self) -> Result<Arc<Session>, ToolError> {
        let session = self.session.read().await.clone();
        session.ok_or_else(|| {
            ToolError::Fatal(format!(
                "{} was not opened, or is closed",
                self.config.label
            ))
        })
    }

    /// Begins a new session in place of one that the server has forgotten, unless another call has done so already.
    async fn renew(&self, expired: &Arc<Session>) -> Result<Arc<Session>, ToolError> {
        let mut current = self.session.write().await;
        if let Some(session) = current.as_ref()
            && !Arc::ptr_eq(session, expired)
        {
            return Ok(Arc::clone(session));
        }
        let session = self.connect().await?;
        *current = Some(Arc::clone(&session));
        self.forget_tools();
        Ok(session)
    }

    fn forget_tools(&self) {
        *self.tools.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    fn definition(&self, tool: Tool) -> ToolDefinition {
        ToolDefinition {
            name: tool.name.into_owned(),
            description: tool.description.map(|text| text.into_owned()),
            parameters: Value::Object(tool.input_schema.as_ref().clone()),
            sequential: false,
            max_retries: self.config.max_retries,
        }
    }
}

/// A server may keep tools for a user interface: `_meta.ui.visibility`.
fn is_for_the_model(tool: &Tool) -> bool {
    let visibility = tool
        .meta
        .as_ref()
        .and_then(|meta| meta.get("ui"))
        .and_then(|ui| ui.get("visibility"))
        .and_then(Value::as_array);
    visibility.is_none_or(|seen_by| seen_by.iter().any(|who| who == "model"))
}

fn seconds(timeout: std::time::Duration) -> String {
    format!("{:?}", timeout.as_secs_f64())
}

fn too_large(what: &str) -> String {
    format!(
        "the MCP server answered {what} with more than {} MiB, which is the most that is taken: ask it for less at a time",
        size_limit::MAX_MESSAGE >> 20
    )
}

#[async_trait]
impl Toolset for McpToolset {
    fn id(&self) -> String {
        self.config.id.clone()
    }

    fn label(&self) -> &str {
        &self.config.label
    }

    async fn open(&self) -> Result<(), ToolError> {
        let session = self.connect().await?;
        *self.session.write().await = Some(session);
        Ok(())
    }

    async fn instructions(&self) -> Result<Option<String>, ToolError> {
        if !self.config.include_instructions {
            return Ok(None);
        }
        Ok(self.session().await?.instructions())
    }

    async fn tools(&self) -> Result<Vec<ToolDefinition>, ToolError> {
        let mut session = self.session().await?;
        if session.take_tools_changed() || self.config.uncached_tools {
            self.forget_tools();
        }
        let known = self
            .tools
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        if let Some(tools) = known {
            return Ok(tools);
        }
        let mut listed = session.list_tools().await;
        if matches!(listed, Err(RequestError::SessionExpired)) {
            session = self.renew(&session).await?;
            listed = session.list_tools().await;
        }
        let listed = listed.map_err(|error| {
            ToolError::Fatal(match error {
                RequestError::Refused(text) => {
                    format!("the MCP server did not list its tools: {text}")
                }
                RequestError::TimedOut(after) => format!(
                    "the MCP server did not list its tools within {} s",
                    seconds(after)
                ),
                RequestError::SessionExpired => {
                    "the MCP server forgot the session again".to_owned()
                }
                RequestError::TooLarge => too_large("tools/list"),
                RequestError::Broken(text) => {
                    format!("the MCP server can't be asked for its tools: {text}")
                }
            })
        })?;
        let tools: Vec<_> = listed
            .into_iter()
            .filter(is_for_the_model)
            .map(|tool| self.definition(tool))
            .collect();
        *self.tools.lock().unwrap_or_else(PoisonError::into_inner) = Some(tools.clone());
        Ok(tools)
    }

    /// The server checks the arguments; here they only have to be a JSON object.
    async fn validate(&self, _: &ToolDefinition, raw: &str) -> Result<Map<String, Value>, Value> {
        let anything = json!({"type": "object", "properties": {}, "additionalProperties": true});
        arguments::validate(raw, &anything).map_err(|error| error.0)
    }

    async fn call(&self, name: &str, args: Map<String, Value>) -> Result<Value, ToolError> {
        Ok(self.call_for_files(name, args).await?.content)
    }

    async fn call_for_files(
        &self,
        name: &str,
        args: Map<String, Value>,
    ) -> Result<ToolOutput, ToolError> {
        let mut session = self.session().await?;
        let mut answer = session.call_tool(name, args.clone()).await;
        if matches!(answer, Err(RequestError::SessionExpired)) {
            session = self.renew(&session).await?;
            answer = session.call_tool(name, args).await;
        }
        match answer {
            Ok(result) => result::map(name, result, self.config.tool_error_behavior),
            // A refusal by the protocol can always be put right, unless errors are to fail the run.
            Err(RequestError::Refused(text)) => Err(match self.config.tool_error_behavior {
                ToolErrorBehavior::Error => ToolError::Fatal(text),
                ToolErrorBehavior::Retry | ToolErrorBehavior::Failed => ToolError::Retry(text),
            }),
            Err(RequestError::TimedOut(after)) => Err(ToolError::Retry(format!(
                "Timed out while waiting for response to ClientRequest. Waited {} seconds.",
                seconds(after)
            ))),
            Err(RequestError::SessionExpired) => Err(ToolError::Fatal(format!(
                "the MCP server forgot the session again while {name} was called"
            ))),
            Err(RequestError::TooLarge) => Err(ToolError::Fatal(too_large(name))),
            Err(RequestError::Broken(text)) => Err(ToolError::Fatal(format!(
                "Client failed to connect: {text}"
            ))),
        }
    }

    async fn close(&self) {
        let session = self.session.write().await.take();
        self.forget_tools();
        // A call that was given up may still hold it for a moment; then it ends with that call.
        if let Some(session) = session.and_then(Arc::into_inner) {
            session.close().await;
        }
    }
}
