"""`WasbHook`: blobs of Azure Blob Storage."""

from typing import Any

from airflow.sdk.bases.hook import BaseHook
from updraft_bucket import Bucket
from updraft_native_hook import not_here


class ResourceNotFoundError(Exception):
    """There is no such blob."""

    # As it is seen in logs on a Python worker.
    __module__ = "azure.core.exceptions"


class Download:
    """A blob's content, with what is used most of Azure's `StorageStreamDownloader`."""

    def __init__(self, name, data):
        self.name = name
        self.size = len(data)
        self._data = data

    def readall(self):
        """The bytes."""
        return self._data

    content_as_bytes = readall

    def content_as_text(self, max_concurrency=1, encoding="UTF-8"):
        """The text."""
        return self._data.decode(encoding)


class WasbHook(BaseHook):
    """Lists, reads, writes, copies and deletes blobs in Azure Blob Storage."""

    conn_name_attr = "wasb_conn_id"
    default_conn_name = "wasb_default"
    conn_type = "wasb"
    hook_name = "Azure Blob Storage"

    def __init__(self, wasb_conn_id="wasb_default", public_read=False):
        super().__init__()
        self.conn_id = wasb_conn_id
        self.public_read = public_read

    def _container(self, name):
        return Bucket(self.conn_id, f"wasb://{name}", anon=True if self.public_read else None)

    def _plain(self, kwargs):
        if kwargs:
            raise ValueError(f"{', '.join(sorted(kwargs))} is for the Azure library, which is not on this worker")

    def check_for_blob(self, container_name: str, blob_name: str, **kwargs: Any) -> bool:
        """Say whether a blob is there.

        :param container_name: The container.
        :param blob_name: The blob's name.
        """
        self._plain(kwargs)
        return self._container(container_name).head(blob_name) is not None

    def check_for_prefix(self, container_name: str, prefix: str, **kwargs: Any) -> bool:
        """Say whether there are blobs whose names begin with a prefix.

        :param container_name: The container.
        :param prefix: The prefix.
        """
        return bool(self.get_blobs_list(container_name, prefix, **kwargs))

    def get_blobs_list(
        self,
        container_name: str,
        prefix: str | None = None,
        include: list[str] | None = None,
        delimiter: str = "/",
        **kwargs: Any,
    ) -> list:
        """List the blobs in a container, one level deep.

        :param container_name: The container.
        :param prefix: Only names that begin with this.
        :param include: What else to list, such as snapshots; this worker lists blobs only.
        :param delimiter: What ends a level; names below it are given up to it.
        """
        self._plain({**kwargs, **({"include": include} if include else {})})
        objects, below = self._container(container_name).list(prefix, delimiter)
        return sorted([found.key for found in objects] + below)

    def get_blobs_list_recursive(
        self,
        container_name: str,
        prefix: str | None = None,
        include: list[str] | None = None,
        endswith: str = "",
        **kwargs: Any,
    ) -> list:
        """List the blobs in a container, on all levels.

        :param container_name: The container.
        :param prefix: Only names that begin with this.
        :param include: What else to list, such as snapshots; this worker lists blobs only.
        :param endswith: Only names that end with this.
        """
        self._plain({**kwargs, **({"include": include} if include else {})})
        objects = self._container(container_name).list(prefix)[0]
        return [found.key for found in objects if found.key.endswith(endswith)]

    def load_string(
        self,
        string_data: str,
        container_name: str,
        blob_name: str,
        create_container: bool = False,
        **kwargs: Any,
    ) -> None:
        """Write a text as a blob.

        :param string_data: The text.
        :param container_name: The container.
        :param blob_name: The blob's name.
        :param create_container: Makes the container first, which this worker does not do.
        """
        self.upload(container_name, blob_name, string_data, create_container=create_container, **kwargs)

    def upload(
        self,
        container_name: str,
        blob_name: str,
        data: Any,
        blob_type: str = "BlockBlob",
        length: int | None = None,
        create_container: bool = False,
        **kwargs: Any,
    ) -> dict[str, Any]:
        """Write a blob.

        :param container_name: The container.
        :param blob_name: The blob's name.
        :param data: The content: text or bytes.
        :param blob_type: BlockBlob, the one kind that this worker writes.
        :param length: How many bytes of the content.
        :param create_container: Makes the container first, which this worker does not do.
        """
        from airflow.sdk.exceptions import AirflowException

        overwrite = kwargs.pop("overwrite", False)
        self._plain({**kwargs, **({"create_container": True} if create_container else {})})
        if blob_type != "BlockBlob":
            raise ValueError(f"blob_type must be BlockBlob on this worker, not {blob_type}")
        data = data.encode() if isinstance(data, str) else bytes(data)
        container = self._container(container_name)
        if not overwrite and container.head(blob_name) is not None:
            raise AirflowException(f"The specified blob already exists: {blob_name}")
        container.write(blob_name, data if length is None else data[:length])
        return {}

    def read_file(self, container_name: str, blob_name: str, **kwargs: Any):
        """Read a blob's text.

        :param container_name: The container.
        :param blob_name: The blob's name.
        """
        return self.download(container_name, blob_name, **kwargs).content_as_text()

    def download(
        self, container_name, blob_name, offset: int | None = None, length: int | None = None, **kwargs: Any
    ):
        """Give a blob's content.

        :param container_name: The container.
        :param blob_name: The blob's name.
        :param offset: Where to begin, in bytes.
        :param length: How many bytes.
        """
        self._plain(kwargs)
        container = self._container(container_name)
        if container.head(blob_name) is None:
            raise ResourceNotFoundError(f"The specified blob does not exist: {blob_name}")
        start = offset or 0
        data = container.read(blob_name)
        return Download(blob_name, data[start:] if length is None else data[start : start + length])

    def delete_blobs(self, container_name: str, *blobs, **kwargs: Any) -> None:
        """Delete blobs by their names.

        :param container_name: The container.
        """
        self._plain(kwargs)
        self._container(container_name).delete(blobs)
        self.log.info("Deleted from %s: %s", container_name, ", ".join(map(str, blobs)))

    def copy_blobs(
        self,
        source_container_name: str,
        source_blob_name: str,
        destination_container_name: str,
        destination_blob_name: str,
    ) -> None:
        """Copy a blob.

        :param source_container_name: The container to copy from.
        :param source_blob_name: The name of the blob to copy.
        :param destination_container_name: The container to copy to.
        :param destination_blob_name: The name of the copy.
        """
        into = f"wasb://{destination_container_name}"
        self._container(source_container_name).copy(source_blob_name, into, destination_blob_name)

    def delete_file(
        self,
        container_name: str,
        blob_name: str,
        is_prefix: bool = False,
        ignore_if_missing: bool = False,
        delimiter: str = "",
        **kwargs: Any,
    ) -> None:
        """Delete a blob, or all blobs whose names begin with a prefix.

        :param container_name: The container.
        :param blob_name: The blob's name, or the prefix.
        :param is_prefix: Deletes all blobs whose names begin with it.
        :param ignore_if_missing: Does nothing when there is none, which is an error otherwise.
        :param delimiter: Ends the search for names at this sign.
        """
        from airflow.sdk.exceptions import AirflowException

        found = [blob_name]
        if is_prefix:
            found = self.get_blobs_list(container_name, blob_name, delimiter=delimiter, **kwargs)
        elif not self.check_for_blob(container_name, blob_name):
            found.clear()
        if found:
            self.delete_blobs(container_name, *found)
        elif not ignore_if_missing:
            raise AirflowException(f"the container {container_name} has no blob {blob_name!r} to delete")

    get_conn = not_here("hands out a client of the Azure library")
    blob_service_client = property(get_conn)
    load_file = get_file = not_here("works on local files, which Dag code can't here")
    create_container = delete_container = not_here("makes or removes whole containers")
