//! Toolsets that a Dag file composes and writes itself, run by `updraft run` with a scripted model.

use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use crate::local_run::{agent_file, events, run, task, updraft};

/// Runs an agent with `toolsets` (a Python expression after `module`) through scripted calls, one a turn.
struct Played {
    report: Value,
}

fn play(module: &str, toolsets: &str, calls: &[(&str, Value)]) -> Played {
    let connections = json!({"harbour": {"conn_type": "sqlite", "host": "harbour.db"}});
    let (folder, file) = agent_file(module, toolsets, calls, &connections);
    let database = rusqlite::Connection::open(folder.path().join("harbour.db")).unwrap();
    database
        .execute_batch(
            "CREATE TABLE ports (name TEXT, depth REAL); INSERT INTO ports VALUES ('Oslo', 12.5)",
        )
        .unwrap();
    let (_, report) = run(&file, &[]);
    Played { report }
}

impl Played {
    /// What the model was told after each call, as the events of `updraft run` show it: the log lines of the calls.
    fn log(&self) -> Vec<String> {
        events(task(&self.report, "ask", -1))
            .into_iter()
            .filter(|event| event.starts_with("Tool ") || event.starts_with("seen: "))
            .filter(|event| !event.starts_with("Tool call sequence"))
            .map(|event| match event.split_once(" in ") {
                Some((before, _)) if event.ends_with('s') => before.to_owned(),
                _ => event
                    .split(' ')
                    .map(|word| match word.strip_suffix("s:") {
                        Some(seconds) if seconds.parse::<f64>().is_ok() => "0s:",
                        _ => word,
                    })
                    .collect::<Vec<_>>()
                    .join(" "),
            })
            .collect()
    }

    fn succeeded(&self) -> &Self {
        let ask = task(&self.report, "ask", -1);
        assert_eq!(ask["state"], "success", "{:#}", self.report);
        self
    }

    fn error(&self) -> &str {
        task(&self.report, "ask", -1)["error"].as_str().unwrap()
    }
}

const FUNCTIONS: &str = r#"
import logging
from datetime import date
from enum import Enum
from pydantic import BaseModel
from pydantic_ai import ModelRetry, RunContext
from pydantic_ai.exceptions import ToolFailed
from pydantic_ai.toolsets import CombinedToolset, FunctionToolset

log = logging.getLogger("airflow.task.operators.test")

def seen(value):
    log.info("seen: %r", value)
    return value

class Port(Enum):
    OSLO = "oslo"
    BERGEN = "bergen"

class Booking(BaseModel):
    port: Port
    day: date
    guests: int = 1

def double(number: int) -> int:
    """Doubles a number.

    Args:
        number: What to double.
    """
    return seen(2 * number)

async def book(booking: Booking) -> dict:
    """Books a berth."""
    return seen({"port": booking.port.name, "weekday": booking.day.weekday(), "guests": booking.guests})

def named(ctx: RunContext, *, on: date, tags: list[str] = []) -> str:
    return seen(f"{ctx.tool_name} {on.isoformat()} {tags}")

def picky(word: str) -> str:
    if word == "please":
        return seen("ok")
    if word == "never":
        raise ToolFailed("not today")
    raise ModelRetry("say please")
"#;

#[test]
fn functions_of_the_dag_file_are_tools() {
    let played = play(
        FUNCTIONS,
        "[FunctionToolset(tools=[double, book, named, picky])]",
        &[
            ("double", json!({"number": "21"})),
            ("book", json!({"port": "oslo", "day": "2026-11-30"})),
            ("named", json!({"on": "2026-01-02", "tags": ["a"]})),
            ("picky", json!({"word": "now"})),
            ("picky", json!({"word": "never"})),
            ("picky", json!({"word": "please"})),
        ],
    );
    assert_eq!(
        played.succeeded().log(),
        [
            "seen: 42",
            "Tool double returned",
            "seen: {'port': 'OSLO', 'weekday': 0, 'guests': 1}",
            "Tool book returned",
            "seen: \"named 2026-01-02 ['a']\"",
            "Tool named returned",
            "Tool picky requested ModelRetry after 0s: say please",
            "Tool picky requested ToolFailed after 0s: not today",
            "seen: 'ok'",
            "Tool picky returned",
        ]
    );
}

