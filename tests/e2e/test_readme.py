"""The README's table of what runs natively against what `updraft check` says."""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path

import examples_table
from harness.worker import updraft_binary

HERE = Path(__file__).parent

WRAPPERS = (
    "`.prefixed()`, `.renamed()`, `.filtered()`, `.prepared()`, `.defer_loading()`, `CombinedToolset`, "
    "`DynamicToolset`, `LoggingToolset`"
)
CAPABILITIES = (
    "`capabilities`: `Thinking`, `WebSearch`, `Toolset`, `MCP`, `PrefixTools`, `ToolSearch` "
    "([docs/models.md](docs/models.md))"
)
# The row of each task of readme_table.py.
ROWS = {
    "agent_operator": "`AgentOperator`",
    "task_agent": "`@task.agent`",
    "plain_task": "`@task`, `PythonOperator`: Python that needs the standard library only",
    "own_agent": "`pydantic_ai.Agent`, `PydanticAIHook.create_agent` in such functions ([docs/agents.md](docs/agents.md))",
    "sdk_agent": "`agents.Agent` of the OpenAI Agents SDK in such functions ([docs/openai_agents.md](docs/openai_agents.md))",
    "python_operator": "`@task`, `PythonOperator`: Python that needs the standard library only",
    "empty_operator": "`EmptyOperator`",
    "group.task_group": "task groups",
    "mapped": "mapped tasks: `.expand`, `.expand_kwargs`",
    "mapped_kwargs": "mapped tasks: `.expand`, `.expand_kwargs`",
    "usage_limits": "`usage_limits`",
    "fallback": "`fallback_conn_ids`",
    "capabilities": CAPABILITIES,
    "other_capability": "other capabilities",
    "sql_toolset": "`SQLToolset` on SQLite, PostgreSQL, MySQL, MariaDB, SQL Server",
    "sql_toolset_elsewhere": "`SQLToolset` on other databases",
    "hook_toolset": "`HookToolset` of a hook class in the Dag, of a hook in [docs/hooks.md](docs/hooks.md)",
    "own_hook_toolset": "`HookToolset` of a hook class in the Dag, of a hook in [docs/hooks.md](docs/hooks.md)",
    "other_hook_toolset": "`HookToolset` of other hooks",
    "object_storage_toolset": "`ObjectStorageToolset` on S3, Google Cloud Storage, Azure Blob Storage, HTTP, local files",
    "datafusion_toolset": "`DataFusionToolset` on Parquet, CSV, Avro, JSON lines and Iceberg tables",
    "iceberg_toolset": "`DataFusionToolset` on Parquet, CSV, Avro, JSON lines and Iceberg tables",
    "mcp_toolset": "`MCPToolset`, `MCPServerStdio` and its kin ([docs/mcp.md](docs/mcp.md))",
    "mcp_server": "`MCPToolset`, `MCPServerStdio` and its kin ([docs/mcp.md](docs/mcp.md))",
    "skills_toolset": "`AgentSkillsToolset`: folders, `GitSkills`",
    "function_toolset": "`FunctionToolset`, toolset classes of the Dag itself",
    "own_toolset": "`FunctionToolset`, toolset classes of the Dag itself",
    "composed_toolset": WRAPPERS,
    "deferred_toolset": WRAPPERS,
    "dynamic_toolset": WRAPPERS,
    "approved_toolset": "`.approval_required()`, `.include_return_schemas()`, `ExternalToolset`",
    "output_type": (
        "`output_type`: models, dataclasses, plain types, unions, `ToolOutput`, `NativeOutput`, `PromptedOutput`"
    ),
    "durable": "`durable=True` ([docs/durable.md](docs/durable.md))",
    "hitl_review": "`enable_hitl_review=True`",
    "message_history": "`message_history`",
    "llm_operator": "`LLMOperator`, `@task.llm`, `LLMBranchOperator`, `@task.llm_branch`",
    "task_llm": "`LLMOperator`, `@task.llm`, `LLMBranchOperator`, `@task.llm_branch`",
    "llm_approval": "any of these with `require_approval=True` or a `decision_policy`",
    "llm_policy": "any of these with `require_approval=True` or a `decision_policy`",
    "task_llm_approval": "any of these with `require_approval=True` or a `decision_policy`",
    "llm_sql": "`LLMSQLQueryOperator`, `@task.llm_sql` on the databases of `SQLToolset`, and on files",
    "task_llm_sql": "`LLMSQLQueryOperator`, `@task.llm_sql` on the databases of `SQLToolset`, and on files",
    "llm_files": "`LLMFileAnalysisOperator`, `@task.llm_file_analysis`",
    "task_llm_files": "`LLMFileAnalysisOperator`, `@task.llm_file_analysis`",
    "llm_schemas": "`LLMSchemaCompareOperator`, `@task.llm_schema_compare`",
    "task_llm_schemas": "`LLMSchemaCompareOperator`, `@task.llm_schema_compare`",
    "llm_batch": "`LLMBatchOperator`, `@task.llm_batch`",
    "llm_branch": "`LLMOperator`, `@task.llm`, `LLMBranchOperator`, `@task.llm_branch`",
    "task_llm_branch": "`LLMOperator`, `@task.llm`, `LLMBranchOperator`, `@task.llm_branch`",
    "llm_branch_approval": "any of these with `require_approval=True` or a `decision_policy`",
    "branch": "`@task.branch`, `@task.short_circuit` and their operators",
    "short_circuit": "`@task.branch`, `@task.short_circuit` and their operators",
    "sensor": "`@task.sensor`, `PythonSensor`, sensors with a `poke` of the Dag author's",
    "python_sensor": "`@task.sensor`, `PythonSensor`, sensors with a `poke` of the Dag author's",
    "trigger": "`TriggerDagRunOperator`",
    "time_delta_sensor": "`TimeSensor`, `TimeDeltaSensor`, `DateTimeSensor`, `WaitSensor`, with `deferrable=True` too",
    "wait_sensor": "`TimeSensor`, `TimeDeltaSensor`, `DateTimeSensor`, `WaitSensor`, with `deferrable=True` too",
    "own": (
        "operators with an `execute` of the Dag author's, which may defer to triggers "
        "([docs/operations.md](docs/operations.md))"
    ),
    "bash_operator": "`BashOperator`, `@task.bash`, where `[updraft] allow_bash` is on",
    "task_bash": "`BashOperator`, `@task.bash`, where `[updraft] allow_bash` is on",
    "other_operator": "other operators",
}
# A connection decides, which `check` may not have: the row stands without a task.
UNCHECKED = {"sql_toolset_elsewhere"}


