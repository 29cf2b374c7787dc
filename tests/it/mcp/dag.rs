//! Dags whose agents use MCP servers, run by `updraft run` with a scripted model; and what becomes of the servers.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use super::{Dock, dock_script, eventually, python, runs};
use crate::local_run::{agent_file, events, run, task, updraft};

/// A Dag file whose agent makes these calls, one a turn.
struct Played {
    _folder: tempfile::TempDir,
    file: PathBuf,
}

impl Played {
    fn new(module: &str, toolsets: &str, calls: &[(&str, Value)], connections: &Value) -> Self {
        let module = format!(
            "from airflow.providers.common.ai.toolsets.logging import LoggingToolset\n\
             from airflow.providers.common.ai.toolsets.mcp import MCPToolset\n{module}"
        );
        let (folder, file) = agent_file(&module, toolsets, calls, connections);
        Self {
            _folder: folder,
            file,
        }
    }

    fn run(&self) -> Value {
        run(&self.file, &[]).1
    }

    /// Where the servers that [`counted`] makes leave their process ids.
    fn pids(&self) -> Vec<String> {
        let text = fs::read_to_string(self.file.with_file_name("pids")).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }
}

/// The log lines of tool calls, without their durations.
fn tool_lines(report: &Value) -> Vec<String> {
    events(task(report, "ask", -1))
        .into_iter()
        .filter(|event| event.starts_with("Tool ") && !event.starts_with("Tool call sequence"))
        .map(|event| match event.split_once(" after ") {
            Some((before, after)) => {
                let text = after.split_once(": ").map(|(_, text)| text);
                format!("{before}: {}", text.unwrap_or_default())
            }
            None => event.split(" in ").next().unwrap_or_default().to_owned(),
        })
        .collect()
}

fn error(report: &Value) -> &str {
    task(report, "ask", -1)["error"]
        .as_str()
        .unwrap_or_default()
}

/// Python source of a direct stdio server; its process id goes into the file `pids` beside the Dag file.
fn counted(class: &str) -> String {
    format!(
        "{class}(\"sh\", args=[\"-c\", \"echo $$ >> \" + str(HERE / \"pids\") + \"; exec {} {} stdio\"], timeout=60)",
        python(),
        dock_script()
    )
}

const DIRECT: &str = "from pathlib import Path\n\
    from pydantic_ai.mcp import MCPServerSSE, MCPServerStdio, MCPServerStreamableHTTP, MCPToolset as Direct\n\
    from fastmcp.client.transports import StdioTransport\n\
    HERE = Path(__file__).parent\n";

#[test]
fn a_dag_names_servers_by_connection_with_prefixes_and_functions_for_secrets() {
    let http = Dock::start("http", false, Some("minted-token"));
    let module = "\
def mint():\n    print('minting')\n    return 'minted-token'\n\
def environment():\n    from airflow.sdk.bases.hook import BaseHook\n    \
return {'DOCK_TOKEN': BaseHook.get_connection('vault').password}\n";
    let toolsets = "[MCPToolset('north', tool_prefix='north', token_provider=mint), \
         MCPToolset('{{ \"south\" }}', env_provider=environment)\
         .filtered(lambda ctx, tool: tool.name in ('add', 'token')).prefixed('south')]";
    let played = Played::new(
        module,
        toolsets,
        &[
            ("north_add", json!({"a": 1})),
            ("south_add", json!({"a": 1})),
            ("south_fail", json!({})),
            ("north_fail", json!({})),
            ("south_token", json!({})),
        ],
        &json!({
            "north": {"conn_type": "mcp", "host": http.url(), "password": "stale"},
            "south": {"conn_type": "mcp", "extra": {"transport": "stdio", "command": python(),
                      "args": [dock_script(), "stdio"], "timeout": 60}},
            "vault": {"conn_type": "generic", "password": "made-up-secret"},
        }),
    );
    let report = played.run();
    assert_eq!(task(&report, "ask", -1)["state"], "success", "{report:#}");
    assert_eq!(
        tool_lines(&report),
        [
            "Tool north_add returned",
            "Tool south_add returned",
            "Tool north_fail requested ModelRetry: the crane is stuck",
            "Tool south_token returned",
        ]
    );
    let events = events(task(&report, "ask", -1));
    let minted = events.iter().filter(|event| **event == "minting").count();
    assert_eq!(minted, 1);
    assert!(events.contains(&"Rendered toolset mcp-south"));
    let text = report.to_string();
    assert!(!text.contains("minted-token") && !text.contains("made-up-secret"));
}