#[test]
fn arguments_that_a_function_does_not_take_are_told_to_the_model_and_never_reach_it() {
    let played = play(
        FUNCTIONS,
        "[FunctionToolset(tools=[double, book])]",
        &[
            ("double", json!({"number": "x"})),
            ("double", json!({})),
            ("book", json!({"port": "paris", "day": "tomorrow"})),
            ("double", json!({"number": 1, "more": 2})),
            ("double", json!({"number": 4})),
        ],
    );
    assert_eq!(
        played.succeeded().log(),
        ["seen: 8", "Tool double returned"]
    );
}

#[test]
fn an_exception_of_a_function_fails_the_run() {
    let played = play(
        "from pydantic_ai.toolsets import FunctionToolset\ndef broken() -> str:\n    raise KeyError('tide')\n",
        "[FunctionToolset(tools=[broken])]",
        &[("broken", json!({}))],
    );
    assert!(played.error().contains("'tide'"), "{}", played.error());
}

#[test]
fn wrappers_compose_in_any_order() {
    let played = play(
        FUNCTIONS,
        "[CombinedToolset([\
            FunctionToolset(tools=[double, picky]).filtered(lambda ctx, tool: tool.name != 'picky').prefixed('math'),\
            FunctionToolset(tools=[double]).renamed({'twice': 'double'}),\
        ])]",
        &[
            ("math_double", json!({"number": 1})),
            ("twice", json!({"number": 2})),
            ("math_picky", json!({"word": "please"})),
        ],
    );
    assert_eq!(
        played.succeeded().log(),
        [
            "seen: 2",
            "Tool math_double returned",
            "seen: 4",
            "Tool twice returned",
        ]
    );
}

#[test]
fn a_logging_toolset_logs_under_its_own_logger() {
    let played = play(
        &format!(
            "{FUNCTIONS}\nfrom airflow.providers.common.ai.toolsets.logging import LoggingToolset\n\
             own = logging.getLogger('airflow.task.operators.own')\n"
        ),
        "[LoggingToolset(wrapped=FunctionToolset(tools=[double]), logger=own)]",
        &[("double", json!({"number": 1}))],
    );
    assert_eq!(
        played.succeeded().log(),
        ["seen: 2", "Tool double returned", "Tool double returned"]
    );
    let records = task(&played.report, "ask", -1)["log"]
        .as_array()
        .unwrap()
        .clone();
    assert!(
        records
            .iter()
            .any(|record| record["logger"] == "airflow.task.operators.own")
    );
}

const CUSTOM: &str = r#"
import logging
from airflow.providers.common.ai.toolsets.sql import SQLToolset
from airflow.sdk import get_current_context
from pydantic_ai import ModelRetry
from pydantic_ai.tools import ToolDefinition
from pydantic_ai.toolsets import AbstractToolset, ToolsetTool, WrapperToolset
from pydantic_core import SchemaValidator, core_schema

log = logging.getLogger("airflow.task.operators.test")

class Tides(AbstractToolset):
    opened = 0

    @property
    def id(self):
        return "tides"

    async def __aenter__(self):
        Tides.opened += 1
        return self

    async def get_instructions(self, ctx):
        return "Ask for the tide."

    async def get_tools(self, ctx):
        definition = ToolDefinition(
            name="tide",
            description="The tide at a port.",
            parameters_json_schema={"type": "object", "properties": {"port": {"type": "string"}}, "required": ["port"]},
        )
        return {"tide": ToolsetTool(
            toolset=self, tool_def=definition, max_retries=2,
            args_validator=SchemaValidator(schema=core_schema.any_schema()),
        )}

    async def call_tool(self, name, tool_args, ctx, tool):
        if tool_args["port"] == "atlantis":
            raise ModelRetry("sunk")
        log.info("seen: %s %s %s", name, self.opened, get_current_context()["ti"].task_id)
        return {"port": tool_args["port"], "high": True}

