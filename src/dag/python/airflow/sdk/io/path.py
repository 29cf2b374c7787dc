"""`ObjectStoragePath`: paths in object stores, and files."""

import io


class _Written(io.BytesIO):
    """What is written to a path: it arrives when the file is closed."""

    def __init__(self, place, before=b""):
        super().__init__()
        self.write(before)
        self._place = place

    def close(self):
        if not self.closed:
            self._place.write(self.getvalue())
        super().close()


class ObjectStoragePath:
    """A path like `s3://conn_id@bucket/key`: the worker reads and writes for it."""

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

    def _place(self):
        from updraft_storage import place_of

        return place_of(self)

    def _kind(self):
        found = self._place().stat()
        return None if found is None else found.kind

    def _missing(self):
        return FileNotFoundError(2, "No such file or directory", str(self))

    def exists(self):
        """Is there something at the path?"""
        return self._kind() is not None

    def is_file(self):
        """Is it a file?"""
        return self._kind() == "file"

    def is_dir(self):
        """Is it a folder?"""
        return self._kind() == "folder"

    def stat(self):
        """Size (`st_size`) and time (`st_mtime`)."""
        found = self._place().stat()
        if found is None:
            raise self._missing()
        return found

    def size(self):
        """Bytes of the file."""
        return self.stat().st_size

    def open(self, mode="r", encoding=None, errors=None, newline=None, **kwargs):
        """Opens the file, which is read as a whole, or written as a whole when it is closed."""
        what = mode.replace("b", "").replace("t", "")
        if what not in ("r", "w", "a", "x"):
            raise ValueError(f"{self}: the mode {mode!r} is not there; open it with r, w, a or x")
        place = self._place()
        if what == "r":
            found = place.read()
            if found is None:
                raise self._missing()
            file = io.BytesIO(found)
        else:
            if what == "x" and place.stat() is not None:
                raise FileExistsError(17, "File exists", str(self))
            file = _Written(place, (place.read() or b"") if what == "a" else b"")
        return file if "b" in mode else io.TextIOWrapper(file, encoding or "utf-8", errors, newline)

    def read_text(self, encoding="utf-8", errors=None):
        """The file's text."""
        with self.open("r", encoding=encoding, errors=errors) as file:
            return file.read()

    def read_bytes(self):
        """The file's bytes."""
        with self.open("rb") as file:
            return file.read()

    def write_text(self, data, encoding="utf-8", errors=None, newline=None):
        """Writes the file."""
        with self.open("w", encoding=encoding, errors=errors, newline=newline) as file:
            return file.write(data)

    def write_bytes(self, data):
        """Writes the file."""
        with self.open("wb") as file:
            return file.write(data)

    def iterdir(self):
        """What the folder holds."""
        names = self._place().names()
        if names is None:
            raise self._missing()
        return (self / name for name in names)

    def mkdir(self, mode=0o777, parents=False, exist_ok=False):
        """Makes the folder; in a store there are none."""
        self._place().mkdir(parents, exist_ok)

    def touch(self, mode=0o666, exist_ok=True):
        """Makes an empty file where none is."""
        if not self.exists():
            self.write_bytes(b"")
        elif not exist_ok:
            raise FileExistsError(17, "File exists", str(self))

    def unlink(self, missing_ok=False):
        """Removes the file."""
        if not self._place().delete() and not missing_ok:
            raise self._missing()

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
