"""Where the bytes of an `ObjectStoragePath` are: in a bucket, in the Dag bundle, on the worker's disk."""

import base64
import os
from types import SimpleNamespace

from updraft_native_hook import ask

# The schemes by the one that the worker knows the kind of store by.
_STORES = {
    **dict.fromkeys(("s3", "s3a", "s3n"), "s3"),
    **dict.fromkeys(("gs", "gcs"), "gs"),
    **dict.fromkeys(("abfs", "abfss", "az", "adl", "wasb", "wasbs"), "wasb"),
}


def place_of(path):
    """What a path stands for."""
    if path.protocol in ("file", "local", ""):
        return LocalPlace(path.path)
    scheme = _STORES.get(path.protocol)
    if scheme is None:
        raise NotImplementedError(f"{path}: Dag code on this worker reads and writes s3://, gs://, abfs:// and file:// only")
    if path.storage_options:
        names = ", ".join(sorted(path.storage_options))
        raise NotImplementedError(f"{path}: the options {names} are for Python's clients; put them into the connection")
    from updraft_bucket import Bucket

    return StorePlace(Bucket(path.conn_id, f"{scheme}://{path.bucket}"), path.key.strip("/"))


class StorePlace:
    """A key in a bucket. Folders are what keys stand below."""

    def __init__(self, bucket, key):
        self._bucket = bucket
        self._key = key

    def stat(self):
        """Kind, size and time; None when nothing is there."""
        found = self._bucket.head(self._key) if self._key else None
        if found is not None:
            return SimpleNamespace(kind="file", st_size=found.size, st_mtime=found.last_modified.timestamp())
        objects, _ = self._bucket.list(prefix=self._below(), max_items=1)
        return SimpleNamespace(kind="folder", st_size=0, st_mtime=0.0) if objects or not self._key else None

    def _below(self):
        return f"{self._key}/" if self._key else ""

    def read(self):
        """The bytes; None when nothing is there."""
        return None if self._bucket.head(self._key) is None else self._bucket.read(self._key)

    def write(self, data):
        """Writes the object."""
        self._bucket.write(self._key, data)

    def names(self):
        """What stands directly below; None when nothing does."""
        objects, prefixes = self._bucket.list(prefix=self._below(), delimiter="/")
        found = [item.key for item in objects] + [prefix.rstrip("/") for prefix in prefixes]
        names = sorted({name.rpartition("/")[2] for name in found if name.strip("/") != self._key})
        return names or None

    def mkdir(self, parents, exist_ok):
        """Nothing: folders of a store come with what is in them."""

    def delete(self):
        """Removes the object; was there one?"""
        return self._bucket.head(self._key) is not None and bool(self._bucket.delete([self._key]))


class LocalPlace:
    """A file of the Dag bundle, for reading, or one below the folders that the worker opens to Dag code."""

    def __init__(self, path):
        self._path = path

    def _ask(self, what, **more):
        answer = ask("local_storage", None, path=self._path, operation={"do": what, **more})
        if "refused" in answer:
            raise PermissionError(13, answer["refused"], self._path)
        return answer["value"]

    def stat(self):
        """Kind, size and time; None when nothing is there that may be seen."""
        try:
            found = os.stat(self._path)
        except OSError:
            try:
                found = self._ask("head")
            except (PermissionError, RuntimeError):
                # Not opened to Dag code; or nobody to ask, as the file is only being read.
                return None
            return found and SimpleNamespace(kind=found["kind"], st_size=found["size"], st_mtime=found["modified"])
        kind = "folder" if os.path.isdir(self._path) else "file"
        return SimpleNamespace(kind=kind, st_size=found.st_size, st_mtime=found.st_mtime)

    def read(self):
        """The bytes; None when nothing is there."""
        try:
            with open(self._path, "rb") as file:
                return file.read()
        except FileNotFoundError:
            return None
        except PermissionError:
            found = self._ask("read")
            return None if found is None else base64.b64decode(found)

    def write(self, data):
        """Writes the file."""
        self._ask("write", data=base64.b64encode(data).decode("ascii"))

    def names(self):
        """What the folder holds; None when there is none."""
        try:
            return sorted(os.listdir(self._path))
        except FileNotFoundError:
            return None
        except PermissionError:
            return self._ask("list")

    def mkdir(self, parents, exist_ok):
        """Makes the folder."""
        if not exist_ok and self.stat() is not None:
            raise FileExistsError(17, "File exists", self._path)
        if not parents and LocalPlace(os.path.dirname(self._path.rstrip("/"))).stat() is None:
            raise FileNotFoundError(2, "No such file or directory", self._path)
        self._ask("mkdir")

    def delete(self):
        """Removes the file; was there one?"""
        return self._ask("delete")