class Shouting(WrapperToolset):
    async def call_tool(self, name, tool_args, ctx, tool):
        result = await super().call_tool(name, tool_args, ctx, tool)
        log.info("seen: %s", result)
        return result.upper()
"#;

#[test]
fn a_toolset_class_of_the_dag_file_runs_in_the_interpreter() {
    let played = play(
        CUSTOM,
        "[Tides()]",
        &[
            ("tide", json!({"port": "atlantis"})),
            ("tide", json!({"port": "oslo"})),
        ],
    );
    assert_eq!(
        played.succeeded().log(),
        [
            "Tool tide requested ModelRetry after 0s: sunk",
            "seen: tide 1 ask",
            "Tool tide returned",
        ]
    );
}

#[test]
fn arguments_for_a_toolset_of_the_dag_file_are_checked_by_its_own_validator() {
    let module = r#"
import logging
from typing import Annotated
from pydantic import Field, TypeAdapter
from pydantic_ai.tools import ToolDefinition
from pydantic_ai.toolsets import AbstractToolset, ToolsetTool
from pydantic_core import SchemaValidator, core_schema
from typing_extensions import TypedDict

log = logging.getLogger("airflow.task.operators.test")

class Berth(TypedDict):
    quay: Annotated[str, Field(pattern=r"^[a-z]+$")]

CHECKED = TypeAdapter(Berth)
LOOSE = core_schema.dict_schema(core_schema.str_schema(), core_schema.any_schema())
STRICT = core_schema.dict_schema(core_schema.str_schema(), core_schema.int_schema())

class Berths(AbstractToolset):
    id = "berths"

    async def get_tools(self, ctx):
        return {
            name: ToolsetTool(
                toolset=self,
                tool_def=ToolDefinition(name=name, parameters_json_schema=CHECKED.json_schema()),
                max_retries=2,
                args_validator=SchemaValidator(schema),
            )
            for name, schema in (("checked", CHECKED.core_schema), ("loose", LOOSE), ("strict", STRICT))
        }

    async def call_tool(self, name, tool_args, ctx, tool):
        log.info("seen: %s %s", name, tool_args)
        return "ok"
"#;
    let calls = [
        ("checked", json!({"quay": "../secret"})),
        ("checked", json!({"quay": "north"})),
        ("loose", json!({"quay": "../other"})),
        ("strict", json!({"quay": "north"})),
    ];
    let played = play(module, "[Berths()]", &calls);
    let log = played.log();
    // What can't be checked here does not reach the tool.
    let seen: Vec<&String> = log.iter().filter(|line| line.starts_with("seen")).collect();
    assert_eq!(
        seen,
        [
            "seen: checked {'quay': 'north'}",
            "seen: loose {'quay': '../other'}"
        ]
    );
}

#[test]
fn a_wrapper_of_the_dag_file_runs_around_a_toolset_of_the_worker() {
    let played = play(
        CUSTOM,
        "[Shouting(SQLToolset('{{ \"sh\" }}op'))]",
        &[("query", json!({"sql": "SELECT 1 AS one"}))],
    );
    // The connection is not defined: the worker's toolset says so, through the wrapper.
    assert!(
        played
            .log()
            .iter()
            .any(|line| line.contains("The conn_id `shop` isn't defined")),
        "{:?}",
        played.log()
    );
}

