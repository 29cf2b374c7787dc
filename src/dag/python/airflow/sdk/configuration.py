"""Airflow's configuration."""

import _updraft
from airflow.sdk.definitions._internal.node import NOTSET

_TRUE = ("t", "true", "1")
_FALSE = ("f", "false", "0")


class _Configuration:
    """`conf`: reads the worker's Airflow configuration."""

    def get(self, section, key, fallback=NOTSET, **kwargs):
        """The value; `fallback` without one."""
        value = _updraft.config(section, key)
        if value is not None:
            return value
        if fallback is not NOTSET:
            return fallback
        from airflow.sdk.exceptions import AirflowConfigException

        raise AirflowConfigException(f"section/key [{section.lower()}/{key.lower()}] not found in config")

    def _converted(self, section, key, kwargs, convert, described):
        value = self.get(section, key, **kwargs)
        if not isinstance(value, str):
            return value
        try:
            return convert(value.partition("#")[0].strip())
        except ValueError:
            from airflow.sdk.exceptions import AirflowConfigException

            raise AirflowConfigException(
                f"Failed to convert value to {described}. Please check {key!r} key in {section!r} section. "
                f"Current value: {value!r}."
            ) from None

    def getboolean(self, section, key, **kwargs):
        """The value as a bool."""

        def convert(text):
            text = text.lower()
            if text in _TRUE:
                return True
            if text in _FALSE:
                return False
            raise ValueError

        return self._converted(section, key, kwargs, convert, "bool")

    def getint(self, section, key, **kwargs):
        """The value as an int."""
        return self._converted(section, key, kwargs, int, "int")

    def getfloat(self, section, key, **kwargs):
        """The value as a float."""
        return self._converted(section, key, kwargs, float, "float")

    def getlist(self, section, key, delimiter=",", **kwargs):
        """The value as a list of texts."""
        value = self.get(section, key, **kwargs)
        if not isinstance(value, str):
            return value
        return [part.strip() for part in value.split(delimiter)] if value else []

    def getjson(self, section, key, fallback=None, **kwargs):
        """The value as JSON says it."""
        value = _updraft.config(section, key)
        if not value:
            return fallback
        import updraft_values

        return updraft_values.from_json(value)

    def has_option(self, section, option, **kwargs):
        """Is there a value?"""
        return _updraft.config(section, option) is not None


conf = _Configuration()


def __getattr__(name):
    # Environment variables that Airflow's configuration module gives as constants.
    if name in ("AIRFLOW_HOME", "AIRFLOW_CONFIG"):
        import os

        home = os.environ.get("AIRFLOW_HOME") or os.path.join(os.environ.get("HOME", "/root"), "airflow")
        return home if name == "AIRFLOW_HOME" else os.environ.get("AIRFLOW_CONFIG") or home + "/airflow.cfg"
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def get_airflow_home():
    """The folder of Airflow's files."""
    return __getattr__("AIRFLOW_HOME")
