//! One session with a server, whichever way it is reached.

use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rmcp::ClientHandler;
use rmcp::model::{
    CallToolRequestParams, CallToolResult, ClientCapabilities, ClientConfig, Implementation,
    JsonObject, ProtocolVersion, ServerPeerInfo, SubscriptionFilter, Tool,
};
use rmcp::service::{
    ClientInitializeError, ClientLifecycleMode, ClientServiceExt as _, NotificationContext,
    RoleClient, RunningService, ServiceError,
};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::async_rw::AsyncRwTransport;
use rmcp::transport::streamable_http_client::{
    StreamableHttpClientTransportConfig, StreamableHttpError,
};
use tokio::process::{ChildStdin, ChildStdout};
use tokio::task::JoinHandle;

use super::http;
use super::server::{HttpServer, Server, StdioServer, Transport};
use super::size_limit::{BoundedLines, TooLarge};
use super::slow_start::SlowStart;
use super::sse::{SseError, SseTransport};
use super::stdio::{Pipes, Process};
use super::watched_http::WatchedClient;

/// How long the goodbye to a server may take.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);

/// What a session is told by the server without having asked.
#[derive(Clone)]
struct Listener {
    tools_changed: Arc<AtomicBool>,
}

impl ClientHandler for Listener {
    fn get_info(&self) -> ClientConfig {
        ClientConfig::new(
            ClientCapabilities::default(),
            Implementation::new("updraft", env!("CARGO_PKG_VERSION")),
        )
    }

    async fn on_tool_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.tools_changed.store(true, Ordering::Release);
    }
}

/// An open session. Closing it ends a server that is a child process.
pub(super) struct Session {
    service: RunningService<RoleClient, Listener>,
    process: Option<Process>,
    subscription: Option<JoinHandle<()>>,
    tools_changed: Arc<AtomicBool>,
    too_large: TooLarge,
    read_timeout: Duration,
}

/// Why a request has no answer.
#[derive(Debug)]
pub(super) enum RequestError {
    /// The server refused it with this message.
    Refused(String),
    /// It did not answer in time.
    TimedOut(Duration),
    /// It does not know the session any more.
    SessionExpired,
    /// Its answer is larger than is taken.
    TooLarge,
    /// There is no way to the server any more.
    Broken(String),
}

impl Session {
    /// Reaches the server and shakes hands, within its time.
    ///
    /// # Errors
    /// What stands in Airflow's log after `Client failed to connect: `.
    pub(super) async fn connect(server: &Server) -> Result<Self, String> {
        match tokio::time::timeout(server.init_timeout, Self::begin(server)).await {
            Ok(connected) => connected,
            Err(_) => Err(format!(
                "the server did not answer within {} s",
                server.init_timeout.as_secs_f64()
            )),
        }
    }

    async fn begin(server: &Server) -> Result<Self, String> {
        let tools_changed = Arc::new(AtomicBool::new(false));
        let listener = Listener {
            tools_changed: Arc::clone(&tools_changed),
        };
        let too_large = TooLarge::default();
        let (service, process) = match &server.transport {
            Transport::Http(http) => {
                let service = over_http(http, server, listener, &too_large).await?;
                (service, None)
            }
            Transport::Sse(http) => {
                let silence = http.event_timeout.unwrap_or(server.read_timeout);
                let client = http::client(http, silence)?;
                let transport = SseTransport::connect(client, &http.url, too_large.clone())
                    .await
                    .map_err(|error| error.to_string())?;
                let service = listener
                    .serve_with_lifecycle(transport, ClientLifecycleMode::Initialize)
                    .await
                    .map_err(|error| init_text(&error))?;
                (service, None)
            }
            Transport::Stdio(stdio) => {
                let (service, process) = over_stdio(stdio, listener, &too_large).await?;
                (service, Some(process))
            }
        };
        let mut session = Self {
            service,
            process,
            subscription: None,
            tools_changed,
            too_large,
            read_timeout: server.read_timeout,
        };
        session.subscribe();
        Ok(session)
    }

    /// A server of the newest protocol tells of changes only who asks to be told.
    fn subscribe(&mut self) {
        let tells = self.service.peer_info().is_some_and(|info| {
            let tools = info.capabilities.tools.as_ref();
            !info.protocol_version.has_initialize()
                && tools.and_then(|tools| tools.list_changed) == Some(true)
        });
        if !tells {
            return;
        }
        let peer = self.service.peer().clone();
        let changed = Arc::clone(&self.tools_changed);
        self.subscription = Some(tokio::spawn(async move {
            let filter = SubscriptionFilter::builder().tools_list_changed().build();
            match peer.listen(filter).await {
                Ok(mut subscription) => {
                    while let Ok(Some(_)) = subscription.next().await {
                        changed.store(true, Ordering::Release);
                    }
                }
                Err(error) => {
                    tracing::warn!(%error, "an MCP server does not tell of changes to its tools");
                }
            }
        }));
    }

    /// What the server said of itself.
    pub(super) fn instructions(&self) -> Option<String> {
        let info: Arc<ServerPeerInfo> = self.service.peer_info()?;
        info.instructions.clone()
    }

    /// Has the server said since the last question that its tools have changed?
    pub(super) fn take_tools_changed(&self) -> bool {
        self.tools_changed.swap(false, Ordering::AcqRel)
    }

    pub(super) async fn list_tools(&self) -> Result<Vec<Tool>, RequestError> {
        self.in_time(self.service.list_all_tools()).await
    }

    pub(super) async fn call_tool(
        &self,
        name: &str,
        args: JsonObject,
    ) -> Result<CallToolResult, RequestError> {
        let params = CallToolRequestParams::new(name.to_owned()).with_arguments(args);
        self.in_time(self.service.call_tool(params)).await
    }