#[test]
fn a_class_that_derives_a_toolset_of_the_worker_is_told_to_wrap_it() {
    let module = format!(
        "{CUSTOM}\nclass Own(SQLToolset):\n    async def get_tools(self, ctx):\n        \
         return await super().get_tools(ctx)\n"
    );
    let played = play(&module, "[Own('harbour')]", &[]);
    let told = "its toolset Own (made) does not run natively: it derives SQLToolset and defines get_tools: derive \
                WrapperToolset, and wrap a SQLToolset in it";
    assert!(played.error().contains(told), "{}", played.error());
    // `updraft check` says so beforehand, also of one inside a wrapper.
    let (_folder, file) = agent_file(&module, "[Own('harbour').prefixed('p')]", &[], &json!({}));
    let checked = updraft(&["check", "--json", &file.display().to_string()]);
    let report: Value = serde_json::from_slice(&checked.stdout).unwrap();
    let ask = &report["files"][0]["dags"][0]["tasks"][0];
    assert_eq!(ask["reason"], told, "{report:#}");
}

#[test]
fn a_class_that_gives_a_toolset_of_the_worker_its_arguments_is_that_toolset() {
    let module = format!(
        "{CUSTOM}\nclass Ports(SQLToolset):\n    size = 1\n    def __init__(self):\n        \
         super().__init__('harbour', allowed_tables=['ports'])\n"
    );
    let calls = [
        ("query", json!({"sql": "SELECT name FROM ports"})),
        ("query", json!({"sql": "SELECT * FROM sqlite_master"})),
    ];
    let played = play(&module, "[Ports()]", &calls);
    let log = played.succeeded().log();
    assert_eq!(log[0], "Tool query returned");
    assert!(
        log[1].starts_with("Tool query requested ModelRetry")
            && log[1].contains("allowed tables list: sqlite_master"),
        "{log:?}"
    );
}

#[test]
fn methods_of_a_hook_are_tools_with_a_rendered_connection_and_results_of_a_bearable_size() {
    let module = r#"
from airflow.providers.common.ai.toolsets.hook import HookToolset
from airflow.sdk import BaseHook

class TideHook(BaseHook):
    conn_name_attr = "tide_conn_id"

    def __init__(self, tide_conn_id="tide"):
        super().__init__()
        self.tide_conn_id = tide_conn_id

    def where(self) -> str:
        return self.tide_conn_id

    def much(self) -> str:
        return "x" * 2000000

for method in ("get_connection", "_made"):
    try:
        HookToolset(TideHook(), allowed_methods=[method])
    except ValueError as error:
        assert "does not expose" in str(error)
    else:
        raise AssertionError(method)
"#;
    let played = play(
        module,
        "[HookToolset(TideHook('{{ task.task_id }}_tide'), allowed_methods=['where', 'much'])]",
        &[("where", json!({})), ("much", json!({}))],
    );
    let log = played.succeeded().log();
    assert!(
        log[1].contains("requested ToolFailed") && log[1].contains("has 2000000 bytes"),
        "{log:?}"
    );
    let rendered = events(task(&played.report, "ask", -1)).join("\n");
    assert!(
        rendered.contains("Rendered toolset hook-TideHook-ask_tide"),
        "{rendered}"
    );
}

#[test]
fn hooks_that_the_worker_brings_are_described_and_called_like_those_of_the_dag_file() {
    let module = r#"
import logging
from airflow.providers.common.ai.toolsets.hook import HookToolset
from airflow.providers.http.hooks.http import HttpHook
from airflow.providers.sqlite.hooks.sqlite import SqliteHook

log = logging.getLogger("airflow.task.operators.test")

class Ports(SqliteHook):
    def get_records(self, sql, parameters=None):
        rows = super().get_records(sql, parameters)
        log.info("seen: %r", rows)
        return rows
"#;
    let played = play(
        module,
        "[HookToolset(Ports('harbour'), allowed_methods=['get_records', 'get_first'])]",
        &[
            (
                "get_records",
                json!({"sql": "SELECT name, depth FROM ports"}),
            ),
            ("get_first", json!({"sql": "SELECT count(*) FROM ports"})),
        ],
    );
    let log = played.succeeded().log();
    assert!(
        log.contains(&"seen: [('Oslo', 12.5)]".to_owned()),
        "{log:?}"
    );
    assert!(
        log.contains(&"Tool get_first returned".to_owned()),
        "{log:?}"
    );
    // The connection is not defined, and the method that hands out a driver's object does not run here.
    let played = play(
        module,
        "[HookToolset(HttpHook(http_conn_id='nowhere'), allowed_methods=['run'])]",
        &[("run", json!({"endpoint": "x"}))],
    );
    assert!(
        played
            .error()
            .contains("The conn_id `nowhere` isn't defined"),
        "{}",
        played.error()
    );
    let played = play(
        module,
        "[HookToolset(SqliteHook('harbour'), allowed_methods=['get_df'])]",
        &[],
    );
    assert!(
        played
            .error()
            .contains("HookToolset with SqliteHook.get_df"),
        "{}",
        played.error()
    );
}

