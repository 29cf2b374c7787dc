//! Our toolsets as an MCP server, for agents of other frameworks.

mod http;

use std::sync::Arc;

use axum::http::request::Parts;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, Implementation,
    ListToolsResult, PaginatedRequestParams, ResourceContents, ServerCapabilities, ServerConfig,
    Tool,
};
use rmcp::service::{RequestContext, RoleServer};
use rmcp::transport::common::http_header::HEADER_SESSION_ID;
use rmcp::{ErrorData, ServerHandler, ServiceExt as _};
use serde_json::{Map, Value};
use tokio::sync::RwLock;

use crate::agent::pydantic_json::compact_json;
use crate::agent::render::tool_result_text;
use crate::agent::{BinaryContent, ToolDefinition, ToolError, ToolOutput, Toolset};

pub use http::{HttpAddress, HttpError, serve_http};

/// Open toolsets with names of their own, as a server's tools. Clones share them.
#[derive(Clone)]
pub struct ToolsetServer {
    toolsets: Arc<[Arc<dyn Toolset>]>,
    /// Held for writing by a tool that runs alone, for reading by any other. Each session has its own.
    barrier: Arc<RwLock<()>>,
    /// The same for requests without a session: nobody knows which of them come from one client.
    sessionless: Arc<RwLock<()>>,
    name: String,
    instructions: Option<String>,
}

impl ToolsetServer {
    /// `name` is what clients show; `instructions` go to them at the start.
    #[must_use]
    pub fn new(toolsets: Vec<Arc<dyn Toolset>>, name: &str, instructions: Option<String>) -> Self {
        Self {
            toolsets: toolsets.into(),
            barrier: Arc::default(),
            sessionless: Arc::default(),
            name: name.to_owned(),
            instructions,
        }
    }

    /// The same toolsets for one session: a tool that runs alone does so in that session.
    #[must_use]
    pub fn for_session(&self) -> Self {
        Self {
            barrier: Arc::default(),
            ..self.clone()
        }
    }

    async fn find(
        &self,
        name: &str,
    ) -> Result<Option<(ToolDefinition, Arc<dyn Toolset>)>, ToolError> {
        for toolset in self.toolsets.iter() {
            let tools = toolset.tools().await?;
            if let Some(tool) = tools.into_iter().find(|tool| tool.name == name) {
                return Ok(Some((tool, Arc::clone(toolset))));
            }
        }
        Ok(None)
    }

    /// Whatever goes wrong with a tool is a result that says so: the client's model reads it.
    async fn call(
        &self,
        name: &str,
        args: &Map<String, Value>,
        barrier: &RwLock<()>,
    ) -> Result<CallToolResult, ErrorData> {
        let failed = |text: String| CallToolResult::error(vec![ContentBlock::text(text)]);
        let (tool, toolset) = match self.find(name).await {
            Ok(Some(found)) => found,
            Ok(None) => {
                let text = format!("Unknown tool: {name}");
                return Err(ErrorData::invalid_params(text, None));
            }
            Err(error) => return Ok(failed(format!("{name} failed: {error}"))),
        };
        let raw = Value::Object(args.clone()).to_string();
        let args = match toolset.validate(&tool, &raw).await {
            Ok(args) => args,
            Err(errors) => return Ok(failed(tool_result_text(&errors))),
        };
        let called = if tool.sequential {
            let _alone = barrier.write().await;
            toolset.call_for_files(name, args).await
        } else {
            let _beside = barrier.read().await;
            toolset.call_for_files(name, args).await
        };
        Ok(match called {
            Ok(output) => result(output),
            Err(ToolError::Retry(text) | ToolError::Failed(text)) => failed(text),
            Err(ToolError::Fatal(text)) => failed(format!("{name} failed: {text}")),
        })
    }

    /// Serves one client on standard input and output, until it closes them.
    ///
    /// # Errors
    /// The client does not speak the protocol.
    pub async fn serve_stdio(self) -> Result<(), String> {
        let running = self
            .serve(rmcp::transport::stdio_pipes())
            .await
            .map_err(|error| error.to_string())?;
        running.waiting().await.map_err(|error| error.to_string())?;
        Ok(())
    }
}

/// A value as content: text as it is, an object as structured content too, files as what they are.
fn result(output: ToolOutput) -> CallToolResult {
    let mut blocks = Vec::new();
    let items = match &output.content {
        Value::Array(items) if !output.files.is_empty() => items.as_slice(),
        one => std::slice::from_ref(one),
    };
    let mut files = output.files.iter().peekable();
    for item in items {
        let reference = files
            .peek()
            .map(|file| format!("See file {}.", file.identifier()));
        if reference.is_some()
            && item.as_str() == reference.as_deref()
            && let Some(file) = files.next()
        {
            blocks.push(file_block(file));
            continue;
        }
        blocks.push(ContentBlock::text(match item {
            Value::String(text) => text.clone(),
            Value::Null => String::new(),
            other => compact_json(other),
        }));
    }
    // Those that are named within a text.
    blocks.extend(files.map(file_block));
    let mut result = CallToolResult::success(blocks);
    if let content @ Value::Object(_) = output.content {
        result.structured_content = Some(content);
    }
    result
}

