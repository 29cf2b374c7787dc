"""Asks the supervisor on behalf of the running task, in the words of the supervisor protocol."""

import _updraft
import updraft_values
from airflow.sdk.exceptions import AirflowRuntimeError


class RequestRefused(AirflowRuntimeError):
    """The server refused or could not answer; `kind` is the protocol's word for why."""

    def __init__(self, kind, detail):
        super().__init__(f"{kind}: {detail}" if detail else kind)
        self.kind = kind
        self.detail = detail


RequestRefused.__name__ = RequestRefused.__qualname__ = "AirflowRuntimeError"
RequestRefused.__module__ = AirflowRuntimeError.__module__


def request(kind, **fields):
    """The answer to one request, as plain data; None when there is nothing to answer."""
    answer = updraft_values.from_json(_updraft.request(updraft_values.to_json({"type": kind, **fields})))
    if isinstance(answer, dict) and answer.get("type") == "ErrorResponse":
        raise RequestRefused(answer.get("error"), answer.get("detail"))
    return answer
