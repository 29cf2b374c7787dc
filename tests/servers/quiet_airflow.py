"""What the scripts that ask Airflow share: requests on standard input, answers on standard output, nothing else there."""

import json
import logging
import os
import sys
import tempfile
import warnings
from collections.abc import Callable


def converse(answer: Callable[[list], list]) -> None:
    """Reads a JSON list, prints the JSON list that `answer` makes of it. Airflow's modules are for `answer` to import."""
    requests = json.load(sys.stdin)
    os.environ["AIRFLOW_HOME"] = tempfile.mkdtemp()
    os.environ["AIRFLOW__CORE__LOAD_EXAMPLES"] = "False"
    warnings.simplefilter("ignore")
    # Airflow logs to standard output.
    answers_to = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    import airflow  # noqa: F401

    logging.disable(logging.CRITICAL)
    json.dump(answer(requests), answers_to)
    answers_to.close()


def outcome(call: Callable[[], object]) -> dict[str, object]:
    """What a toolset's call comes to: {"value"}, or {"retry"} with what the model is told."""
    from pydantic_ai.exceptions import ModelRetry

    try:
        return {"value": call()}
    except ModelRetry as retry:
        return {"retry": retry.message}
