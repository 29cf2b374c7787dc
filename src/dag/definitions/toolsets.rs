//! Toolsets of an agent, as a Dag file builds them.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use super::{Argument, Handle};

/// A toolset as the Dag file makes it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolsetSpec {
    Sql(SqlToolsetSpec),
    /// `DataFusionToolset`.
    DataFusion(DataFusionToolsetSpec),
    /// `ObjectStorageToolset`.
    ObjectStorage(ObjectStorageToolsetSpec),
    /// `AgentSkillsToolset`.
    Skills(SkillsToolsetSpec),
    /// `MCPToolset` of the provider: a server behind a connection.
    Mcp(McpToolsetSpec),
    /// pydantic-ai's own classes for MCP servers.
    McpServer(Box<McpServerSpec>),
    /// `.prefixed("x")`.
    Prefixed {
        prefix: String,
        wrapped: Box<ToolsetSpec>,
    },
    /// `.renamed({"new": "old"})`.
    Renamed {
        names: HashMap<String, String>,
        wrapped: Box<ToolsetSpec>,
    },
    /// `.filtered(function)`.
    Filtered {
        function: Handle,
        wrapped: Box<ToolsetSpec>,
    },
    /// `.defer_loading(...)`; the outermost wrapper.
    Deferred {
        /// `None`: all tools.
        #[serde(default)]
        tool_names: Option<Vec<String>>,
        wrapped: Box<ToolsetSpec>,
    },
    /// `CombinedToolset([...])`.
    Combined {
        toolsets: Vec<ToolsetSpec>,
    },
    /// `LoggingToolset(wrapped=..., logger=...)`.
    Logging {
        /// The logger's name; `None`: the toolset's own.
        #[serde(default)]
        logger: Option<String>,
        wrapped: Box<ToolsetSpec>,
    },
    /// One that runs in the interpreter: of functions, of a hook, of a class that the Dag derives.
    Python {
        handle: Handle,
        class: String,
        #[serde(default)]
        id: Option<String>,
        /// Fields that are templates.
        #[serde(default)]
        templated: Vec<(String, Argument)>,
        /// The toolsets that it wraps, as far as they can be seen.
        #[serde(default)]
        inner: Vec<ToolsetSpec>,
    },
    /// One that this build of the program has in Rust, by its name.
    Named {
        name: String,
    },
    /// Does not run natively.
    Unsupported {
        class: String,
        module: String,
        /// What stands in the way, after "it"; `None`: there is no native counterpart yet.
        #[serde(default)]
        reason: Option<String>,
    },
}

impl ToolsetSpec {
    /// Why the toolset itself can't run natively, without the toolsets inside it.
    #[must_use]
    pub fn obstacle(&self) -> Option<String> {
        if self
            .inner()
            .iter()
            .any(|inner| matches!(inner, Self::Deferred { .. }))
        {
            return Some(
                "its toolset has defer_loading() within another wrapper, which does not run natively: call it last"
                    .to_owned(),
            );
        }
        let Self::Unsupported {
            class,
            module,
            reason,
        } = self
        else {
            return None;
        };
        Some(match reason {
            Some(reason) => {
                format!("its toolset {class} ({module}) does not run natively: it {reason}")
            }
            None => format!("its toolset {class} ({module}) has no native counterpart yet"),
        })
    }

    /// The toolsets directly inside this one.
    #[must_use]
    pub fn inner(&self) -> &[ToolsetSpec] {
        match self {
            Self::Prefixed { wrapped, .. }
            | Self::Renamed { wrapped, .. }
            | Self::Filtered { wrapped, .. }
            | Self::Deferred { wrapped, .. }
            | Self::Logging { wrapped, .. } => std::slice::from_ref(wrapped),
            Self::Combined { toolsets } => toolsets,
            Self::Python { inner, .. } => inner,
            Self::Sql(_)
            | Self::DataFusion(_)
            | Self::ObjectStorage(_)
            | Self::Skills(_)
            | Self::Mcp(_)
            | Self::McpServer(_)
            | Self::Named { .. }
            | Self::Unsupported { .. } => &[],
        }
    }

    /// Must the interpreter stay as long as the agent runs?
    #[must_use]
    pub fn needs_interpreter(&self) -> bool {
        let own = match self {
            Self::Python { .. } | Self::Filtered { .. } => true,
            Self::Mcp(mcp) => mcp.token_provider.is_some() || mcp.env_provider.is_some(),
            _ => false,
        };
        own || self.inner().iter().any(Self::needs_interpreter)
    }
}

/// Arguments of `SQLToolset`, with their defaults filled in.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SqlToolsetSpec {
    /// Templated.
    pub db_conn_id: Argument,
    /// `None` when the argument was left out: every table.
    #[serde(default)]
    pub allowed_tables: Option<Vec<String>>,
    #[serde(default)]
    pub allowed_functions: Vec<String>,
    #[serde(default)]
    pub schema: Option<String>,
    #[serde(default)]
    pub allow_writes: bool,
    pub max_rows: i64,
    pub max_result_bytes: i64,
    pub max_columns: i64,
    #[serde(default)]
    pub max_retries: Option<u32>,
}

