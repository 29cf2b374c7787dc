"""Ask the Python provider's SQLToolset: the answers that Updraft's are compared with.

Reads a JSON list from standard input, an object for each toolset: {"connection": object, "toolset": keyword arguments,
"calls": [[tool, arguments], ...]}. Prints, for each toolset, a list with an object for each call: {"value": text} or
{"retry": text}.
"""

import asyncio
import json
import os

from quiet_airflow import converse, outcome


def answers(requests: list) -> list:
    from airflow.providers.common.ai.toolsets.sql import SQLToolset

    given = []
    for number, request in enumerate(requests):
        os.environ[f"AIRFLOW_CONN_DB{number}"] = json.dumps(request["connection"])
        toolset = SQLToolset(f"db{number}", **request["toolset"])
        given.append(
            [
                outcome(lambda: asyncio.run(toolset.execute_tool(tool, arguments, ctx=None, tool=None)))
                for tool, arguments in request["calls"]
            ]
        )
    return given


converse(answers)
