"""One task for each row of the README's table of what runs natively: the task id is the key of the row."""

from __future__ import annotations

import logging
from datetime import timedelta

from airflow.providers.common.ai.hooks.pydantic_ai import PydanticAIHook
from airflow.providers.common.ai.operators.agent import AgentOperator
from airflow.providers.common.ai.operators.llm import LLMOperator
from airflow.providers.common.ai.operators.llm_batch import LLMBatchOperator
from airflow.providers.common.ai.operators.llm_branch import DecisionPolicy, LLMBranchOperator
from airflow.providers.common.ai.operators.llm_file_analysis import LLMFileAnalysisOperator
from airflow.providers.common.ai.operators.llm_schema_compare import LLMSchemaCompareOperator
from airflow.providers.common.ai.operators.llm_sql import LLMSQLQueryOperator
from airflow.providers.common.ai.toolsets.datafusion import DataFusionToolset
from airflow.providers.common.ai.toolsets.hook import HookToolset
from airflow.providers.common.ai.toolsets.logging import LoggingToolset
from airflow.providers.common.ai.toolsets.mcp import MCPToolset
from airflow.providers.common.ai.toolsets.object_storage import ObjectStorageToolset
from airflow.providers.common.ai.toolsets.skills import AgentSkillsToolset
from airflow.providers.common.ai.toolsets.sql import SQLToolset
from airflow.providers.common.sql.config import DataSourceConfig
from airflow.providers.http.hooks.http import HttpHook
from airflow.providers.redis.hooks.redis import RedisHook
from airflow.providers.ssh.operators.ssh import SSHOperator
from airflow.providers.standard.operators.bash import BashOperator
from airflow.providers.standard.operators.empty import EmptyOperator
from airflow.providers.standard.operators.python import PythonOperator
from airflow.providers.standard.operators.trigger_dagrun import TriggerDagRunOperator
from airflow.providers.standard.sensors.python import PythonSensor
from airflow.providers.standard.sensors.time_delta import TimeDeltaSensor, WaitSensor
from airflow.sdk import DAG, BaseHook, BaseOperator, TaskGroup, task
from pydantic import BaseModel
from pydantic_ai import Agent
from pydantic_ai.capabilities import MCP, Hooks, PrefixTools, Thinking, Toolset, ToolSearch, WebSearch
from pydantic_ai.mcp import MCPServerStdio
from pydantic_ai.toolsets import AbstractToolset, CombinedToolset, DynamicToolset, FunctionToolset


class OwnHook(BaseHook):
    def tide(self, port: str) -> str:
        """The tide at a port."""
        return port


class OwnToolset(AbstractToolset):
    @property
    def id(self):
        return "own"

    async def get_tools(self, ctx):
        return {}

    async def call_tool(self, name, tool_args, ctx, tool):
        return None


class Answer(BaseModel):
    text: str


def tool(number: int) -> int:
    """Doubles."""
    return 2 * number


class Own(BaseOperator):
    def execute(self, context):
        return 1


def agent(task_id: str, **more):
    return AgentOperator(task_id=task_id, llm_conn_id="llm", prompt="Hello.", **more)