#[test]
fn a_function_makes_a_toolset_for_each_step_and_the_one_before_ends() {
    let module = r#"
import logging
from airflow.providers.common.ai.toolsets.sql import SQLToolset
from pydantic_ai.toolsets import DynamicToolset, FunctionToolset, WrapperToolset

log = logging.getLogger("airflow.task.operators.test")

class Told(WrapperToolset):
    async def __aenter__(self):
        log.info("seen: enter")
        return await super().__aenter__()

    async def __aexit__(self, *args):
        log.info("seen: leave")
        return await super().__aexit__(*args)

def first() -> str:
    """The first."""
    return "one"

async def each_step(ctx):
    if ctx.run_step == 1:
        return Told(FunctionToolset(tools=[first]))
    if ctx.run_step == 2:
        return Told(SQLToolset(db_conn_id="harbour", allowed_tables=["ports"]))
    return None
"#;
    let played = play(
        module,
        "[DynamicToolset(each_step).prefixed('now')]",
        &[
            ("now_first", json!({})),
            ("now_query", json!({"sql": "SELECT name FROM ports"})),
            ("now_first", json!({})),
        ],
    );
    assert_eq!(
        played.succeeded().log(),
        [
            "seen: enter",
            "Tool now_first returned",
            "seen: leave",
            "seen: enter",
            "Tool now_query returned",
            "seen: leave",
        ]
    );
}

#[test]
fn tools_that_are_held_back_are_found_by_searching() {
    let played = play(
        FUNCTIONS,
        "[FunctionToolset(tools=[picky]), FunctionToolset(tools=[double]).prefixed('math').defer_loading()]",
        &[
            ("math_double", json!({"number": 1})),
            ("search_tools", json!({"queries": ["double a number"]})),
            ("math_double", json!({"number": 2})),
        ],
    );
    assert_eq!(
        played.succeeded().log(),
        ["seen: 4", "Tool math_double returned"]
    );
    for (toolsets, reason) in [
        (
            "[FunctionToolset(tools=[double]).defer_loading().prefixed('math')]",
            "defer_loading() within another wrapper",
        ),
        (
            "[FunctionToolset(tools=[double]).approval_required()]",
            "ApprovalRequiredToolset (pydantic_ai.toolsets.wrappers) does not run natively: it waits for a person's",
        ),
        (
            "[FunctionToolset(tools=[double]).include_return_schemas()]",
            "IncludeReturnSchemasToolset (pydantic_ai.toolsets.wrappers) does not run natively: it tells the model",
        ),
        (
            "[FunctionToolset(tools=[double], requires_approval=True)]",
            "has tools that wait for a person's approval (double)",
        ),
    ] {
        let refused = play(FUNCTIONS, toolsets, &[]);
        assert!(
            refused.error().contains(reason),
            "{toolsets}: {}",
            refused.error()
        );
    }
}

#[test]
fn metadata_is_there_for_the_functions_that_filter() {
    let played = play(
        FUNCTIONS,
        "[CombinedToolset([FunctionToolset(tools=[double]).with_metadata(open=True), FunctionToolset(tools=[picky])])\
            .filtered(lambda ctx, tool: (tool.metadata or {}).get('open'))]",
        &[
            ("picky", json!({"word": "please"})),
            ("double", json!({"number": 4})),
        ],
    );
    assert_eq!(
        played.succeeded().log(),
        ["seen: 8", "Tool double returned"]
    );
}
