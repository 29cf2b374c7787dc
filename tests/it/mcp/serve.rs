//! `updraft mcp serve`, used by clients of other frameworks.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use super::{dock_script, eventually, langchain_python, python, runs};

/// A folder with a database and a file of toolsets.
struct Offer {
    folder: tempfile::TempDir,
}

impl Offer {
    fn new(spec: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        rusqlite::Connection::open(folder.path().join("harbour.db"))
            .unwrap()
            .execute_batch(
                "CREATE TABLE ships (name TEXT, length REAL); INSERT INTO ships VALUES ('Aurora', 40.5);
                 CREATE TABLE secrets (word TEXT); INSERT INTO secrets VALUES ('made-up-secret');",
            )
            .unwrap();
        fs::write(folder.path().join("toolsets.yaml"), spec).unwrap();
        Self { folder }
    }

    fn file(&self) -> PathBuf {
        self.folder.path().join("toolsets.yaml")
    }

    fn environment(&self) -> Vec<(String, String)> {
        let database = self.folder.path().join("harbour.db").display().to_string();
        [
            ("AIRFLOW_HOME", "/nonexistent/airflow".to_owned()),
            (
                "AIRFLOW_CONN_HARBOUR",
                json!({"conn_type": "sqlite", "host": database, "password": "made-up-secret"})
                    .to_string(),
            ),
            (
                "AIRFLOW_CONN_DOCK",
                json!({"conn_type": "mcp", "extra": {"transport": "stdio", "command": python(),
                       "args": [dock_script(), "stdio"], "timeout": 60}})
                .to_string(),
            ),
        ]
        .map(|(name, value)| (name.to_owned(), value))
        .to_vec()
    }

    fn command(&self, more: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_updraft"));
        command
            .args(["mcp", "serve", "--spec"])
            .arg(self.file())
            .args(more)
            .envs(self.environment());
        command
    }

    fn refusal(&self) -> String {
        let output = self.command(&[]).stdin(Stdio::null()).output().unwrap();
        assert_eq!(output.status.code(), Some(1));
        String::from_utf8(output.stderr).unwrap()
    }
}

/// Served over HTTP. It ends with this value.
struct Serving {
    child: Child,
    url: String,
}

