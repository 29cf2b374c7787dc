"""What a context gives access to: variables, connections, asset events."""

from datetime import timedelta

NEVER_EXPIRE = timedelta.max


class VariableAccessor:
    """`var.value` and `var.json`: variables as attributes."""

    def __init__(self, deserialize_json):
        self._deserialize_json = deserialize_json

    def __getattr__(self, key):
        if key.startswith("__"):
            raise AttributeError(key)
        from airflow.sdk.definitions.variable import Variable

        return Variable.get(key, deserialize_json=self._deserialize_json)

    def get(self, key, default=None):
        """The variable; `default` without one."""
        from airflow.sdk.definitions.variable import Variable

        return Variable.get(key, default, deserialize_json=self._deserialize_json)


def variables():
    """`var`."""
    return {"json": VariableAccessor(True), "value": VariableAccessor(False)}


class ConnectionAccessor:
    """`conn`: connections as attributes."""

    def __getattr__(self, conn_id):
        if conn_id.startswith("__"):
            raise AttributeError(conn_id)
        from airflow.sdk.definitions.connection import Connection

        return Connection.get(conn_id)

    def get(self, conn_id, default_conn=None):
        """The connection; `default_conn` without one."""
        from airflow.sdk.definitions.connection import Connection
        from airflow.sdk.exceptions import AirflowNotFoundException

        try:
            return Connection.get(conn_id)
        except AirflowNotFoundException:
            return default_conn


class _OutletEvent:
    def __init__(self, asset):
        self.asset = asset
        self.extra = {}
        self.asset_alias_events = []

    def add(self, asset, extra=None):
        """Adds an event of an asset behind an alias."""
        self.asset_alias_events.append((asset, dict(extra or {})))


class OutletEvents:
    """`outlet_events[asset].extra`: what goes with the event of an outlet."""

    def __init__(self):
        self._events = {}

    def __getitem__(self, asset):
        key = getattr(asset, "uri", None) or getattr(asset, "name", None) or asset
        if key not in self._events:
            self._events[key] = _OutletEvent(asset)
        return self._events[key]

    def __iter__(self):
        return iter(self._events)

    def __len__(self):
        return len(self._events)


class InletEvents:
    """`inlet_events`: the past events of inlets, which the worker does not fetch."""

    def __getitem__(self, asset):
        raise RuntimeError("inlet_events is not available on this worker")


class _Event:
    def __init__(self, fields):
        self.__dict__.update(fields)
        self.extra = fields.get("extra") or {}


def triggering_asset_events(events):
    """The events that started the run, by asset."""
    from airflow.sdk.definitions.asset import Asset

    by_asset = {}
    for fields in events:
        described = fields.get("asset") or {}
        asset = Asset(name=described.get("name"), uri=described.get("uri"))
        by_asset.setdefault(asset, []).append(_Event({**fields, "asset": asset, "uri": asset.uri}))
    return _ByAsset(by_asset)


class _ByAsset(dict):
    def __missing__(self, key):
        for asset in self:
            if key in (asset.uri, asset.name):
                return self[asset]
        raise KeyError(key)
