//! The toolset itself, against servers over all three transports.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use pretty_assertions::assert_eq;
use serde_json::{Map, Value, json};

use super::{Dock, dock_script, eventually, python, runs};
use updraft::agent::{ToolError, ToolOutput, Toolset};
use updraft::airflow::connection::Connection;
use updraft::hook::{ConnectionError, ConnectionSource};
use updraft::secrets::Masker;
use updraft::toolset::mcp::server::{HttpServer, READ_TIMEOUT, Server, StdioServer, Transport};
use updraft::toolset::mcp::{McpToolset, McpToolsetConfig, Provider, Source};

/// Long enough for a Python on a busy machine.
const INIT_TIMEOUT: Duration = Duration::from_secs(60);

fn config() -> McpToolsetConfig {
    McpToolsetConfig {
        id: "mcp-dock".to_owned(),
        label: "MCPToolset".to_owned(),
        ..McpToolsetConfig::default()
    }
}

fn server(transport: Transport) -> Server {
    Server {
        transport,
        init_timeout: INIT_TIMEOUT,
        read_timeout: READ_TIMEOUT,
    }
}

fn stdio(command: &str, args: &[&str]) -> Transport {
    Transport::Stdio(StdioServer {
        command: command.to_owned(),
        args: args.iter().map(|arg| (*arg).to_owned()).collect(),
        env: BTreeMap::new(),
        cwd: None,
    })
}

fn http(dock: &Dock) -> Transport {
    let server = HttpServer {
        url: dock.url(),
        headers: Vec::new(),
        event_timeout: None,
    };
    if dock.path == "sse" {
        Transport::Sse(server)
    } else {
        Transport::Http(server)
    }
}

fn toolset(transport: Transport) -> McpToolset {
    McpToolset::new(config(), Source::Server(server(transport)), Masker::new())
}

async fn call(toolset: &McpToolset, name: &str, args: Value) -> Result<ToolOutput, ToolError> {
    let args = args.as_object().unwrap().clone();
    toolset.call_for_files(name, args).await
}

async fn names(toolset: &McpToolset) -> Vec<String> {
    let tools = toolset.tools().await.unwrap();
    tools.into_iter().map(|tool| tool.name).collect()
}

/// One connection, whatever its id.
struct OneConnection(Connection);

#[async_trait::async_trait]
impl ConnectionSource for OneConnection {
    async fn connection(&self, _: &str) -> Result<Connection, ConnectionError> {
        Ok(self.0.clone())
    }
}

fn connected(
    host: &str,
    password: Option<&str>,
    extra: &Value,
    token_provider: Option<Provider>,
    env_provider: Option<Provider>,
    masker: Masker,
) -> McpToolset {
    let connection = Connection {
        conn_id: "dock".to_owned(),
        conn_type: "mcp".to_owned(),
        host: Some(host.to_owned()),
        password: password.map(str::to_owned),
        extra: Some(extra.to_string()),
        ..Connection::default()
    };
    let source = Source::Connection {
        mcp_conn_id: "dock".to_owned(),
        connections: Arc::new(OneConnection(connection)),
        token_provider,
        env_provider,
    };
    McpToolset::new(config(), source, masker)
}

