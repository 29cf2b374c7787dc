"""Assets: data that Dags make and wait for."""

from updraft_record import REQUIRED, Fresh, Record


class BaseAsset:
    """Something that a Dag can be scheduled on."""

    _is_asset = True

    def __or__(self, other):
        return AssetAny(self, other) if isinstance(other, BaseAsset) else NotImplemented

    def __and__(self, other):
        return AssetAll(self, other) if isinstance(other, BaseAsset) else NotImplemented

    def as_expression(self):
        """The condition as plain data."""
        return repr(self)


class Asset(BaseAsset):
    """A piece of data, by name and address."""

    asset_type = "asset"

    def __init__(self, name=None, uri=None, *, group=None, extra=None, watchers=None, access_control=None):
        if name is None and uri is None:
            raise TypeError("Asset() requires either 'name' or 'uri'")
        for given in (name, uri):
            if given is not None and (not isinstance(given, str) or not given or given.isspace()):
                raise ValueError(f"{type(self).__name__} name and uri must be text that is not empty")
        self.name = name if name is not None else uri
        self.uri = _normal_uri(uri if uri is not None else name)
        self.group = group or self.asset_type
        self.extra = extra or {}
        self.watchers = watchers or []
        self.access_control = access_control

    @staticmethod
    def ref(*, name="", uri=""):
        """A reference to an asset that another Dag makes."""
        if bool(name) == bool(uri):
            raise TypeError("Asset reference must be made to either name or URI, not both or neither")
        return AssetNameRef(name) if name else AssetUriRef(uri)

    @property
    def normalized_uri(self):
        """The address."""
        return self.uri

    def __fspath__(self):
        return self.uri

    def __eq__(self, other):
        return isinstance(other, Asset) and (self.name, self.uri, self.group) == (other.name, other.uri, other.group)

    def __hash__(self):
        return hash((self.name, self.uri))

    def __repr__(self):
        return f"{type(self).__name__}(name={self.name!r}, uri={self.uri!r})"

    def serialize(self):
        """The asset as Airflow's XCom holds it."""
        return {
            "name": self.name,
            "uri": self.uri,
            "group": self.group,
            "extra": self.extra,
            "watchers": [],
            "access_control": {"producer_teams": [], "consumer_teams": None, "allow_global": True},
        }

    @classmethod
    def deserialize(cls, data, version):
        """The asset from an XCom."""
        return cls(data.get("name"), data.get("uri"), group=data.get("group"), extra=data.get("extra"))

    def _updraft_profile(self):
        return {"name": self.name, "uri": self.uri, "type": "Asset"}


class Dataset(Asset):
    """An asset of the kind `dataset`."""

    asset_type = "dataset"


class Model(Asset):
    """An asset of the kind `model`."""

    asset_type = "model"


def _normal_uri(uri):
    scheme, separator, rest = uri.partition("://")
    if not separator or not scheme:
        return uri
    host, slash, path = rest.partition("/")
    return f"{scheme.lower()}://{host}{slash}{path}".rstrip("/") if path or slash else f"{scheme.lower()}://{host}"


class AssetRef(BaseAsset):
    """A reference to an asset."""


class AssetNameRef(AssetRef):
    """A reference by name."""

    def __init__(self, name):
        self.name = name

    def _updraft_profile(self):
        return {"name": self.name, "uri": None, "type": "AssetNameRef"}


class AssetUriRef(AssetRef):
    """A reference by address."""

    def __init__(self, uri):
        self.uri = uri

    def _updraft_profile(self):
        return {"name": None, "uri": self.uri, "type": "AssetUriRef"}


class AssetAlias(BaseAsset):
    """A name for assets that are known only when a task runs."""

    def __init__(self, name, *, group="asset"):
        self.name = name
        self.group = group

    def __eq__(self, other):
        return isinstance(other, AssetAlias) and self.name == other.name

    def __hash__(self):
        return hash(self.name)

    def _updraft_profile(self):
        return {"name": self.name, "uri": None, "type": "AssetAlias"}


class _AssetCondition(BaseAsset):
    def __init__(self, *objects):
        if not all(isinstance(item, BaseAsset) for item in objects):
            raise TypeError("expect asset expressions in condition")
        self.objects = list(objects)


class AssetAny(_AssetCondition):
    """Any of several assets."""


class AssetAll(_AssetCondition):
    """All of several assets."""

    @staticmethod
    def agg_func(values):
        """How the parts combine."""
        return all(values)


class AssetWatcher(Record):
    """Watches an asset with a trigger."""

    _positional = {"name": REQUIRED, "trigger": REQUIRED}


class AssetAccessControl(Record):
    """Which teams may use an asset."""

    _positional = {"producer_teams": Fresh(list), "consumer_teams": None, "allow_global": True}


class Metadata(Record):
    """What goes with the event of an asset; yielded by a task."""

    _positional = {"asset": REQUIRED, "extra": Fresh(dict), "alias": None}