fn file_block(file: &BinaryContent) -> ContentBlock {
    if file.media_type.starts_with("image/") {
        return ContentBlock::image(file.base64(), file.media_type.as_str());
    }
    if file.media_type.starts_with("audio/") {
        return ContentBlock::audio(file.base64(), file.media_type.as_str());
    }
    ContentBlock::resource(ResourceContents::BlobResourceContents {
        uri: format!("updraft:file/{}", file.identifier()),
        mime_type: Some(file.media_type.clone()),
        blob: file.base64(),
        meta: None,
    })
}

fn described(tool: ToolDefinition) -> Tool {
    let schema = match tool.parameters {
        Value::Object(schema) => schema,
        _ => Map::new(),
    };
    Tool::new(tool.name, tool.description.unwrap_or_default(), schema)
}

impl ServerHandler for ToolsetServer {
    fn get_info(&self) -> ServerConfig {
        let mut info = ServerConfig::new(ServerCapabilities::builder().enable_tools().build());
        info.server_info = Implementation::new(self.name.clone(), env!("CARGO_PKG_VERSION"));
        info.instructions.clone_from(&self.instructions);
        info
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let mut tools = Vec::new();
        for toolset in self.toolsets.iter() {
            let listed = toolset
                .tools()
                .await
                .map_err(|error| ErrorData::internal_error(error.to_string(), None))?;
            tools.extend(listed.into_iter().map(described));
        }
        Ok(ListToolsResult::with_all_items(tools))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let args = request.arguments.unwrap_or_default();
        let sessionless = context
            .extensions
            .get::<Parts>()
            .is_some_and(|parts| !parts.headers.contains_key(HEADER_SESSION_ID));
        let barrier = if sessionless {
            &self.sessionless
        } else {
            &self.barrier
        };
        tokio::select! {
            biased;
            // Nobody waits for it any more: it must not hold up others.
            () = context.ct.cancelled() => {
                Err(ErrorData::internal_error("the call was cancelled", None))
            }
            called = self.call(&request.name, &args, barrier) => called.map(Into::into),
        }
    }
}

#[cfg(test)]
mod tests {
    use async_trait::async_trait;
    use pretty_assertions::assert_eq;
    use serde_json::json;

    use super::*;

    /// Tools that end in every way that a tool can end.
    struct Dock;

    #[async_trait]
    impl Toolset for Dock {
        fn id(&self) -> String {
            "dock".to_owned()
        }

        fn label(&self) -> &str {
            "Dock"
        }

        async fn tools(&self) -> Result<Vec<ToolDefinition>, ToolError> {
            let tool = |name: &str| ToolDefinition {
                name: name.to_owned(),
                description: None,
                parameters: json!({"type": "object", "properties": {"n": {"type": "integer"}},
                                   "additionalProperties": false}),
                sequential: name == "retry",
                max_retries: None,
            };
            Ok(["value", "photo", "retry", "fatal"].map(tool).to_vec())
        }

        async fn call(&self, name: &str, args: Map<String, Value>) -> Result<Value, ToolError> {
            match name {
                "retry" => Err(ToolError::Retry("the crane is stuck".to_owned())),
                "fatal" => Err(ToolError::Fatal("no crane".to_owned())),
                _ => Ok(json!({ "args": args })),
            }
        }

        async fn call_for_files(
            &self,
            name: &str,
            args: Map<String, Value>,
        ) -> Result<ToolOutput, ToolError> {
            use crate::agent::binary_content::ToolOutputItem;

            if name != "photo" {
                return self.call(name, args).await.map(ToolOutput::from);
            }
            Ok(ToolOutput::of_items(vec![
                ToolOutputItem::Value("the ship".into()),
                ToolOutputItem::File(BinaryContent {
                    data: b"%PDF".to_vec(),
                    media_type: "image/png".to_owned(),
                }),
            ]))
        }
    }

    async fn called(name: &str, args: Value) -> Value {
        let server = ToolsetServer::new(vec![Arc::new(Dock)], "dock", None);
        let args = args.as_object().unwrap().clone();
        let called = server.call(name, &args, &RwLock::default()).await;
        serde_json::to_value(called.unwrap()).unwrap()
    }