#[test]
fn dag_code_around_a_server_calls_the_functions_for_its_secrets_itself() {
    let http = Dock::start("http", false, Some("minted-token"));
    let module = "\
from pydantic_ai.toolsets import WrapperToolset\n\
def mint():\n    print('minting')\n    return 'minted-token'\n\
def environment():\n    return {'DOCK_TOKEN': 'made-up-secret'}\n\
async def all_of_them(ctx, tools):\n    return tools\n\
class Told(WrapperToolset):\n    async def call_tool(self, name, tool_args, ctx, tool):\n        \
print('said', await super().call_tool(name, tool_args, ctx, tool))\n";
    let toolsets = "[MCPToolset('north', token_provider=mint).prepared(all_of_them), \
         Told(MCPToolset('south', tool_prefix='south', env_provider=environment))]";
    let connections = json!({
        "north": {"conn_type": "mcp", "host": http.url(), "password": "stale"},
        "south": {"conn_type": "mcp", "extra": {"transport": "stdio", "command": python(),
                  "args": [dock_script(), "stdio"], "timeout": 60}},
    });
    let calls = [
        ("add", json!({"a": 1})),
        ("add", json!({"a": 2})),
        ("south_token", json!({})),
    ];
    let report = Played::new(module, toolsets, &calls, &connections).run();
    assert_eq!(task(&report, "ask", -1)["state"], "success", "{report:#}");
    assert_eq!(
        tool_lines(&report),
        [
            "Tool add returned",
            "Tool add returned",
            "Tool south_token returned"
        ]
    );
    let events = events(task(&report, "ask", -1));
    let minted = events.iter().filter(|event| **event == "minting").count();
    assert_eq!(minted, 1);
    assert!(events.contains(&"said ***"), "{events:?}");
    let text = report.to_string();
    assert!(!text.contains("minted-token") && !text.contains("made-up-secret"));

    let module = "def broken():\n    raise KeyError('no vault')\n";
    let toolsets =
        "[MCPToolset('north', token_provider=broken).prepared(lambda ctx, tools: tools)]";
    let report = Played::new(module, toolsets, &[], &connections).run();
    assert!(error(&report).contains("no vault"), "{report:#}");
}

#[test]
fn a_dag_names_servers_directly_over_all_three_transports() {
    let (http, sse) = (
        Dock::start("http", true, Some("made-up-token")),
        Dock::start("sse", true, None),
    );
    let toolsets = format!(
        "[MCPServerStreamableHTTP({:?}, headers={{\"Authorization\": \"Bearer made-up-token\"}}, tool_prefix=\"a\"), \
         MCPServerSSE({:?}, tool_prefix=\"b\"), {}.prefixed(\"c\"), Direct({:?}).prefixed(\"d\"), \
         Direct(StdioTransport({:?}, [{:?}, \"stdio\"]), init_timeout=60).prefixed(\"e\")]",
        http.url(),
        sse.url(),
        counted("MCPServerStdio"),
        sse.url(),
        python(),
        dock_script(),
    );
    let calls = ["a_add", "b_add", "c_add", "d_add", "e_add"].map(|name| (name, json!({"a": 1})));
    let played = Played::new(DIRECT, &toolsets, &calls, &json!({}));
    let report = played.run();
    assert_eq!(task(&report, "ask", -1)["state"], "success", "{report:#}");
    assert_eq!(
        tool_lines(&report),
        ["a", "b", "c", "d", "e"].map(|letter| format!("Tool {letter}_add returned"))
    );
    assert!(!report.to_string().contains("made-up-token"));
    let pids = played.pids();
    assert_eq!(pids.len(), 1);
    assert!(!runs(&pids[0]), "the server outlived its task");
}

