"""Buckets and containers of object stores, for the hooks of the clouds: the worker asks the store."""

import base64
from datetime import datetime

from updraft_native_hook import ask


class Bucket:
    """One bucket, with the credentials of a connection."""

    def __init__(self, conn_id, url, **overrides):
        self._conn_id = conn_id
        self._url = url
        self._overrides = {name: value for name, value in overrides.items() if value is not None}

    def _ask(self, what, **more):
        more = {name: value for name, value in more.items() if value is not None}
        return ask(
            "bucket",
            self._conn_id,
            url=self._url,
            overrides=self._overrides,
            operation={"do": what, **more},
        )

    def list(self, prefix=None, delimiter=None, start_after=None, max_items=None):
        """Objects whose keys begin with `prefix`, and the prefixes below it."""
        answer = self._ask(
            "list",
            prefix=prefix or "",
            delimiter=delimiter or "",
            start_after=start_after or None,
            max_items=max_items,
        )
        return [Stored(item) for item in answer["objects"]], answer["prefixes"]

    def head(self, key):
        """What is known of an object; None when there is none."""
        found = self._ask("head", key=key)
        return None if found is None else Stored(found)

    def read(self, key):
        """The bytes of an object."""
        return base64.b64decode(self._ask("read", key=key)["base64"])

    def write(self, key, data, content_type=None, metadata=None):
        """Writes an object, over one that is there already."""
        self._ask(
            "write",
            key=key,
            data=base64.b64encode(data).decode("ascii"),
            content_type=content_type,
            metadata=metadata,
        )

    def copy(self, key, to_url, to):
        """Copies an object, into another bucket too."""
        ask("bucket", self._conn_id, url=self._url, overrides=self._overrides, copy={"key": key, "into": to_url, "to": to})

    def delete(self, keys):
        """Deletes objects; the keys of those that were there."""
        return self._ask("delete", keys=list(keys))["deleted"]

    def tags(self):
        """The tags of an S3 bucket, or why S3 gave none: `tags`, or `refused` with `code` and `message`."""
        return ask("bucket", self._conn_id, url=self._url, overrides=self._overrides, tags=True)


class Stored:
    """An object as a store describes it."""

    def __init__(self, data):
        self.key = data["key"]
        self.size = data["size"]
        self.last_modified = datetime.fromisoformat(data["last_modified"].replace("Z", "+00:00"))
        self.e_tag = data["e_tag"]
        self.version = data["version"]
        self.content_type = data["content_type"]
        self.metadata = data["metadata"]
