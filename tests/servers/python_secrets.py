"""Ask Airflow's own secrets backends: the answers that Updraft's are compared with.

Reads a JSON list from standard input, an object for each backend: {"class": name, "kwargs": object, "asked": [[kind, name],
...]} with `connection`, `variable` or `config` as kinds. Prints, for each backend, a list with an answer for each question:
null, {"value": text}, {"connection": object} or {"error": class}.
"""

import json

from quiet_airflow import converse


def answers(requests: list) -> list:
    from airflow.sdk._shared.module_loading import import_string
    from airflow.sdk.definitions.connection import Connection

    given = []
    for request in requests:
        backend = import_string(request["class"])(**request["kwargs"])
        backend._set_connection_class(Connection)
        given.append([answer(backend, kind, name) for kind, name in request["asked"]])
    return given


def answer(backend, kind: str, name: str):
    try:
        found = getattr(backend, f"get_{kind}")(name)
    except Exception as error:
        return {"error": type(error).__name__}
    if found is None:
        return None
    if kind == "connection":
        fields = ("conn_id", "conn_type", "host", "schema", "login", "password", "port", "extra")
        return {"connection": {field: getattr(found, field) for field in fields}}
    # Updraft's variables are texts: other values are their JSON.
    return {"value": found if isinstance(found, str) else json.dumps(found, separators=(",", ":"))}


converse(answers)