#[test]
fn two_servers_with_tools_of_one_name_are_refused_before_the_model_is_asked() {
    let toolsets = format!("[{0}, {0}]", counted("MCPServerStdio"));
    let played = Played::new(DIRECT, &toolsets, &[], &json!({}));
    let report = played.run();
    assert!(
        error(&report).contains(
            "MCPServerStdio defines a tool whose name conflicts with existing tool from MCPServerStdio: 'add'."
        ),
        "{report:#}"
    );
    assert_eq!(
        task(&report, "ask", -1)["xcoms"]["usage"]["requests"],
        json!(0)
    );
    let pids = played.pids();
    assert_eq!(pids.len(), 2);
    assert!(!pids.iter().any(|pid| runs(pid)));
}

#[test]
fn a_server_ends_when_the_one_after_it_does_not_start() {
    let toolsets = format!(
        "[{}, MCPServerStdio(\"/nonexistent/server\")]",
        counted("MCPServerStdio")
    );
    let played = Played::new(DIRECT, &toolsets, &[], &json!({}));
    let report = played.run();
    assert!(
        error(&report).ends_with(
            "Client failed to connect: [Errno 2] No such file or directory: '/nonexistent/server'"
        ),
        "{report:#}"
    );
    let pids = played.pids();
    assert_eq!(pids.len(), 1);
    assert!(!runs(&pids[0]));
}

/// The processes that a process started.
fn children(parent: u32) -> Vec<String> {
    fs::read_dir("/proc")
        .unwrap()
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter(|pid| {
            fs::read_to_string(format!("/proc/{pid}/stat"))
                .ok()
                .and_then(|stat| {
                    let rest = stat.rsplit_once(") ")?.1.to_owned();
                    rest.split(' ').nth(1).map(str::to_owned)
                })
                .is_some_and(|of| of == parent.to_string())
        })
        .collect()
}

/// Starts a run whose agent waits in a tool of a server that does not end by itself.
fn waiting_run() -> (Played, Child) {
    let toolsets = format!(
        "[{}, MCPServerStdio(\"sh\", [\"-c\", \"trap '' TERM; echo $$ >> \" + str(HERE / \"pids\") + \"; {} {} stdio & \
         wait; sleep 300\"], timeout=60).prefixed(\"x\")]",
        counted("MCPServerStdio"),
        python(),
        dock_script(),
    );
    let calls = [("wait", json!({"seconds": 120}))];
    let played = Played::new(DIRECT, &toolsets, &calls, &json!({}));
    let child = start(&played.file);
    (played, child)
}