async fn shows_everything(toolset: McpToolset) {
    toolset.open().await.unwrap();
    assert_eq!(
        names(&toolset).await,
        [
            "add",
            "ship",
            "photo",
            "papers",
            "fail",
            "environment",
            "token",
            "process",
            "wait",
            "manifest",
            "hire"
        ]
    );
    let tools = toolset.tools().await.unwrap();
    assert_eq!(tools[0].description.as_deref(), Some("Add two numbers."));
    assert_eq!(tools[0].parameters["required"], json!(["a"]));
    assert!(!tools[0].sequential);

    let add = call(&toolset, "add", json!({"a": 2, "b": 3}))
        .await
        .unwrap();
    assert_eq!(add, json!(5).into());
    let ship = call(&toolset, "ship", json!({"name": "Aurora"})).await;
    assert_eq!(
        ship.unwrap(),
        json!({"name": "Aurora", "length": 40.5}).into()
    );
    let photo = call(&toolset, "photo", json!({})).await.unwrap();
    assert_eq!(photo.content, json!("See file 4a5eb7."));
    assert_eq!(photo.files[0].media_type, "image/png");
    let papers = call(&toolset, "papers", json!({})).await.unwrap();
    assert_eq!(
        papers.content,
        json!([
            "caption",
            "See file 39b6d7.",
            "See file 39b6d7.",
            "dock:berth/7"
        ])
    );
    let types: Vec<_> = papers.files.iter().map(|file| &file.media_type).collect();
    assert_eq!(types, ["audio/wav", "application/pdf"]);

    let Err(ToolError::Retry(text)) = call(&toolset, "fail", json!({})).await else {
        panic!("no retry")
    };
    assert_eq!(text, "the crane is stuck");
    // What the schema would refuse is for the server to judge.
    let Err(ToolError::Retry(text)) = call(&toolset, "add", json!({"a": "x"})).await else {
        panic!("no retry")
    };
    assert!(text.contains("1 validation error for call[add]"), "{text}");
    let Err(ToolError::Retry(text)) = call(&toolset, "sink", json!({})).await else {
        panic!("no retry")
    };
    assert!(text.contains("sink"), "{text}");
    toolset.close().await;
    assert!(matches!(
        call(&toolset, "add", json!({"a": 1})).await,
        Err(ToolError::Fatal(_))
    ));
}

#[tokio::test]
async fn a_stdio_server_gives_its_tools_and_their_results() {
    shows_everything(toolset(stdio(&python(), &[&dock_script(), "stdio"]))).await;
}

#[tokio::test]
async fn a_streamable_http_server_gives_its_tools_and_their_results() {
    let dock = Dock::start("http", false, None);
    shows_everything(toolset(http(&dock))).await;
}

#[tokio::test]
async fn a_streamable_http_server_of_an_older_protocol_gives_the_same() {
    let dock = Dock::start("http", true, None);
    shows_everything(toolset(http(&dock))).await;
}

#[tokio::test]
async fn a_server_with_server_sent_events_gives_the_same() {
    let dock = Dock::start("sse", false, None);
    shows_everything(toolset(http(&dock))).await;
}

#[tokio::test]
async fn a_session_that_the_server_forgot_is_begun_again() {
    for mode in ["http", "sse"] {
        let dock = Dock::start(mode, true, None);
        let toolset = toolset(http(&dock));
        toolset.open().await.unwrap();
        names(&toolset).await;
        assert_eq!(dock.get("sessions").await, 1, "{mode}");
        assert_eq!(dock.get("lists").await, 1, "{mode}");
        assert_eq!(dock.get("forget").await, 1, "{mode}");
        let both = tokio::join!(
            call(&toolset, "add", json!({"a": 1})),
            call(&toolset, "add", json!({"a": 2}))
        );
        assert_eq!(both.0.unwrap(), json!(2).into(), "{mode}");
        assert_eq!(both.1.unwrap(), json!(3).into(), "{mode}");
        assert_eq!(dock.get("sessions").await, 2, "{mode}");
        // Who has forgotten the session may have other tools as well.
        names(&toolset).await;
        assert_eq!(dock.get("lists").await, 2, "{mode}");
        toolset.close().await;
    }
}

