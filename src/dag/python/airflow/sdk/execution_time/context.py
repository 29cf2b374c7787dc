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


class TaskStateStore:
    """`task_state_store`: values that outlive the tries of a task."""

    def __init__(self, ti_id):
        self._ti_id = ti_id

    def _ask(self, kind, **fields):
        from updraft_request import request

        return request(kind, ti_id=self._ti_id, **fields)

    def get(self, key, default=None):
        """The value; `default` without one."""
        from updraft_request import RequestRefused

        try:
            return self._ask("GetTaskStateStore", key=key)["value"]
        except RequestRefused as error:
            if error.kind == "TASK_STORE_NOT_FOUND":
                return default
            raise

    def set(self, key, value, *, retention=None):
        """Keeps a value: for `retention`, for ever with `NEVER_EXPIRE`, else as long as the configuration says."""
        if value is None:
            raise ValueError("task_state_store keeps no None: delete the key instead")
        from updraft_moment import moment_text

        self._ask("SetTaskStateStore", key=key, value=value, expires_at=moment_text(_expiry(retention)))

    def delete(self, key):
        """Forgets a value."""
        self._ask("DeleteTaskStateStore", key=key)

    def clear(self):
        """Forgets every value of the task."""
        self._ask("ClearTaskStateStore")


def _expiry(retention):
    from datetime import datetime, timezone

    if retention is NEVER_EXPIRE:
        return None
    if retention is None:
        from airflow.sdk.configuration import conf

        days = conf.getint("state_store", "default_retention_days", fallback=30)
        if days < 0:
            raise ValueError(f"[state_store] default_retention_days is {days}: set it to 0 for no expiry, or higher")
        if days == 0:
            return None
        retention = timedelta(days=days)
    return datetime.now(tz=timezone.utc) + retention


class _AssetStateStore:
    def __init__(self, by, value):
        self._by = by
        self._value = value

    def _ask(self, verb, **fields):
        from updraft_request import request

        return request(f"{verb}AssetStateStoreBy{self._by.capitalize()}", **{self._by: self._value}, **fields)

    def get(self, key, default=None):
        """The value; `default` without one."""
        from updraft_request import RequestRefused

        try:
            return self._ask("Get", key=key)["value"]
        except RequestRefused as error:
            if error.kind == "ASSET_STORE_NOT_FOUND":
                return default
            raise

    def set(self, key, value):
        """Keeps a value."""
        if value is None:
            raise ValueError("asset_state_store keeps no None: delete the key instead")
        self._ask("Set", key=key, value=value)

    def delete(self, key):
        """Forgets a value."""
        self._ask("Delete", key=key)

    def clear(self):
        """Forgets every value of the asset."""
        self._ask("Clear")


class AssetStateStores:
    """`asset_state_store[asset]`: values kept beside an asset; of a task with one asset, the asset can be left out."""

    def __init__(self, inlets, outlets):
        self._stores = {}
        for asset in inlets:
            self._add(asset, aliases=True)
        for asset in outlets:
            self._add(asset, aliases=False)

    def _add(self, asset, aliases):
        from airflow.sdk.definitions.asset import Asset, AssetAlias, AssetNameRef, AssetUriRef

        if isinstance(asset, (Asset, AssetNameRef)):
            self._stores.setdefault(("name", asset.name), _AssetStateStore("name", asset.name))
        elif isinstance(asset, AssetUriRef):
            self._stores.setdefault(("uri", asset.uri), _AssetStateStore("uri", asset.uri))
        elif isinstance(asset, AssetAlias) and aliases:
            from updraft_request import request

            for found in (request("GetAssetsByAlias", alias_name=asset.name) or {}).get("assets") or ():
                self._stores.setdefault(("name", found["name"]), _AssetStateStore("name", found["name"]))

    def __getitem__(self, asset):
        from airflow.sdk.definitions.asset import Asset, AssetNameRef, AssetUriRef

        if isinstance(asset, (Asset, AssetNameRef)):
            key = ("name", asset.name)
        elif isinstance(asset, AssetUriRef):
            key = ("uri", asset.uri)
        else:
            raise TypeError(f"asset_state_store is asked for an Asset or a reference to one, not {asset!r}")
        if key not in self._stores:
            raise KeyError(f"{asset!r} is not in this task's inlets or outlets")
        return self._stores[key]

    def _only(self):
        if len(self._stores) != 1:
            raise ValueError(
                f"this task has {len(self._stores)} assets: ask context['asset_state_store'][asset] for one of them"
            )
        return next(iter(self._stores.values()))

    def get(self, key, default=None):
        """The value kept beside the task's only asset."""
        return self._only().get(key, default)

    def set(self, key, value):
        """Keeps a value beside the task's only asset."""
        self._only().set(key, value)

    def delete(self, key):
        """Forgets a value of the task's only asset."""
        self._only().delete(key)

    def clear(self):
        """Forgets every value of the task's only asset."""
        self._only().clear()


_previous_runs = {}


class PreviousDate:
    """A date of the Dag's last successful run, asked for when it is used."""

    def __init__(self, ti_id, field):
        object.__setattr__(self, "_where", (ti_id, field))

    def _updraft_value(self):
        from updraft_moment import moment

        ti_id, field = self._where
        if ti_id not in _previous_runs:
            from updraft_request import request

            _previous_runs[ti_id] = request("GetPrevSuccessfulDagRun", ti_id=ti_id) or {}
        return moment(_previous_runs[ti_id].get(field))

    def __getattr__(self, name):
        return getattr(self._updraft_value(), name)

    def __bool__(self):
        return bool(self._updraft_value())

    def __hash__(self):
        return hash(self._updraft_value())


def _delegate(name):
    def method(self, *args):
        args = [arg._updraft_value() if isinstance(arg, PreviousDate) else arg for arg in args]
        return getattr(self._updraft_value(), name)(*args)

    method.__name__ = name
    setattr(PreviousDate, name, method)


for _name in ("str", "repr", "format", "eq", "ne", "lt", "le", "gt", "ge", "add", "radd", "sub", "rsub"):
    _delegate(f"__{_name}__")