fn start(file: &Path) -> Child {
    Command::new(env!("CARGO_BIN_EXE_updraft"))
        .arg("run")
        .arg(file)
        .arg("--json")
        .env("AIRFLOW_HOME", "/nonexistent/airflow")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

fn none_left_after(kill: impl FnOnce(&Child)) {
    let (played, mut child) = waiting_run();
    // Both servers run, the first call is under way or about to be.
    eventually("the servers did not start", || played.pids().len() == 2);
    std::thread::sleep(std::time::Duration::from_secs(1));
    let pids = played.pids();
    assert!(pids.iter().all(|pid| runs(pid)));
    kill(&child);
    eventually("a server outlived its task", || {
        !pids.iter().any(|pid| runs(pid))
    });
    let _ = child.kill();
    let _ = child.wait();
}

fn signal(pid: &str, signal: nix::sys::signal::Signal) {
    let pid = nix::unistd::Pid::from_raw(pid.parse().unwrap());
    nix::sys::signal::kill(pid, signal).unwrap();
}

#[test]
fn no_server_is_left_when_the_task_process_is_killed() {
    none_left_after(|run| {
        let tasks = children(run.id());
        assert_eq!(tasks.len(), 1);
        signal(&tasks[0], nix::sys::signal::Signal::SIGKILL);
    });
}

#[test]
fn no_server_is_left_when_the_run_is_terminated() {
    none_left_after(|run| {
        signal(&run.id().to_string(), nix::sys::signal::Signal::SIGTERM);
    });
}

#[test]
fn no_server_is_left_when_everything_is_killed() {
    none_left_after(|run| {
        let tasks = children(run.id());
        signal(&run.id().to_string(), nix::sys::signal::Signal::SIGKILL);
        for pid in tasks {
            signal(&pid, nix::sys::signal::Signal::SIGKILL);
        }
    });
}

#[test]
fn arguments_beside_a_client_and_time_outs_mean_what_they_mean_to_pydantic_ai() {
    let module = format!(
        "{DIRECT}from datetime import timedelta\n\
         from fastmcp import Client\n\
         from fastmcp.client.transports import SSETransport, UvxStdioTransport\n\
         client = Client('http://h/mcp')\n\
         for wrong in (\n    \
             lambda: Direct(client, headers={{'a': 'b'}}),\n    \
             lambda: Direct(client, auth='made-up-token'),\n    \
             lambda: Direct(client, read_timeout=None),\n    \
             lambda: Direct(StdioTransport('x', []), auth='made-up-token'),\n\
         ):\n    \
             try:\n        wrong()\n    \
             except ValueError:\n        continue\n    \
             raise AssertionError('it was taken')\n\
         def reached(toolset):\n    \
             server = toolset._server()\n    \
             return [server['init_timeout'], server['read_timeout'], server.get('http', {{}}).get('sse_read_timeout')]\n\
         for toolset, expected in (\n    \
             (Direct('http://h/mcp'), [5, 300, None]),\n    \
             (Direct('http://h/mcp', init_timeout=0), [0, 300, None]),\n    \
             (Direct('http://h/sse'), [5, 300, 300]),\n    \
             (Direct('http://h/sse', headers={{'a': 'b'}}, read_timeout=7), [5, 7, 7]),\n    \
             (Direct(Client(UvxStdioTransport('x'))), [None, None, None]),\n    \
             (Direct(Client(SSETransport('http://h'), timeout=timedelta(minutes=1))), [None, 60.0, 300]),\n    \
             (Direct(SSETransport('http://h', sse_read_timeout=9)), [5, 300, 9]),\n    \
             (MCPServerSSE('http://h', read_timeout=8), [5, 8, 8]),\n\
         ):\n    \
             assert reached(toolset) == expected, (reached(toolset), expected)\n"
    );
    let played = Played::new(&module, "[]", &[], &json!({}));
    let report = played.run();
    assert_eq!(task(&report, "ask", -1)["state"], "success", "{report:#}");
}

#[test]
fn check_names_the_connections_of_servers_and_what_it_can_not_do() {
    let toolsets =
        "[MCPToolset('north', tool_prefix='n'), MCPServerStdio('uvx', ['mcp-run-python'])]";
    let played = Played::new(
        DIRECT,
        toolsets,
        &[],
        &json!({"north": {"conn_type": "mcp"}}),
    );
    let file = played.file.display().to_string();
    let checked = |file: &str| -> Value {
        serde_json::from_slice(&updraft(&["check", "--json", file]).stdout).unwrap()
    };
    let report = checked(&file);
    let ask = &report["files"][0]["dags"][0]["tasks"][0];
    assert_eq!(ask["native"], true, "{report:#}");
    assert_eq!(
        ask["connections"][1],
        json!({"conn_id": "north", "used_as": "mcp_conn_id", "defined_by": "file", "templated": false})
    );
    for (toolset, reason) in [
        (
            "Direct('http://h/mcp', process_tool_call=print)",
            "has process_tool_call",
        ),
        (
            "Direct('http://h/mcp', auth='oauth')",
            "signs in with OAuth",
        ),
        ("Direct(FastMCP('x'))", "is made of FastMCP()"),
        (
            "Direct('http://h/mcp', roots=['file:///a'])",
            "has roots, which only pydantic-ai's own client can use",
        ),
        (
            "MCPServerStreamableHTTP('http://h/mcp', http_client=print)",
            "has http_client",
        ),
    ] {
        let module = format!("{DIRECT}from fastmcp import FastMCP\n");
        let played = Played::new(&module, &format!("[{toolset}]"), &[], &json!({}));
        let report = checked(&played.file.display().to_string());
        let ask = &report["files"][0]["dags"][0]["tasks"][0];
        assert!(
            ask["reason"].as_str().unwrap_or_default().contains(reason),
            "{report:#}"
        );
    }
}