    async fn in_time<T>(
        &self,
        answer: impl Future<Output = Result<T, ServiceError>>,
    ) -> Result<T, RequestError> {
        match tokio::time::timeout(self.read_timeout, answer).await {
            Ok(answer) => answer.map_err(|error| {
                if self.too_large.is_noted() {
                    RequestError::TooLarge
                } else {
                    request_error(&error)
                }
            }),
            Err(_) => Err(RequestError::TimedOut(self.read_timeout)),
        }
    }

    pub(super) async fn close(mut self) {
        if let Some(subscription) = self.subscription.take() {
            subscription.abort();
        }
        match self.service.close_with_timeout(CLOSE_TIMEOUT).await {
            Ok(_) => {}
            Err(error) => tracing::warn!(%error, "an MCP session did not end well"),
        }
        if let Some(process) = self.process.take() {
            process.end().await;
        }
    }
}

/// First the newest protocol, then the older ones, as the Python client does.
fn lifecycle() -> ClientLifecycleMode {
    ClientLifecycleMode::Auto {
        preferred_versions: vec![ProtocolVersion::LATEST],
        legacy_version: Some(ProtocolVersion::LATEST_WITH_INITIALIZE),
    }
}

async fn over_http(
    http: &HttpServer,
    server: &Server,
    listener: Listener,
    too_large: &TooLarge,
) -> Result<RunningService<RoleClient, Listener>, String> {
    let client = http::client(http, server.read_timeout)?;
    // A new session is begun by the toolset, which has to ask for the tools again.
    let config = StreamableHttpClientTransportConfig::with_uri(http.url.as_str())
        .reinit_on_expired_session(false);
    let client = WatchedClient::new(client, too_large.clone());
    let transport = StreamableHttpClientTransport::with_client(client, config);
    listener
        .serve_with_lifecycle(transport, lifecycle())
        .await
        .map_err(|error| init_text(&error))
}

fn lines(
    (output, input): Pipes,
    too_large: &TooLarge,
) -> AsyncRwTransport<RoleClient, BoundedLines<ChildStdout>, ChildStdin> {
    AsyncRwTransport::new_client(BoundedLines::new(output, too_large.clone()), input)
}

async fn over_stdio(
    stdio: &StdioServer,
    listener: Listener,
    too_large: &TooLarge,
) -> Result<(RunningService<RoleClient, Listener>, Process), String> {
    let (process, pipes) = Process::start(stdio)?;
    let begun = listener
        .clone()
        .serve_with_lifecycle(SlowStart::new(lines(pipes, too_large)), lifecycle())
        .await;
    match begun {
        Ok(service) => return Ok((service, process)),
        // Some older servers end when the first thing they hear is not `initialize`.
        Err(ClientInitializeError::ConnectionClosed(_)) => drop(process),
        Err(error) => return Err(with_last_words(&error, process).await),
    }
    let (process, pipes) = Process::start(stdio)?;
    let begun = listener
        .serve_with_lifecycle(lines(pipes, too_large), ClientLifecycleMode::Initialize)
        .await;
    match begun {
        Ok(service) => Ok((service, process)),
        Err(error) => Err(with_last_words(&error, process).await),
    }
}

async fn with_last_words(error: &ClientInitializeError, process: Process) -> String {
    let text = match error {
        ClientInitializeError::ConnectionClosed(_) => {
            "Connection closed: the server ended before it had answered".to_owned()
        }
        other => init_text(other),
    };
    match process.last_words().await {
        said if said.is_empty() => text,
        said => format!("{text}. Its last words were:\n{said}"),
    }
}

fn init_text(error: &ClientInitializeError) -> String {
    match error {
        ClientInitializeError::TransportError { error, .. } => transport_text(error.error.as_ref()),
        ClientInitializeError::JsonRpcError(error) => error.message.to_string(),
        ClientInitializeError::LegacyFallbackFailed { fallback, .. } => init_text(fallback),
        ClientInitializeError::ConnectionClosed(_) => "Connection closed".to_owned(),
        other => other.to_string(),
    }
}

/// What the way to a server reports, without the names of the libraries on it.
fn transport_text(error: &(dyn Error + 'static)) -> String {
    let mut next = Some(error);
    while let Some(current) = next {
        if let Some(error) = current.downcast_ref::<reqwest::Error>() {
            return http::connect_text(error);
        }
        if let Some(error) = current.downcast_ref::<StreamableHttpError<reqwest::Error>>() {
            match error {
                StreamableHttpError::Client(error) => return http::connect_text(error),
                StreamableHttpError::AuthRequired(_) => {
                    return "HTTP 401 Unauthorized: check the password of the connection, or its token_provider"
                        .to_owned();
                }
                _ => {}
            }
        }
        next = current.source();
    }
    error.to_string()
}

fn request_error(error: &ServiceError) -> RequestError {
    match error {
        ServiceError::McpError(error) => RequestError::Refused(error.message.to_string()),
        ServiceError::TransportSend(error) => {
            let source: &(dyn Error + 'static) = error.error.as_ref();
            let sse = source.downcast_ref::<SseError>();
            if sse.is_some_and(SseError::session_expired) {
                return RequestError::SessionExpired;
            }
            match source.downcast_ref::<StreamableHttpError<reqwest::Error>>() {
                Some(StreamableHttpError::SessionExpired) => RequestError::SessionExpired,
                Some(StreamableHttpError::ResponseBodyTooLarge { .. }) => RequestError::TooLarge,
                _ => RequestError::Broken(transport_text(source)),
            }
        }
        ServiceError::TransportClosed => RequestError::Broken("Connection closed".to_owned()),
        other => RequestError::Broken(other.to_string()),
    }
}
