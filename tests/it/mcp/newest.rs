//! A server of the newest protocol that tells of changes, made with `rmcp`: FastMCP's does not.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use pretty_assertions::assert_eq;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ListToolsResult,
    PaginatedRequestParams, ServerCapabilities, ServerConfig, SubscriptionFilter, Tool,
};
use rmcp::service::{RequestContext, RoleServer, SubscriptionContext};
use rmcp::transport::StreamableHttpService;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::{ErrorData, ServerHandler};
use serde_json::Map;
use tokio::sync::Notify;

use updraft::agent::Toolset;
use updraft::secrets::Masker;
use updraft::toolset::mcp::server::{HttpServer, Server, Transport};
use updraft::toolset::mcp::{McpToolset, McpToolsetConfig, Source};

#[derive(Default)]
struct Yard {
    hired: AtomicBool,
    lists: AtomicUsize,
    listened: Notify,
    changed: Notify,
}

#[derive(Clone, Default)]
struct Dock(Arc<Yard>);

impl ServerHandler for Dock {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder()
            .enable_tools()
            .enable_tool_list_changed();
        ServerConfig::new(capabilities.build())
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        self.0.lists.fetch_add(1, Ordering::Relaxed);
        let hired = self.0.hired.load(Ordering::Relaxed);
        let names = ["hire"].into_iter().chain(hired.then_some("crane"));
        let tools = names.map(|name| Tool::new(name, "", Map::new()));
        Ok(ListToolsResult::with_all_items(tools.collect()))
    }

    async fn call_tool(
        &self,
        _: CallToolRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        self.0.hired.store(true, Ordering::Relaxed);
        self.0.changed.notify_one();
        Ok(CallToolResult::success(Vec::new()).into())
    }

    fn accepted_subscription_filter(
        &self,
        requested: &SubscriptionFilter,
    ) -> Option<SubscriptionFilter> {
        Some(requested.clone())
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        self.0.listened.notify_one();
        loop {
            tokio::select! {
                () = context.cancelled() => return Ok(()),
                () = self.0.changed.notified() => {
                    context.sink().notify_tool_list_changed().await.unwrap();
                }
            }
        }
    }
}

#[tokio::test]
async fn the_list_of_tools_is_kept_until_a_server_of_the_newest_protocol_says_that_it_changed() {
    let dock = Dock::default();
    let served = dock.clone();
    let service = StreamableHttpService::new(
        move || Ok(served.clone()),
        Arc::new(LocalSessionManager::default()),
        rmcp::transport::StreamableHttpServerConfig::default(),
    );
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    let router = axum::Router::new().route_service("/mcp", service);
    tokio::spawn(async move { axum::serve(listener, router).await });
    let server = Server {
        transport: Transport::Http(HttpServer {
            url,
            headers: Vec::new(),
            event_timeout: None,
        }),
        init_timeout: Duration::from_secs(60),
        read_timeout: Duration::from_secs(60),
    };
    let config = McpToolsetConfig::default();
    let toolset = McpToolset::new(config, Source::Server(server), Masker::new());
    toolset.open().await.unwrap();
    let listened = dock.0.listened.notified();
    tokio::time::timeout(Duration::from_secs(30), listened)
        .await
        .expect("it did not ask to be told of changes");
    for _ in 0..2 {
        assert_eq!(toolset.tools().await.unwrap().len(), 1);
    }
    assert_eq!(dock.0.lists.load(Ordering::Relaxed), 1);
    toolset.call("hire", Map::new()).await.unwrap();
    let started = Instant::now();
    while toolset.tools().await.unwrap().len() == 1 {
        assert!(started.elapsed() < Duration::from_secs(30));
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(dock.0.lists.load(Ordering::Relaxed), 2);
    toolset.close().await;
}
