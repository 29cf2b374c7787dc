"""Ask the Python provider's SQLToolset: the answers that Updraft's are compared with.

Reads a JSON list from standard input, an object for each toolset: {"connection": object, "toolset": keyword arguments,
"calls": [[tool, arguments], ...]}. Prints, for each toolset, a list with an object for each call: {"value": text} or
{"retry": text}.
"""

import asyncio
import json
import logging
import os
import sys
import tempfile
import warnings


def main() -> None:
    requests = json.load(sys.stdin)
    os.environ["AIRFLOW_HOME"] = tempfile.mkdtemp()
    os.environ["AIRFLOW__CORE__LOAD_EXAMPLES"] = "False"
    warnings.simplefilter("ignore")
    # Airflow logs to standard output, which is for the answers.
    answers_to = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)

    from airflow.providers.common.ai.toolsets.sql import SQLToolset
    from pydantic_ai.exceptions import ModelRetry

    logging.disable(logging.CRITICAL)
    answers = []
    for number, request in enumerate(requests):
        os.environ[f"AIRFLOW_CONN_DB{number}"] = json.dumps(request["connection"])
        toolset = SQLToolset(f"db{number}", **request["toolset"])
        given = []
        for tool, arguments in request["calls"]:
            try:
                given.append({"value": asyncio.run(toolset.execute_tool(tool, arguments, ctx=None, tool=None))})
            except ModelRetry as retry:
                given.append({"retry": retry.message})
        answers.append(given)
    json.dump(answers, answers_to)
    answers_to.close()


main()