#[tokio::test]
async fn the_list_of_tools_is_kept_until_the_server_says_that_it_changed() {
    for mode in ["http", "sse"] {
        let dock = Dock::start(mode, true, None);
        let toolset = toolset(http(&dock));
        toolset.open().await.unwrap();
        let before = names(&toolset).await;
        call(&toolset, "add", json!({"a": 1})).await.unwrap();
        assert_eq!(names(&toolset).await, before);
        assert_eq!(dock.get("lists").await, 1, "{mode}");
        call(&toolset, "hire", json!({"name": "crane"}))
            .await
            .unwrap();
        // The notification may arrive after the answer.
        let started = Instant::now();
        while names(&toolset).await.len() == before.len() {
            assert!(started.elapsed() < Duration::from_secs(10), "{mode}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        assert_eq!(dock.get("lists").await, 2, "{mode}");
        assert_eq!(names(&toolset).await.last().unwrap(), "crane", "{mode}");
        let at_work = call(&toolset, "crane", json!({})).await.unwrap();
        assert_eq!(at_work, json!("crane at work").into(), "{mode}");
        toolset.close().await;
    }
}

#[tokio::test]
async fn a_token_goes_with_every_request_and_stands_in_no_error() {
    for mode in ["http", "sse"] {
        let dock = Dock::start(mode, true, Some("made-up-token"));
        let extra = json!({ "transport": mode });
        let made = |password| connected(&dock.url(), password, &extra, None, None, Masker::new());
        let toolset = made(Some("made-up-token"));
        toolset.open().await.unwrap();
        let add = call(&toolset, "add", json!({"a": 1})).await.unwrap();
        assert_eq!(add, json!(2).into());
        toolset.close().await;
        let error = made(Some("wrong-token"))
            .open()
            .await
            .unwrap_err()
            .to_string();
        assert!(error.starts_with("Client failed to connect: "), "{error}");
        assert!(error.contains("401"), "{error}");
        assert!(!error.contains("wrong-token"), "{error}");
    }
}

#[tokio::test]
async fn a_token_provider_is_called_once_and_its_token_masked() {
    let dock = Dock::start("http", true, Some("minted-token"));
    let calls = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&calls);
    let provider: Provider = Arc::new(move || {
        counted.fetch_add(1, Ordering::Relaxed);
        Box::pin(async { Ok(json!("minted-token")) })
    });
    let masker = Masker::new();
    let toolset = connected(
        &dock.url(),
        Some("stale-token"),
        &json!({}),
        Some(provider),
        None,
        masker.clone(),
    );
    toolset.open().await.unwrap();
    let said = call(&toolset, "token", json!({})).await.unwrap();
    assert_eq!(masker.mask_value(said.content), json!("***"));
    toolset.close().await;
    toolset.open().await.unwrap();
    toolset.close().await;
    assert_eq!(calls.load(Ordering::Relaxed), 1);
}

#[tokio::test]
async fn a_stdio_server_sees_its_variables_and_none_of_the_workers() {
    let provider: Provider =
        Arc::new(|| Box::pin(async { Ok(json!({"DOCK_TOKEN": "minted-token"})) }));
    let masker = Masker::new();
    let extra = json!({"transport": "stdio", "command": python(), "args": [dock_script(), "stdio"],
                       "timeout": 60, "env": {"DOCK_TOKEN": "old", "DOCK": "north"}});
    let toolset = connected("", None, &extra, None, Some(provider), masker.clone());
    toolset.open().await.unwrap();
    let seen = call(&toolset, "environment", json!({})).await.unwrap();
    let mut expected = vec!["DOCK", "DOCK_TOKEN"];
    expected.extend(
        ["HOME", "LOGNAME", "PATH", "SHELL", "TERM", "USER"]
            .into_iter()
            .filter(|name| std::env::var_os(name).is_some()),
    );
    expected.sort_unstable();
    let seen: Vec<&str> = seen
        .content
        .as_array()
        .unwrap()
        .iter()
        .filter_map(Value::as_str)
        // Python sets this one itself when it finds no locale.
        .filter(|name| *name != "LC_CTYPE")
        .collect();
    assert_eq!(seen, expected);
    let said = call(&toolset, "token", json!({})).await.unwrap();
    assert_eq!(said, json!("minted-token").into());
    assert_eq!(masker.mask_str("minted-token"), "***");
    toolset.close().await;
}

#[tokio::test]
async fn calls_of_one_turn_run_side_by_side() {
    for mode in ["http", "sse"] {
        let dock = Dock::start(mode, false, None);
        let toolset = toolset(http(&dock));
        toolset.open().await.unwrap();
        let started = Instant::now();
        let wait = || call(&toolset, "wait", json!({"seconds": 1.5}));
        let (one, two, three) = tokio::join!(wait(), wait(), wait());
        for waited in [one, two, three] {
            assert_eq!(waited.unwrap(), json!("waited").into());
        }
        assert!(started.elapsed() < Duration::from_secs(4), "{mode}");
        toolset.close().await;
    }
}

#[tokio::test]
async fn a_server_that_does_not_answer_in_time_is_a_retry() {
    let dock = Dock::start("http", false, None);
    let mut server = server(http(&dock));
    server.read_timeout = Duration::from_millis(1500);
    let toolset = McpToolset::new(config(), Source::Server(server), Masker::new());
    toolset.open().await.unwrap();
    let answer = call(&toolset, "wait", json!({"seconds": 20})).await;
    let Err(ToolError::Retry(text)) = answer else {
        panic!("{answer:?}")
    };
    assert!(
        text.starts_with("Timed out while waiting for response"),
        "{text}"
    );
    toolset.close().await;
}

#[tokio::test]
async fn an_answer_that_is_too_large_fails_the_run_at_once() {
    let dock = Dock::start("sse", true, None);
    let streamable = Dock::start("http", false, None);
    let over_stdio = stdio(&python(), &[&dock_script(), "stdio"]);
    for (way, transport) in [
        ("stdio", over_stdio),
        ("sse", http(&dock)),
        ("streamable HTTP", http(&streamable)),
    ] {
        let toolset = toolset(transport);
        toolset.open().await.unwrap();
        let fits = call(&toolset, "manifest", json!({"mebibytes": 2})).await;
        assert_eq!(
            fits.unwrap().content.as_str().unwrap().len(),
            2 << 20,
            "{way}"
        );
        let started = Instant::now();
        let answer = call(&toolset, "manifest", json!({"mebibytes": 17})).await;
        assert!(started.elapsed() < Duration::from_secs(60), "{way}");
        let Err(ToolError::Fatal(text)) = answer else {
            panic!("{way}")
        };
        assert_eq!(
            text,
            "the MCP server answered manifest with more than 16 MiB, which is the most that is taken: ask it for less \
             at a time",
            "{way}"
        );
        toolset.close().await;
    }
}

#[tokio::test]
async fn a_server_that_is_not_there_fails_the_run() {
    let gone = "http://127.0.0.1:9/mcp";
    for extra in [json!({}), json!({"transport": "sse"})] {
        let toolset = connected(gone, None, &extra, None, None, Masker::new());
        assert_eq!(
            toolset.open().await.unwrap_err().to_string(),
            "Client failed to connect: All connection attempts failed"
        );
    }
}

#[tokio::test]
async fn a_server_that_can_not_start_says_why() {
    let script = "import sys; sys.exit('there is no dock here')";
    let error = toolset(stdio(&python(), &["-c", script]))
        .open()
        .await
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "Client failed to connect: Connection closed: the server ended before it had answered. Its last words were:\n\
         there is no dock here"
    );
    let mut silent = server(stdio("sleep", &["300"]));
    silent.init_timeout = Duration::from_millis(300);
    let silent = McpToolset::new(config(), Source::Server(silent), Masker::new());
    assert_eq!(
        silent.open().await.unwrap_err().to_string(),
        "Client failed to connect: the server did not answer within 0.3 s"
    );
}

