"""The events of assets, as a running task sees and makes them."""

from airflow.sdk.definitions.asset import Asset, AssetAlias, AssetNameRef, AssetRef, AssetUriRef

_MAX_PARTITION_KEY = 250


def _known_asset(ref):
    """The asset that a reference means, as the server describes it."""
    from updraft_request import request

    by, value = ("Name", ref.name) if isinstance(ref, AssetNameRef) else ("Uri", ref.uri)
    fields = request(f"GetAssetBy{by}", **{by.lower(): value})
    if not fields:
        # A local run knows of no assets but those that the Dag names.
        return Asset(value)
    return Asset(name=fields["name"], uri=fields["uri"], group=fields.get("group"), extra=fields.get("extra"))


def _key(asset):
    """What tells assets and aliases apart."""
    if isinstance(asset, Asset):
        return (asset.name, asset.uri)
    if isinstance(asset, AssetAlias):
        return (asset.name,)
    raise TypeError(f"Key should be either an asset or an asset alias, not {type(asset)}")


class _ByAsset:
    """A mapping whose keys are assets, aliases and references."""

    def for_asset(self, *, name=None, uri=None):
        """What belongs to the asset of this name or address, or of both."""
        if name and uri:
            return self[Asset(name=name, uri=uri)]
        if not name and not uri:
            raise ValueError("for_asset() takes a name, an uri or both")
        return self[Asset.ref(name=name) if name else Asset.ref(uri=uri)]

    def for_asset_alias(self, *, name):
        """What belongs to the alias of this name."""
        return self[AssetAlias(name)]


class _OutletEvent:
    """`outlet_events[asset]`: what goes with the event of an outlet."""

    def __init__(self, asset):
        self.key = asset
        self.extra = {}
        self.asset_alias_events = []
        self.partition_keys = set()

    def add(self, asset, extra=None):
        """Adds an event of an asset behind an alias."""
        if not isinstance(self.key, AssetAlias):
            return
        if isinstance(asset, AssetRef):
            asset = _known_asset(asset)
        self.asset_alias_events.append(
            {
                "source_alias_name": self.key.name,
                "dest_asset_key": {"name": asset.name, "uri": asset.uri},
                "dest_asset_extra": asset.extra,
                "extra": extra or {},
            }
        )

    def add_partitions(self, keys):
        """Adds events for partitions of the asset."""
        if isinstance(self.key, AssetAlias):
            raise TypeError("add_partitions() works on assets: an alias has no partitions")
        keys = [keys] if isinstance(keys, str) else list(keys)
        for key in keys:
            if not key.strip() or len(key) > _MAX_PARTITION_KEY:
                raise ValueError(
                    f"a partition key must be text of 1 to {_MAX_PARTITION_KEY} characters, and is {key!r}"
                )
        self.partition_keys.update(keys)


class OutletEvents(_ByAsset):
    """`outlet_events`: what goes with the events of the outlets."""

    def __init__(self):
        self._events = {}

    def __getitem__(self, asset):
        if isinstance(asset, AssetRef):
            asset = _known_asset(asset)
        key = _key(asset)
        if key not in self._events:
            self._events[key] = _OutletEvent(asset)
        return self._events[key]

    def __iter__(self):
        return iter([event.key for event in self._events.values()])

    def __len__(self):
        return len(self._events)

    def plain(self):
        """Everything that was noted, as the supervisor protocol has it (`SucceedTask.outlet_events`)."""
        events = []
        for event in self._events.values():
            if isinstance(event.key, Asset):
                described = {"dest_asset_key": {"name": event.key.name, "uri": event.key.uri}, "extra": event.extra}
                events.extend({**described, "partition_key": key} for key in sorted(event.partition_keys))
                if not event.partition_keys:
                    events.append(described)
            events.extend(event.asset_alias_events)
        return _plain(events)


def _plain(value):
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [_plain(item) for item in value]
    if hasattr(type(value), "isoformat"):
        return value.isoformat()
    if isinstance(value, (str, int, float)) or value is None:
        return value
    raise TypeError(f"the extra of an asset event must be JSON, and holds {value!r}")