    #[tokio::test]
    async fn results_are_content_and_objects_structured_content_as_well() {
        let result = called("value", json!({"n": "3"})).await;
        assert_eq!(
            result["content"],
            json!([{"type": "text", "text": "{\"args\":{\"n\":3}}"}])
        );
        assert_eq!(result["structuredContent"], json!({"args": {"n": 3}}));
        assert_eq!(
            called("photo", json!({})).await["content"],
            json!([
                {"type": "text", "text": "the ship"},
                {"type": "image", "data": "JVBERg==", "mimeType": "image/png"},
            ])
        );
    }

    #[tokio::test]
    async fn whatever_goes_wrong_is_a_result_that_says_so() {
        for (name, args, text) in [
            ("retry", json!({}), "the crane is stuck"),
            ("fatal", json!({}), "fatal failed: no crane"),
        ] {
            let result = called(name, args).await;
            assert_eq!(
                (
                    result["isError"].clone(),
                    result["content"][0]["text"].clone()
                ),
                (json!(true), json!(text))
            );
        }
        let result = called("value", json!({"n": "x", "m": 1})).await;
        assert_eq!(result["isError"], json!(true));
        let text = result["content"][0]["text"].as_str().unwrap();
        assert!(
            text.contains("int_parsing") && text.contains("extra_forbidden"),
            "{text}"
        );
    }

    #[tokio::test]
    async fn an_unknown_tool_is_an_error_of_the_protocol() {
        let server = ToolsetServer::new(vec![Arc::new(Dock)], "dock", None);
        let called = server.call("sink", &Map::new(), &RwLock::default()).await;
        assert_eq!(called.unwrap_err().message, "Unknown tool: sink");
    }

    /// A tool that runs alone and never ends, and one that ends at once.
    #[derive(Default)]
    struct Lock(tokio::sync::Notify);

    #[async_trait]
    impl Toolset for Lock {
        fn id(&self) -> String {
            "lock".to_owned()
        }

        fn label(&self) -> &str {
            "Lock"
        }

        async fn tools(&self) -> Result<Vec<ToolDefinition>, ToolError> {
            let tool = |name: &str| ToolDefinition {
                name: name.to_owned(),
                description: None,
                parameters: json!({"type": "object"}),
                sequential: name == "fill",
                max_retries: None,
            };
            Ok(["fill", "look"].map(tool).to_vec())
        }

        async fn call(&self, name: &str, _: Map<String, Value>) -> Result<Value, ToolError> {
            if name == "fill" {
                self.0.notify_one();
                std::future::pending::<()>().await;
            }
            Ok("empty".into())
        }
    }

    #[tokio::test]
    async fn a_call_that_the_client_cancels_holds_up_no_other() {
        use rmcp::model::{CallToolRequest, ClientRequest};
        use rmcp::service::PeerRequestOptions;

        let lock = Arc::new(Lock::default());
        let toolsets: Vec<Arc<dyn Toolset>> = vec![Arc::clone(&lock) as _];
        let server = ToolsetServer::new(toolsets, "lock", None);
        let (ours, theirs) = tokio::io::duplex(4096);
        let (served, client) = tokio::join!(server.serve(ours), ().serve(theirs));
        let (_served, client) = (served.unwrap(), client.unwrap());
        let params = |name: &str| CallToolRequestParams::new(name.to_owned());
        let filling = ClientRequest::CallToolRequest(CallToolRequest::new(params("fill")));
        let filling = client
            .send_cancellable_request(filling, PeerRequestOptions::no_options())
            .await
            .unwrap();
        lock.0.notified().await;
        filling.cancel(None).await.unwrap();
        let looked = client.call_tool(params("look"));
        let looked = tokio::time::timeout(std::time::Duration::from_secs(30), looked).await;
        assert!(looked.unwrap().is_ok());
    }

    #[tokio::test]
    async fn a_tool_that_runs_alone_does_so_in_its_own_session() {
        let server = ToolsetServer::new(vec![Arc::new(Lock::default())], "lock", None);
        let (one, other) = (server.for_session(), server.for_session());
        let none = Map::new();
        tokio::select! {
            biased;
            _ = one.call("fill", &none, &one.barrier) => panic!("it ended"),
            looked = other.call("look", &none, &other.barrier) => assert!(looked.is_ok()),
        }
    }

    #[test]
    fn a_file_that_is_named_within_a_text_comes_after_it() {
        let file = BinaryContent {
            data: b"%PDF".to_vec(),
            media_type: "image/png".to_owned(),
        };
        let text = format!("The ship: See file {}.", file.identifier());
        let output = ToolOutput {
            content: text.as_str().into(),
            files: vec![file],
        };
        assert_eq!(
            serde_json::to_value(result(output)).unwrap()["content"],
            json!([
                {"type": "text", "text": text},
                {"type": "image", "data": "JVBERg==", "mimeType": "image/png"},
            ])
        );
    }
}
