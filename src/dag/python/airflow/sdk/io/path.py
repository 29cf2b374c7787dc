"""`ObjectStoragePath`: paths in object stores, and files."""


class ObjectStoragePath:
    """A path like `s3://conn_id@bucket/key`. Reading works for files in the Dag bundle only."""

    sep = "/"
    root_marker = "/"

    def __init__(self, *args, protocol=None, conn_id=None, **storage_options):
        first = str(args[0]) if args else ""
        scheme, separator, rest = first.partition("://")
        if not separator:
            scheme, rest = protocol or "file", first
        if scheme != "file" and "@" in rest.partition("/")[0]:
            user, _, rest = rest.partition("@")
            conn_id = conn_id or user
        for part in args[1:]:
            rest = rest.rstrip("/") + "/" + str(part).lstrip("/")
        self._protocol = scheme
        self._rest = rest
        self._conn_id = conn_id
        self._storage_options = storage_options

    @property
    def protocol(self):
        """The scheme."""
        return self._protocol

    @property
    def conn_id(self):
        """The connection; None without one."""
        return self._conn_id

    @property
    def storage_options(self):
        """Options of the store."""
        return self._storage_options

    @property
    def path(self):
        """The path without the scheme."""
        return self._rest

    @property
    def bucket(self):
        """The bucket."""
        return self._rest.partition("/")[0]

    container = bucket

    @property
    def key(self):
        """The path in the bucket."""
        return self._rest.partition("/")[2]

    @property
    def name(self):
        """The last part."""
        return self._rest.rstrip("/").rpartition("/")[2]

    @property
    def stem(self):
        """The last part without its ending."""
        return self.name.rpartition(".")[0] or self.name

    @property
    def suffix(self):
        """The ending of the last part."""
        _, dot, ending = self.name.rpartition(".")
        return dot + ending if dot else ""

    @property
    def parts(self):
        """The parts."""
        return tuple(part for part in self._rest.split("/") if part)

    def _with(self, rest):
        made = ObjectStoragePath.__new__(type(self))
        made.__dict__.update(self.__dict__)
        made._rest = rest
        return made

    @property
    def parent(self):
        """The folder."""
        return self._with(self._rest.rstrip("/").rpartition("/")[0])

    def joinpath(self, *parts):
        """A path below this one."""
        rest = self._rest.rstrip("/")
        for part in parts:
            rest += "/" + str(part).strip("/")
        return self._with(rest)

    def __truediv__(self, part):
        return self.joinpath(part)

    def with_suffix(self, suffix):
        """The path with another ending."""
        return self.parent / (self.stem + suffix)

    def with_name(self, name):
        """The path with another last part."""
        return self.parent / name

    def as_uri(self):
        """The address."""
        return str(self)

    def __str__(self):
        user = f"{self._conn_id}@" if self._conn_id and self._protocol != "file" else ""
        return f"{self._protocol}://{user}{self._rest}"

    __fspath__ = __str__

    def __repr__(self):
        return f"ObjectStoragePath({str(self)!r})"

    def __eq__(self, other):
        return isinstance(other, ObjectStoragePath) and str(self) == str(other)

    def __hash__(self):
        return hash(str(self))

    def _local(self):
        if self._protocol not in ("file", "local", ""):
            raise NotImplementedError(
                f"{self}: the Dag interpreter reads and writes no object store; give the path to a task or a toolset"
            )
        return self._rest

    def exists(self):
        """Is there something at the path?"""
        import os.path

        return os.path.exists(self._local())

    def is_file(self):
        """Is it a file?"""
        import os.path

        return os.path.isfile(self._local())

    def is_dir(self):
        """Is it a folder?"""
        import os.path

        return os.path.isdir(self._local())

    def open(self, mode="r", **kwargs):
        """Opens the file."""
        return open(self._local(), mode, **{k: v for k, v in kwargs.items() if k in ("encoding", "errors", "newline")})

    def read_text(self, encoding="utf-8", errors=None):
        """The file's text."""
        with self.open("r", encoding=encoding, errors=errors) as file:
            return file.read()

    def read_bytes(self):
        """The file's bytes."""
        with self.open("rb") as file:
            return file.read()

    def write_text(self, data, encoding="utf-8", errors=None):
        """Writes the file."""
        with self.open("w", encoding=encoding, errors=errors) as file:
            return file.write(data)

    def write_bytes(self, data):
        """Writes the file."""
        with self.open("wb") as file:
            return file.write(data)

    def iterdir(self):
        """What the folder holds."""
        import os

        return (self / name for name in sorted(os.listdir(self._local())))

    def mkdir(self, mode=0o777, parents=False, exist_ok=False):
        """Makes the folder."""
        import os

        (os.makedirs if parents else os.mkdir)(self._local(), *([mode, exist_ok] if parents else [mode]))

    def unlink(self, missing_ok=False):
        """Removes the file."""
        import os

        os.unlink(self._local())

    def serialize(self):
        """The path as Airflow's XCom holds it."""
        return {"path": str(self), "conn_id": self._conn_id, "kwargs": self._storage_options}

    @classmethod
    def deserialize(cls, data, version):
        """The path from an XCom."""
        return cls(data["path"], conn_id=data.get("conn_id"), **(data.get("kwargs") or {}))


def attach(protocol=None, conn_id=None, **kwargs):
    """Registers a store in Airflow; nothing here."""
    return None