class _Event:
    """One event of an asset."""

    def __init__(self, fields):
        self.__dict__.update(fields)
        asset = fields.get("asset") or {}
        self.asset = Asset(
            name=asset.get("name"), uri=asset.get("uri"), group=asset.get("group"), extra=asset.get("extra")
        )
        self.uri = self.asset.uri
        self.extra = fields.get("extra") or {}
        if isinstance(fields.get("timestamp"), str):
            from updraft_moment import moment

            self.timestamp = moment(fields["timestamp"])

    @property
    def source_task_instance(self):
        """The task instance that made the event, as far as the event names it."""
        from airflow.sdk.execution_time.task_instance import TaskInstance

        names = {"dag_id": "source_dag_id", "task_id": "source_task_id", "run_id": "source_run_id"}
        fields = {name: getattr(self, source, None) for name, source in names.items()}
        if not all(fields.values()):
            return None
        return TaskInstance({**fields, "map_index": getattr(self, "source_map_index", -1)})

    def __repr__(self):
        return f"<AssetEvent of {self.asset!r}: {self.extra!r}>"


class _InletEvents:
    """The past events of one inlet, asked for when they are looked at."""

    def __init__(self, kind, names, query=None):
        self._kind = kind
        self._names = names
        self._query = query or {"after": None, "before": None, "ascending": True, "limit": None}
        self._found = None

    def _narrowed(self, **query):
        self._query.update(query)
        self._found = None
        return self

    def after(self, after):
        """Only events after a moment."""
        return self._narrowed(after=after)

    def before(self, before):
        """Only events before a moment."""
        return self._narrowed(before=before)

    def ascending(self, ascending=True):
        """The oldest first, or the youngest."""
        return self._narrowed(ascending=ascending)

    def limit(self, limit):
        """At most so many."""
        return self._narrowed(limit=limit)

    def _events(self):
        if self._found is None:
            from updraft_moment import moment_text
            from updraft_request import request

            query = {**self._query, "after": moment_text(self._query["after"])}
            query["before"] = moment_text(query["before"])
            answer = request(self._kind, **self._names, **query) or {}
            self._found = [_Event(fields) for fields in answer.get("asset_events") or ()]
        return self._found

    def __iter__(self):
        return iter(self._events())

    def __len__(self):
        return len(self._events())

    def __getitem__(self, index):
        return self._events()[index]


class InletEvents(_ByAsset):
    """`inlet_events`: the past events of the inlets, by asset, alias, reference or position."""

    def __init__(self, inlets):
        self._inlets = list(inlets)

    def __getitem__(self, asset):
        if isinstance(asset, int):
            asset = self._inlets[asset]
        for inlet in self._inlets:
            if isinstance(asset, AssetAlias) and isinstance(inlet, AssetAlias) and asset.name == inlet.name:
                return _InletEvents("GetAssetEventByAssetAlias", {"alias_name": inlet.name})
            known = _known_asset(inlet) if isinstance(inlet, AssetRef) else inlet
            if not isinstance(known, Asset):
                continue
            if isinstance(asset, Asset) and _key(asset) == _key(known):
                return _InletEvents("GetAssetEventByAsset", {"name": known.name, "uri": known.uri})
            if isinstance(asset, AssetNameRef) and asset.name == known.name:
                return _InletEvents("GetAssetEventByAsset", {"name": known.name, "uri": None})
            if isinstance(asset, AssetUriRef) and asset.uri == known.uri:
                return _InletEvents("GetAssetEventByAsset", {"name": None, "uri": known.uri})
        if not isinstance(asset, (Asset, AssetAlias, AssetRef)):
            raise TypeError(f"`key` is of unknown type ({type(asset).__name__})")
        raise KeyError(asset)

    def __iter__(self):
        return iter(self._inlets)

    def __len__(self):
        return len(self._inlets)


def triggering_asset_events(events):
    """The events that started the run, by asset and by alias."""
    by_asset = _TriggeringEvents()
    for fields in events:
        event = _Event(fields)
        by_asset.setdefault(event.asset, []).append(event)
        for alias in fields.get("source_aliases") or ():
            by_asset.setdefault(AssetAlias(alias["name"]), []).append(event)
    return by_asset


class _TriggeringEvents(_ByAsset, dict):
    def __missing__(self, key):
        for asset in self:
            if isinstance(asset, Asset) and key in (asset.uri, asset.name):
                return self[asset]
            if isinstance(key, AssetNameRef) and isinstance(asset, Asset) and key.name == asset.name:
                return self[asset]
            if isinstance(key, AssetUriRef) and isinstance(asset, Asset) and key.uri == asset.uri:
                return self[asset]
        raise KeyError(key)