#[tokio::test]
async fn a_server_that_knows_only_the_older_protocol_is_spoken_to_again() {
    // It ends when the first thing it hears is not `initialize`.
    let script = r#"
import json, sys
for line in sys.stdin:
    said = json.loads(line)
    if said["method"] == "initialize":
        result = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "o", "version": "1"}}
    elif said["method"] == "tools/list":
        result = {"tools": [{"name": "old", "inputSchema": {"type": "object"}}]}
    elif "id" in said:
        sys.exit(1)
    else:
        continue
    print(json.dumps({"jsonrpc": "2.0", "id": said["id"], "result": result}), flush=True)
"#;
    let toolset = toolset(stdio(&python(), &["-c", script]));
    toolset.open().await.unwrap();
    let tools = toolset.tools().await.unwrap();
    assert_eq!(
        (tools[0].name.as_str(), &tools[0].description),
        ("old", &None)
    );
    toolset.close().await;
}

#[tokio::test]
async fn a_server_may_take_its_time_to_start() {
    let script = format!("sleep 11; exec {} {} stdio", python(), dock_script());
    let toolset = toolset(stdio("sh", &["-c", &script]));
    toolset.open().await.unwrap();
    let add = call(&toolset, "add", json!({"a": 1})).await.unwrap();
    assert_eq!(add, json!(2).into());
    toolset.close().await;
}