/// Arguments of `DataFusionToolset`, with their defaults filled in.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DataFusionToolsetSpec {
    pub datasource_configs: Vec<DataSourceSpec>,
    #[serde(default)]
    pub allow_writes: bool,
    pub max_rows: i64,
    pub max_result_bytes: i64,
    pub max_columns: i64,
    #[serde(default)]
    pub max_retries: Option<u32>,
}

/// `DataSourceConfig`: a table over files or in a catalog.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DataSourceSpec {
    #[serde(default)]
    pub conn_id: Option<String>,
    pub table_name: String,
    #[serde(default)]
    pub uri: String,
    #[serde(default)]
    pub format: String,
    #[serde(default)]
    pub db_name: Option<String>,
    /// `s3`, `gcs`, `azure`, `local`: as given, or from the scheme of the URI.
    #[serde(default)]
    pub storage_type: Option<String>,
    #[serde(default)]
    pub options: Vec<(String, Argument)>,
}

impl DataSourceSpec {
    /// Is the connection looked up? Local files need none.
    #[must_use]
    pub fn uses_connection(&self) -> bool {
        self.storage_type.as_deref() != Some("local") && !self.uri.starts_with("file://")
    }
}

/// Arguments of the provider's `MCPToolset`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct McpToolsetSpec {
    /// Templated.
    pub mcp_conn_id: Argument,
    #[serde(default)]
    pub tool_prefix: Option<String>,
    /// Functions that are called once, when the agent begins.
    #[serde(default)]
    pub token_provider: Option<Handle>,
    #[serde(default)]
    pub env_provider: Option<Handle>,
}

/// Arguments of pydantic-ai's classes for MCP servers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct McpServerSpec {
    /// The class, e.g. `MCPServerStdio`.
    pub class: String,
    #[serde(default)]
    pub id: Option<String>,
    pub server: McpServerAddress,
    #[serde(default)]
    pub max_retries: Option<u32>,
    /// `retry`, `failed` or `error`.
    pub tool_error_behavior: String,
    pub include_instructions: bool,
    pub cache_tools: bool,
}

/// How an MCP server is reached: one of `http` and `stdio` is there.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct McpServerAddress {
    #[serde(default)]
    pub http: Option<McpHttpSpec>,
    #[serde(default)]
    pub stdio: Option<McpStdioSpec>,
    /// Seconds; `None`: as long as it takes.
    #[serde(default)]
    pub init_timeout: Option<f64>,
    #[serde(default)]
    pub read_timeout: Option<f64>,
}

/// An MCP server behind an address.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct McpHttpSpec {
    pub url: String,
    #[serde(default)]
    pub headers: HashMap<String, String>,
    /// The older transport, with server-sent events.
    #[serde(default)]
    pub sse: bool,
    /// Seconds that the older transport's stream may be silent; `None`: as long as an answer may take.
    #[serde(default)]
    pub sse_read_timeout: Option<f64>,
}

/// An MCP server that is started as a command.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct McpStdioSpec {
    pub command: String,
    #[serde(default)]
    pub args: Vec<String>,
    #[serde(default)]
    pub env: HashMap<String, String>,
    #[serde(default)]
    pub cwd: Option<String>,
}

/// Arguments of `ObjectStorageToolset`, with their defaults filled in.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ObjectStorageToolsetSpec {
    /// Templated.
    pub path: Argument,
    /// Templated. Null: the worker's own credentials, or the connection that the path names.
    #[serde(default)]
    pub conn_id: Argument,
    pub max_files: i64,
    pub max_read_bytes: i64,
    pub max_output_bytes: i64,
    #[serde(default)]
    pub tool_prefix: String,
    #[serde(default)]
    pub max_retries: Option<u32>,
}

impl ObjectStorageToolsetSpec {
    /// The toolset's id, for messages.
    #[must_use]
    pub fn id(&self) -> String {
        let conn_id = match &self.conn_id {
            Argument::String(conn_id) if !conn_id.is_empty() => conn_id,
            _ => "default",
        };
        match self.tool_prefix.as_str() {
            "" => format!("object-storage-{conn_id}"),
            prefix => format!("object-storage-{conn_id}-{prefix}"),
        }
    }
}

/// Arguments of `AgentSkillsToolset`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SkillsToolsetSpec {
    pub sources: Vec<SkillSourceSpec>,
    #[serde(default)]
    pub exclude_tools: Vec<String>,
    #[serde(default)]
    pub exclude_resources: Vec<String>,
    #[serde(default)]
    pub max_retries: Option<u32>,
}

/// Where skills come from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SkillSourceSpec {
    /// A folder, as written.
    Folder(String),
    /// `GitSkills(...)`.
    Git {
        repo_url: String,
        #[serde(default)]
        conn_id: Option<String>,
        #[serde(default)]
        path: String,
        #[serde(default)]
        branch: Option<String>,
    },
    /// Something else: the name of its Python type.
    Other(String),
}
