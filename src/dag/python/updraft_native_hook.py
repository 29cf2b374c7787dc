"""Hooks that the worker does: Dag code asks it, and it looks the connection up itself."""

import _updraft
import updraft_values


def ask(hook, conn_id, **more):
    """What the worker's hook answers."""
    request = updraft_values.to_json({"hook": hook, "conn_id": conn_id, **more})
    return updraft_values.from_json(_updraft.hook(request))


def not_here(reason):
    """A method that runs on Python workers only. `reason`: what it would take."""

    def method(self, *args, **kwargs):
        from updraft_unavailable import NotHereError

        raise NotHereError(
            f"{type(self).__name__} does not do this on this worker: it {reason}; write it with the hook's other "
            "methods, or send the task to a queue that a Python worker serves"
        )

    method._updraft_not_here = reason
    return method
