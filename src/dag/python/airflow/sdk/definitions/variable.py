"""Variables."""

import _updraft
from airflow.sdk.definitions._internal.node import NOTSET


class Variable:
    """A setting that all Dags can read."""

    def __init__(self, key, value=None, description=None):
        self.key = key
        self.value = value
        self.description = description

    @classmethod
    def get(cls, key, default=NOTSET, deserialize_json=False, default_var=NOTSET):
        """The variable's text, or what its JSON says; `default` without one."""
        text = _updraft.variable(key)
        if text is None:
            default = default if default is not NOTSET else default_var
            if default is not NOTSET:
                return default
            raise _not_found(key)
        if deserialize_json:
            import json

            return json.loads(text)
        return text

    @classmethod
    def setdefault(cls, key, default, description=None, deserialize_json=False):
        """The variable; set to `default` when there is none."""
        found = cls.get(key, None, deserialize_json=deserialize_json)
        if found is None:
            cls.set(key, default, description, serialize_json=deserialize_json)
            return default
        return found

    @classmethod
    def set(cls, key, value, description=None, serialize_json=False):
        """Sets the variable."""
        if serialize_json:
            import json

            value = json.dumps(value, indent=2)
        _updraft.set_variable(key, str(value), description)

    @classmethod
    def delete(cls, key):
        """Removes the variable."""
        _updraft.set_variable(key, None, None)


def _not_found(key):
    from airflow.sdk.exceptions import AirflowRuntimeError

    return AirflowRuntimeError(f"VARIABLE_NOT_FOUND: {{'message': 'Variable {key} not found'}}")