impl Serving {
    fn start(offer: &Offer, token: Option<&str>) -> Self {
        let mut child = offer
            .command(&["--http", "127.0.0.1:0"])
            .envs(token.map(|token| ("UPDRAFT_MCP_TOKEN", token)))
            .stdin(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stderr = BufReader::new(child.stderr.take().unwrap());
        let url = loop {
            let mut line = String::new();
            assert!(
                stderr.read_line(&mut line).unwrap() > 0,
                "nothing is served"
            );
            if let Some((_, url)) = line.split_once(" on http://") {
                let url = url.split([',', '\n']).next().unwrap_or_default();
                break format!("http://{url}");
            }
        };
        std::thread::spawn(move || {
            std::io::copy(&mut stderr, &mut std::io::sink()).ok();
        });
        Self { child, url }
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Runs a Python program with arguments; what it prints, as JSON.
fn python_says(
    python: &str,
    program: &str,
    arguments: &[&str],
    environment: &[(String, String)],
) -> Value {
    let output: Output = Command::new(python)
        .args(["-c", program])
        .args(arguments)
        .envs(environment.iter().cloned())
        .output()
        .unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    serde_json::from_str(&said).unwrap_or_else(|error| {
        panic!(
            "{error}: {said}\n{}",
            String::from_utf8_lossy(&output.stderr)
        )
    })
}

const SPEC: &str = "
name: harbour
instructions: Depths are in metres.
toolsets:
  - class: SQLToolset
    arguments:
      db_conn_id: harbour
      allowed_tables: [ships, secrets]
    prefix: db
    tools: [db_query, db_list_tables]
  - class: HookToolset
    arguments:
      hook: {class: SqliteHook, arguments: {sqlite_conn_id: harbour}}
      allowed_methods: [get_first]
      tool_prefix: hook
  - class: MCPToolset
    arguments: {mcp_conn_id: dock}
    tools: [add, photo, fail]
";

/// Uses the Python MCP library: over standard input and output, or over HTTP where there is an address.
const CLIENT: &str = r#"
import asyncio, json, os, sys
from mcp.client.session import ClientSession
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client

async def use(read, write):
    async with ClientSession(read, write) as session:
        begun = await session.initialize()
        tools = (await session.list_tools()).tools
        said = {"server": begun.server_info.name, "instructions": begun.instructions,
                "tools": [tool.name for tool in tools], "schema": tools[0].input_schema}
        async def call(name, **args):
            result = await session.call_tool(name, args)
            return [bool(result.is_error), *(getattr(block, "text", block.type) for block in result.content)]
        said["query"] = await call("db_query", sql="SELECT name, length FROM ships")
        said["refused"] = await call("db_query", sql="DELETE FROM ships")
        said["secret"] = await call("db_query", sql="SELECT word FROM secrets")
        said["wrong"] = await call("db_query", sql=3)
        said["first"] = await call("hook_get_first", sql="SELECT length FROM ships")
        said["add"] = await call("add", a=2, b=3)
        said["photo"] = await call("photo")
        said["fail"] = await call("fail")
        print(json.dumps(said))

async def main():
    command = sys.argv[1:]
    if command[0].startswith("http"):
        async with streamable_http_client(command[0]) as streams:
            await use(streams[0], streams[1])
    else:
        parameters = StdioServerParameters(command=command[0], args=command[1:], env=dict(os.environ))
        async with stdio_client(parameters) as (read, write):
            await use(read, write)

asyncio.run(main())
"#;

fn check_what_the_client_saw(said: &Value) {
    assert_eq!(said["server"], "harbour");
    assert_eq!(said["instructions"], "Depths are in metres.");
    assert_eq!(
        said["tools"],
        json!([
            "db_list_tables",
            "db_query",
            "hook_get_first",
            "add",
            "photo",
            "fail"
        ])
    );
    assert_eq!(
        said["query"],
        json!([
            false,
            "{\"columns\":[\"name\",\"length\"],\"rows\":[[\"Aurora\",40.5]],\"row_count\":1}"
        ])
    );
    assert_eq!(said["refused"][0], true);
    assert!(
        said["refused"][1]
            .as_str()
            .unwrap()
            .contains("Statement type 'Delete' is not allowed"),
        "{said:#}"
    );
    assert!(said["secret"].to_string().contains("***"), "{said:#}");
    assert!(!said.to_string().contains("made-up-secret"));
    assert_eq!(said["wrong"][0], true);
    assert!(
        said["wrong"][1].as_str().unwrap().contains("string_type"),
        "{said:#}"
    );
    assert_eq!(said["first"], json!([false, "[40.5]"]));
    assert_eq!(said["add"], json!([false, "5"]));
    assert_eq!(said["photo"], json!([false, "image"]));
    assert_eq!(said["fail"], json!([true, "the crane is stuck"]));
}

#[test]
fn the_python_client_uses_our_tools_over_standard_input_and_output() {
    let offer = Offer::new(SPEC);
    let file = offer.file().display().to_string();
    let command = [
        env!("CARGO_BIN_EXE_updraft"),
        "mcp",
        "serve",
        "--spec",
        &file,
    ];
    check_what_the_client_saw(&python_says(
        &python(),
        CLIENT,
        &command,
        &offer.environment(),
    ));
}

#[test]
fn the_python_client_uses_our_tools_over_http() {
    let offer = Offer::new(SPEC);
    let serving = Serving::start(&offer, None);
    check_what_the_client_saw(&python_says(&python(), CLIENT, &[&serving.url], &[]));
}

#[test]
fn a_file_that_dag_code_names_in_its_result_goes_with_it() {
    const PHOTO: &str = r#"
import asyncio, json, os, sys
from mcp.client.session import ClientSession
from mcp.client.stdio import StdioServerParameters, stdio_client

async def main():
    parameters = StdioServerParameters(command=sys.argv[1], args=sys.argv[2:], env=dict(os.environ))
    async with stdio_client(parameters) as (read, write):
        async with ClientSession(read, write) as session:
            await session.initialize()
            result = await session.call_tool("photo", {})
            print(json.dumps([getattr(block, "text", block.type) for block in result.content]))

asyncio.run(main())
"#;
    let offer = Offer::new("toolsets: [{class: my_module.Captioned}]");
    fs::write(
        offer.folder.path().join("my_module.py"),
        "from airflow.providers.common.ai.toolsets.mcp import MCPToolset\n\
         from pydantic_ai.toolsets import WrapperToolset\n\
         class Captioned(WrapperToolset):\n    \
             def __init__(self):\n        super().__init__(MCPToolset('dock'))\n    \
             async def call_tool(self, name, tool_args, ctx, tool):\n        \
                 return [f'The {name}:', await super().call_tool(name, tool_args, ctx, tool)]\n",
    )
    .unwrap();
    let file = offer.file().display().to_string();
    let command = [
        env!("CARGO_BIN_EXE_updraft"),
        "mcp",
        "serve",
        "--spec",
        &file,
    ];
    let said = python_says(&python(), PHOTO, &command, &offer.environment());
    assert_eq!(said, json!(["The photo:", "image"]));
}

#[tokio::test]
async fn with_a_token_a_proxy_may_keep_the_name_that_it_was_asked_by() {
    let offer = Offer::new("toolsets: [{class: SQLToolset, arguments: {db_conn_id: harbour}}]");
    let hello = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": "2025-06-18",
                       "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}});
    for (token, expected) in [(None, 403), (Some("made-up-token"), 200)] {
        let serving = Serving::start(&offer, token);
        let request = reqwest::Client::new()
            .post(&serving.url)
            .header("Host", "tools.example")
            .header("Accept", "application/json, text/event-stream")
            .bearer_auth(token.unwrap_or_default())
            .json(&hello);
        assert_eq!(request.send().await.unwrap().status(), expected);
    }
}

#[test]
fn a_second_signal_ends_it_though_a_toolset_does_not_close() {
    let offer = Offer::new("toolsets: [{class: my_module.Stubborn}]");
    fs::write(
        offer.folder.path().join("my_module.py"),
        "import logging, time\n\
         from pydantic_ai.toolsets import FunctionToolset\n\
         class Stubborn(FunctionToolset):\n    \
             async def __aexit__(self, *args):\n        \
                 logging.getLogger('airflow.task').info('it closes')\n        \
                 time.sleep(300)\n",
    )
    .unwrap();
    let mut child = offer
        .command(&["--http", "127.0.0.1:0"])
        .stdin(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = BufReader::new(child.stderr.take().unwrap()).lines();
    let terminate = |child: &Child| {
        let pid = nix::unistd::Pid::from_raw(i32::try_from(child.id()).unwrap());
        nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGTERM).unwrap();
    };
    for line in ["serving ", "it closes"] {
        assert!(said.any(|said| said.unwrap().contains(line)), "{line}");
        terminate(&child);
    }
    assert!(said.any(|said| said.unwrap().contains("a second signal")));
    assert_eq!(child.wait().unwrap().code(), Some(1));
}

#[test]
fn langchain_uses_our_tools_and_a_token_keeps_others_out() {
    const LANGCHAIN: &str = r#"
import asyncio, json, sys
from langchain_mcp_adapters.client import MultiServerMCPClient

async def main():
    headers = {"Authorization": f"Bearer {sys.argv[2]}"}
    client = MultiServerMCPClient({"harbour": {"transport": "streamable_http", "url": sys.argv[1], "headers": headers}})
    try:
        tools = {tool.name: tool for tool in await client.get_tools()}
    except BaseException as error:
        while getattr(error, "exceptions", None):
            error = error.exceptions[0]
        print(json.dumps({"error": str(error)}))
        return
    answer = await tools["db_query"].ainvoke({"sql": "SELECT name FROM ships"})
    if not isinstance(answer, str):
        answer = answer[0]["text"]
    print(json.dumps({"tools": list(tools), "answer": answer}))

asyncio.run(main())
"#;
    let offer = Offer::new(SPEC);
    let serving = Serving::start(&offer, Some("made-up-token"));
    let said = python_says(
        &langchain_python(),
        LANGCHAIN,
        &[&serving.url, "made-up-token"],
        &[],
    );
    assert_eq!(
        said["answer"],
        "{\"columns\":[\"name\"],\"rows\":[[\"Aurora\"]],\"row_count\":1}"
    );
    let said = python_says(
        &langchain_python(),
        LANGCHAIN,
        &[&serving.url, "another-token"],
        &[],
    );
    assert!(said["error"].to_string().contains("401"), "{said}");
}

#[test]
fn a_signal_and_the_end_of_input_end_it_with_its_servers() {
    let offer = Offer::new(
        "toolsets:\n  - class: MCPServerStdio\n    arguments:\n      command: sh\n      args: [-c, \"echo $$ >> $PIDS; \
         exec $PYTHON $SCRIPT stdio\"]\n      timeout: 60\n      env: {PIDS: PIDS_FILE, PYTHON: THE_PYTHON, SCRIPT: THE_SCRIPT}\n",
    );
    let pids = offer.folder.path().join("pids");
    let spec = fs::read_to_string(offer.file()).unwrap();
    let spec = spec
        .replace("PIDS_FILE", &pids.display().to_string())
        .replace("THE_PYTHON", &python())
        .replace("THE_SCRIPT", &dock_script());
    fs::write(offer.file(), spec).unwrap();
    let started = |path: &Path| fs::read_to_string(path).unwrap_or_default().lines().count();
    for (count, terminate) in [(1, true), (2, false)] {
        let mut child = offer
            .command(&[])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut input = child.stdin.take().unwrap();
        input.write_all(b"{\"jsonrpc\": \"2.0\", \"id\": 1, \"method\": \"initialize\", \"params\": {\"protocolVersion\": \
            \"2025-06-18\", \"capabilities\": {}, \"clientInfo\": {\"name\": \"t\", \"version\": \"1\"}}}\n").unwrap();
        let mut answer = String::new();
        BufReader::new(child.stdout.take().unwrap())
            .read_line(&mut answer)
            .unwrap();
        assert!(answer.contains("serverInfo"), "{answer}");
        assert_eq!(started(&pids), count);
        if terminate {
            let pid = nix::unistd::Pid::from_raw(i32::try_from(child.id()).unwrap());
            nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGTERM).unwrap();
        } else {
            drop(input);
        }
        assert!(child.wait().unwrap().success(), "{terminate}");
        eventually("a server outlived the service", || {
            !fs::read_to_string(&pids).unwrap().lines().any(runs)
        });
    }
}

#[test]
fn what_is_wrong_with_a_file_is_said_with_its_key_and_what_is_allowed() {
    for (spec, expected) in [
        ("toolsets: [", "is no YAML"),
        (
            "[]",
            "the file must hold a mapping with the key 'toolsets', and holds a list that is empty",
        ),
        (
            "tools: []",
            "the file has the key 'tools'; allowed are name, instructions, toolsets",
        ),
        (
            "toolsets:",
            "toolsets must be a list of toolsets, each a mapping with the key 'class', and is missing",
        ),
        (
            "toolsets: [{class: SqlToolset}]",
            "toolsets[0].class: 'SqlToolset' is not known; use SQLToolset, HookToolset, AgentSkillsToolset",
        ),
        (
            "toolsets: [{class: SQLToolset, argument: {}}]",
            "toolsets[0] has the key 'argument'; allowed are class, arguments, prefix, tools",
        ),
        (
            "toolsets: [{class: SQLToolset, arguments: {db_conn_id: x, tables: []}}]",
            "toolsets[0].arguments has the key 'tables'; allowed are db_conn_id, allowed_tables",
        ),
        (
            "toolsets: [{class: SQLToolset, arguments: {db_conn_id: x, allowed_tables: []}}]",
            "toolsets[0].arguments: allowed_tables must name at least one table, got []",
        ),
        ("toolsets: [{class: SQLToolset}]", "toolsets[0].arguments: "),
        ("toolsets: [{class: my_module.Mine}]", "toolsets[0].class: "),
        (
            "toolsets: [{class: SQLToolset, arguments: {db_conn_id: harbour}, prefix: a-b}]",
            "toolsets[0].prefix must be a name such as 'crew', and is 'a-b'",
        ),
        (
            "toolsets: [{class: SQLToolset, arguments: {db_conn_id: harbour}, tools: [qury]}]",
            "toolsets[0].tools lists 'qury', and the toolset has list_tables, get_schema, query, check_query",
        ),
        (
            "toolsets: [{class: SQLToolset, arguments: {db_conn_id: harbour}}, {class: SQLToolset, arguments: {db_conn_id: h}}]",
            "More than one tool is named check_query, get_schema, list_tables, query.",
        ),
        (
            "toolsets: [{class: MCPToolset, arguments: {mcp_conn_id: nowhere}}]",
            "toolsets[0]: ",
        ),
    ] {
        let offer = Offer::new(spec);
        let said = offer.refusal();
        assert!(said.contains("toolsets.yaml"), "{said}");
        assert!(said.contains(expected), "{said}\nlacks\n{expected}");
    }
}

/// The code of a language in the documentation.
fn shown(language: &str) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let text = fs::read_to_string(root.join("docs/mcp.md")).unwrap();
    let start = format!("```{language}\n");
    let code = text.split_once(&start).unwrap().1;
    code.split_once("```").unwrap().0.to_owned()
}

#[test]
fn the_example_of_the_documentation_works_as_it_stands() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("toolsets.yaml"), shown("yaml")).unwrap();
    rusqlite::Connection::open(folder.path().join("shop.db"))
        .unwrap()
        .execute_batch(
            "CREATE TABLE customers (name TEXT); CREATE TABLE orders (id INTEGER);
             INSERT INTO customers VALUES ('Aldine Books')",
        )
        .unwrap();
    let program = Path::new(env!("CARGO_BIN_EXE_updraft"));
    let output = Command::new(langchain_python())
        .args(["-c", &shown("python")])
        .current_dir(folder.path())
        .env(
            "PATH",
            format!("{}:/usr/bin:/bin", program.parent().unwrap().display()),
        )
        .output()
        .unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(
        said.starts_with("['get_schema', 'list_tables', 'query', 'raw_get_first']\n")
            && said.contains("Aldine Books"),
        "{said}\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

#[test]
fn other_machines_are_served_only_with_a_token() {
    let offer = Offer::new(SPEC);
    let output = offer
        .command(&["--http", "0.0.0.0:0"])
        .env_remove("UPDRAFT_MCP_TOKEN")
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(
        said.contains("without a token anybody there could use the tools"),
        "{said}"
    );
}
