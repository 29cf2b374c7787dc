"""What a task hands to Airflow's triggerer when it defers."""

import updraft_values


class NamedTrigger:
    """A trigger whose class is not here: its path and the arguments it was given, which is what most triggers serialize to."""

    def __init__(self, module, name, args, kwargs):
        if args:
            raise TypeError(
                f"{name} is given arguments by position, and the class is not here to name them: give them by keyword"
            )
        self._classpath = f"{module}.{name}"
        self._arguments = kwargs

    def serialize(self):
        """Its class and its arguments."""
        return self._classpath, self._arguments


def is_trigger(module, name):
    """Does this name of an unavailable module stand for a trigger?"""
    return name.endswith("Trigger") and "." not in name and "triggers" in module.split(".")


def deferral(error):
    """What goes to the server for a `TaskDeferred`."""
    classpath, arguments = error.trigger.serialize()
    timeout = error.timeout
    return {
        "classpath": classpath,
        "trigger_kwargs": _encoded(arguments),
        "queued": getattr(error.trigger, "supports_triggerer_queue", True),
        "method_name": error.method_name,
        "kwargs": _encoded(error.kwargs),
        "timeout": timeout.total_seconds() if hasattr(timeout, "total_seconds") else timeout,
    }


def _encoded(arguments):
    return {str(name): updraft_values.encode(value) for name, value in (arguments or {}).items()}