def test_the_table_of_the_readme_says_what_check_says() -> None:
    text = (HERE.parent.parent / "README.md").read_text()
    section = text.split("## What runs natively", 1)[1].split("\n## ", 1)[0]
    table = dict(re.findall(r"^\| (.+?) \| (yes|no|not yet) \|$", section, re.M))
    assert set(table) == set(ROWS.values())

    done = subprocess.run(
        [updraft_binary(), "check", "--json", str(HERE / "readme_table.py")],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env={**os.environ, "AIRFLOW__UPDRAFT__ALLOW_BASH": "True"},
    )
    (file,) = json.loads(done.stdout)["files"]
    assert file["error"] is None, file
    (dag,) = file["dags"]
    native = {task["task_id"]: task["native"] for task in dag["tasks"]}
    for task_id, row in ROWS.items():
        if task_id not in UNCHECKED:
            assert native[task_id] == (table[row] == "yes"), (task_id, row, table[row])
    for task in dag["tasks"]:
        if not task["native"]:
            assert task["reason"], task
            assert re.search(r"readme_table\.py:\d+", task["location"]), task


def test_the_table_of_the_providers_examples_says_what_check_says() -> None:
    written = examples_table.written(examples_table.README.read_text())
    assert written == examples_table.table(), "python tests/e2e/examples_table.py writes it anew"