with DAG(dag_id="readme_table", schedule=None):
    agent("agent_operator")
    agent("sql_toolset", toolsets=[SQLToolset("db", allowed_tables=["t"])])
    agent("output_type", output_type=Answer)
    agent("usage_limits", usage_limits={"request_limit": 3})
    agent("durable", durable=True)
    agent("hitl_review", enable_hitl_review=True)
    agent("message_history", message_history=[])
    agent("fallback", fallback_conn_ids=["other"])
    prefixed = PrefixTools(wrapped=Toolset(SQLToolset("db")), prefix="one")
    server = MCP("http://localhost:1/mcp")
    agent("capabilities", capabilities=[Thinking(effort="high"), WebSearch(), prefixed, server, ToolSearch()])
    agent("other_capability", capabilities=[Hooks()])
    agent("hook_toolset", toolsets=[HookToolset(HttpHook(http_conn_id="web"), allowed_methods=["run"])])
    agent("own_hook_toolset", toolsets=[HookToolset(OwnHook(), allowed_methods=["tide"])])
    agent("other_hook_toolset", toolsets=[HookToolset(RedisHook(redis_conn_id="cache"), allowed_methods=["get_conn"])])
    agent("object_storage_toolset", toolsets=[ObjectStorageToolset("file:///data")])
    source = DataSourceConfig(conn_id="files", table_name="t", uri="file:///data/t.csv", format="csv")
    agent("datafusion_toolset", toolsets=[DataFusionToolset(datasource_configs=[source])])
    source = DataSourceConfig(conn_id="catalog", table_name="t", db_name="d", format="iceberg")
    agent("iceberg_toolset", toolsets=[DataFusionToolset(datasource_configs=[source])])
    agent("mcp_toolset", toolsets=[MCPToolset("mcp")])
    agent("mcp_server", toolsets=[MCPServerStdio("uvx", args=["mcp-run-python"])])
    agent("skills_toolset", toolsets=[AgentSkillsToolset(sources=["/skills"])])
    agent("function_toolset", toolsets=[FunctionToolset(tools=[tool])])
    agent("own_toolset", toolsets=[OwnToolset()])
    one, two = SQLToolset("db").prefixed("one"), SQLToolset("db").renamed({"two": "query"})
    both = CombinedToolset([one, two.filtered(lambda ctx, tool: tool.name == "two")])
    agent("composed_toolset", toolsets=[LoggingToolset(wrapped=both, logger=logging.getLogger("own"))])
    agent("deferred_toolset", toolsets=[SQLToolset("db").defer_loading()])
    agent("dynamic_toolset", toolsets=[DynamicToolset(lambda ctx: SQLToolset("db"), id="made")])
    agent("approved_toolset", toolsets=[SQLToolset("db").approval_required()])
    AgentOperator.partial(task_id="mapped", llm_conn_id="llm").expand(prompt=["a", "b"])
    AgentOperator.partial(task_id="mapped_kwargs", llm_conn_id="llm").expand_kwargs([{"prompt": "a"}])
    with TaskGroup("group"):
        agent("task_group")

    @task.agent(llm_conn_id="llm")
    def task_agent():
        return "Hello."

    @task
    def plain_task():
        return 1

    @task
    def own_agent():
        agent = PydanticAIHook(llm_conn_id="llm").create_agent(output_type=Answer, instructions="Be brief.")
        return Agent(agent.model, toolsets=[SQLToolset("db")]).run_sync(agent.run_sync("Hello.").output.text).output

    @task
    def sdk_agent():
        from agents import Agent, Runner

        from airflow.providers.common.ai.tools.openai_agents import AirflowTools

        return Runner.run_sync(Agent(name="a", tools=AirflowTools(SQLToolset("db"))), "Hello.").final_output

    @task.branch
    def branch():
        return "empty_operator"

    @task.short_circuit
    def short_circuit():
        return True

    @task.llm(llm_conn_id="llm")
    def task_llm():
        return "Hello."

    @task.llm_branch(llm_conn_id="llm")
    def task_llm_branch():
        return "Hello."

    @task.llm(llm_conn_id="llm", require_approval=True)
    def task_llm_approval():
        return "Hello."

    @task.llm_sql(llm_conn_id="llm", db_conn_id="db", table_names=["t"])
    def task_llm_sql():
        return "Hello."

    @task.llm_file_analysis(llm_conn_id="llm", file_path="file:///data")
    def task_llm_files():
        return "Hello."

    @task.llm_schema_compare(llm_conn_id="llm", db_conn_ids=["db", "other"], table_names=["t"])
    def task_llm_schemas():
        return "Hello."

    @task.bash
    def task_bash():
        return "true"

    task_bash()
    task_llm_sql()
    task_llm_files()
    task_llm_schemas()
    task_agent()
    plain_task()
    task_llm_approval()
    own_agent()
    sdk_agent()
    task_llm_branch() >> EmptyOperator(task_id="after_task_llm_branch")
    @task.sensor
    def sensor():
        return True

    short_circuit()
    sensor()
    task_llm()
    branch() >> EmptyOperator(task_id="empty_operator")
    PythonOperator(task_id="python_operator", python_callable=tool, op_args=[1])
    PythonSensor(task_id="python_sensor", python_callable=lambda: True)
    TimeDeltaSensor(task_id="time_delta_sensor", delta=timedelta(minutes=1), deferrable=True)
    WaitSensor(task_id="wait_sensor", time_to_wait=timedelta(minutes=1))
    Own(task_id="own")
    TriggerDagRunOperator(task_id="trigger", trigger_dag_id="other")
    BashOperator(task_id="bash_operator", bash_command="true")
    SSHOperator(task_id="other_operator", command="true")
    LLMOperator(task_id="llm_operator", llm_conn_id="llm", prompt="Hello.")
    LLMOperator(task_id="llm_approval", llm_conn_id="llm", prompt="Hello.", require_approval=True)
    policy = DecisionPolicy(min_confidence=0.5, on_uncertain="fail")
    LLMOperator(task_id="llm_policy", llm_conn_id="llm", prompt="Hello.", decision_policy=policy)
    ask = LLMBranchOperator(task_id="llm_branch_approval", llm_conn_id="llm", prompt="Hello.", require_approval=True)
    ask >> EmptyOperator(task_id="after_approval")
    LLMSQLQueryOperator(task_id="llm_sql", llm_conn_id="llm", prompt="Hello.", db_conn_id="db")
    common = {"llm_conn_id": "llm", "prompt": "Hello."}
    LLMFileAnalysisOperator(task_id="llm_files", file_path="file:///data", require_approval=True, **common)
    sources = [source, DataSourceConfig(conn_id="db", table_name="t")]
    LLMSchemaCompareOperator(task_id="llm_schemas", data_sources=sources, **common)
    LLMBatchOperator(task_id="llm_batch", llm_conn_id="llm", requests=["Hello."], result_path="file:///batch")
    LLMBranchOperator(task_id="llm_branch", llm_conn_id="llm", prompt="Hello.") >> EmptyOperator(task_id="after")
