"""Hooks that the worker does: Dag code asks it, and it looks the connection up itself."""

import _updraft
import updraft_values


def ask(hook, conn_id, **more):
    """What the worker's hook answers."""
    request = updraft_values.to_json({"hook": hook, "conn_id": conn_id, **more})
    return updraft_values.from_json(_updraft.hook(request))


def not_here(reason):
    """Marks a method that runs on Python workers only."""

    def mark(function):
        function._updraft_not_here = reason
        return function

    return mark