#[tokio::test]
async fn a_server_that_dies_in_a_call_fails_the_run() {
    let toolset = toolset(stdio(&python(), &[&dock_script(), "stdio"]));
    toolset.open().await.unwrap();
    let pid = call(&toolset, "process", json!({})).await.unwrap().content;
    let pid = i32::try_from(pid.as_i64().unwrap()).unwrap();
    let killed = async {
        tokio::time::sleep(Duration::from_millis(300)).await;
        nix::sys::signal::kill(
            nix::unistd::Pid::from_raw(pid),
            nix::sys::signal::Signal::SIGKILL,
        )
        .unwrap();
    };
    let (answer, ()) = tokio::join!(call(&toolset, "wait", json!({"seconds": 60})), killed);
    let Err(ToolError::Fatal(text)) = answer else {
        panic!("{answer:?}")
    };
    assert_eq!(text, "Client failed to connect: Connection closed");
    toolset.close().await;
}

#[tokio::test]
async fn a_toolset_that_is_dropped_in_a_call_leaves_no_process() {
    let toolset = toolset(stdio(&python(), &[&dock_script(), "stdio"]));
    toolset.open().await.unwrap();
    let pid = call(&toolset, "process", json!({})).await.unwrap().content;
    let waiting = call(&toolset, "wait", json!({"seconds": 60}));
    assert!(
        tokio::time::timeout(Duration::from_millis(200), waiting)
            .await
            .is_err()
    );
    assert!(runs(&pid.to_string()));
    drop(toolset);
    eventually("the server still runs", || !runs(&pid.to_string()));
}

#[tokio::test]
async fn what_the_server_says_of_itself_is_told_only_when_it_is_wanted() {
    let dock = Dock::start("http", false, None);
    for (wanted, expected) in [(false, None), (true, Some("Ask the harbour master."))] {
        let config = McpToolsetConfig {
            include_instructions: wanted,
            ..config()
        };
        let toolset = McpToolset::new(config, Source::Server(server(http(&dock))), Masker::new());
        toolset.open().await.unwrap();
        assert_eq!(toolset.instructions().await.unwrap().as_deref(), expected);
        toolset.close().await;
    }
}

#[tokio::test]
async fn arguments_only_have_to_be_an_object() {
    let toolset = toolset(stdio("true", &[]));
    let tool = updraft::agent::ToolDefinition {
        name: "add".to_owned(),
        description: None,
        parameters: json!({"type": "object", "required": ["a"], "additionalProperties": false}),
        sequential: false,
        max_retries: None,
    };
    assert_eq!(
        toolset.validate(&tool, "{\"z\": [1]}").await.unwrap(),
        Map::from_iter([("z".to_owned(), json!([1]))])
    );
    let refused = toolset.validate(&tool, "[1]").await.unwrap_err();
    assert_eq!(refused[0]["type"], "dict_type");
}
