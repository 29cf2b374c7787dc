"""`GCSHook`: objects of Google Cloud Storage."""

import re
from datetime import datetime, timedelta, timezone
from typing import List

from airflow.sdk.bases.hook import BaseHook
from updraft_bucket import Bucket
from updraft_native_hook import not_here

DEFAULT_TIMEOUT = 60


class NotFound(Exception):
    """There is no such object."""

    # As it is seen in logs on a Python worker.
    __module__ = "google.api_core.exceptions"

    def __init__(self, bucket_name, object_name):
        super().__init__(f"404 No such object: {bucket_name}/{object_name}")


class GCSHook(BaseHook):
    """Lists, reads, writes, copies and deletes objects in Google Cloud Storage."""

    conn_name_attr = "gcp_conn_id"
    default_conn_name = "google_cloud_default"
    conn_type = "google_cloud_platform"
    hook_name = "Google Cloud"

    def __init__(self, gcp_conn_id="google_cloud_default", impersonation_chain=None, *, quota_project_id=None, **kwargs):
        super().__init__(**kwargs)
        self.gcp_conn_id = gcp_conn_id
        self.impersonation_chain = impersonation_chain
        self.quota_project_id = quota_project_id

    def _updraft_obstacle(self):
        """Why the hook, as it was made, can't run here; None when it can."""
        return "has an impersonation_chain" if self.impersonation_chain else None

    def _bucket(self, name, user_project=None):
        return Bucket(self.gcp_conn_id, f"gs://{name}", quota_project_id=user_project or self.quota_project_id)

    def _head(self, bucket_name, object_name):
        found = self._bucket(bucket_name).head(object_name)
        if found is None:
            raise ValueError(f"there is no gs://{bucket_name}/{object_name}")
        return found

    def list(
        self,
        bucket_name: str,
        versions: bool | None = None,
        max_results: int | None = None,
        prefix: str | List[str] | None = None,
        delimiter: str | None = None,
        match_glob: str | None = None,
        user_project: str | None = None,
    ):
        """List the names of objects in a bucket.

        :param bucket_name: The bucket.
        :param versions: Lists older versions as well.
        :param max_results: How many names one request asks for.
        :param prefix: Only names that begin with this, or with one of these.
        :param delimiter: Gives the prefixes one level below instead, where there are some.
        :param match_glob: Only names that fit this pattern; two asterisks stand for several levels.
        :param user_project: The project that pays for the requests.
        """
        if versions:
            raise ValueError("versions is not supported on this worker")
        prefixes = prefix if isinstance(prefix, (tuple, list)) else [prefix]
        names = []
        for one in prefixes:
            objects, below = self._bucket(bucket_name, user_project).list(one, delimiter if not match_glob else None)
            found = below or [item.key for item in objects]
            if match_glob:
                pattern = _glob(match_glob)
                found = [name for name in found if pattern.fullmatch(name)]
            names.extend(found)
        return names

    def exists(self, bucket_name: str, object_name: str, retry=None, user_project: str | None = None) -> bool:
        """Say whether an object is there.

        :param bucket_name: The bucket.
        :param object_name: The object's name.
        :param retry: When a failed request is sent again; the worker has its own rule.
        :param user_project: The project that pays for the requests.
        """
        return self._bucket(bucket_name, user_project).head(object_name) is not None

    def download(
        self,
        bucket_name: str,
        object_name: str,
        filename: str | None = None,
        chunk_size: int | None = None,
        timeout: int | None = DEFAULT_TIMEOUT,
        num_max_attempts: int | None = 1,
        user_project: str | None = None,
    ) -> str | bytes:
        """Read an object.

        :param bucket_name: The bucket.
        :param object_name: The object's name.
        :param filename: A local file to write to, which this worker does not do.
        :param chunk_size: How many bytes one request asks for.
        :param timeout: How long a request may take, in seconds.
        :param num_max_attempts: How often to try.
        :param user_project: The project that pays for the requests.
        """
        if filename:
            raise ValueError("filename is not supported on this worker, which writes no local files: leave it out")
        bucket = self._bucket(bucket_name, user_project)
        if bucket.head(object_name) is None:
            raise NotFound(bucket_name, object_name)
        return bucket.read(object_name)

    def download_as_byte_array(
        self,
        bucket_name: str,
        object_name: str,
        chunk_size: int | None = None,
        timeout: int | None = DEFAULT_TIMEOUT,
        num_max_attempts: int | None = 1,
    ) -> bytes:
        """Read an object's bytes.

        :param bucket_name: The bucket.
        :param object_name: The object's name.
        :param chunk_size: How many bytes one request asks for.
        :param timeout: How long a request may take, in seconds.
        :param num_max_attempts: How often to try.
        """
        return self.download(bucket_name, object_name)

    def upload(
        self,
        bucket_name: str,
        object_name: str,
        filename: str | None = None,
        data: str | bytes | None = None,
        mime_type: str | None = None,
        gzip: bool = False,
        encoding: str = "utf-8",
        chunk_size: int | None = None,
        timeout: int | None = DEFAULT_TIMEOUT,
        num_max_attempts: int = 1,
        metadata: dict | None = None,
        cache_control: str | None = None,
        user_project: str | None = None,
    ) -> None:
        """Write an object.

        :param bucket_name: The bucket.
        :param object_name: The object's name.
        :param filename: A local file to read, which this worker does not do.
        :param data: The content.
        :param mime_type: What kind of content it is.
        :param gzip: Compresses the content.
        :param encoding: How text becomes bytes.
        :param chunk_size: How many bytes one request sends.
        :param timeout: How long a request may take, in seconds.
        :param num_max_attempts: How often to try.
        :param metadata: Names and values kept with the object.
        :param cache_control: How long others may keep the content.
        :param user_project: The project that pays for the requests.
        """
        if filename and data is not None:
            raise ValueError("upload was given a filename and data: leave the filename out")
        if filename or cache_control:
            raise ValueError(f"{'filename' if filename else 'cache_control'} is not supported on this worker")
        if data is None:
            raise ValueError("upload was given no data")
        if isinstance(data, str):
            data = data.encode(encoding)
        if gzip:
            import gzip as packing

            data = packing.compress(data)
        content_type = mime_type or "text/plain"
        self._bucket(bucket_name, user_project).write(object_name, data, content_type, metadata)
        self.log.info("Wrote gs://%s/%s", bucket_name, object_name)

    def copy(
        self,
        source_bucket: str,
        source_object: str,
        destination_bucket: str | None = None,
        destination_object: str | None = None,
    ) -> None:
        """Copy an object, into another bucket or under another name.

        :param source_bucket: The bucket to copy from.
        :param source_object: The name of the object to copy.
        :param destination_bucket: The bucket to copy to, the same when nothing is said.
        :param destination_object: The name of the copy, the same when nothing is said.
        """
        for name, value in (("source_bucket", source_bucket), ("source_object", source_object)):
            if not value:
                raise ValueError(f"{name} is empty: name what is to be copied")
        into, name = destination_bucket or source_bucket, destination_object or source_object
        if into == source_bucket and name == source_object:
            raise ValueError(f"gs://{into}/{name} would be copied onto itself: name another bucket or another object")
        self._bucket(source_bucket).copy(source_object, f"gs://{into}", name)
        self.log.info("Copied gs://%s/%s to gs://%s/%s", source_bucket, source_object, into, name)

    def delete(self, bucket_name: str, object_name: str, ignore_error: bool = False) -> None:
        """Delete an object.

        :param bucket_name: The bucket.
        :param object_name: The object's name.
        :param ignore_error: Does nothing when there is no such object, which is an error otherwise.
        """
        bucket = self._bucket(bucket_name)
        if bucket.head(object_name) is not None:
            bucket.delete([object_name])
            self.log.info("Deleted gs://%s/%s", bucket_name, object_name)
            return
        self.log.warning("There is no gs://%s/%s to delete", bucket_name, object_name)
        if not ignore_error:
            raise NotFound(bucket_name, object_name)

    def get_size(self, bucket_name: str, object_name: str) -> int:
        """Give an object's size in bytes.

        :param bucket_name: The bucket.
        :param object_name: The object's name.
        """
        return self._head(bucket_name, object_name).size

    def get_metadata(self, bucket_name: str, object_name: str) -> dict | None:
        """Give the names and values that are kept with an object.

        :param bucket_name: The bucket.
        :param object_name: The object's name.
        """
        return self._head(bucket_name, object_name).metadata or None

    def get_blob_update_time(self, bucket_name: str, object_name: str):
        """Say when an object was changed last.

        :param bucket_name: The bucket.
        :param object_name: The object's name.
        """
        return self._head(bucket_name, object_name).last_modified

    def is_updated_after(self, bucket_name: str, object_name: str, ts: datetime) -> bool:
        """Say whether an object was changed after a moment.

        :param bucket_name: The bucket.
        :param object_name: The object's name.
        :param ts: The moment.
        """
        return self.get_blob_update_time(bucket_name, object_name) > _in_utc(ts)

    def is_updated_between(
        self, bucket_name: str, object_name: str, min_ts: datetime, max_ts: datetime
    ) -> bool:
        """Say whether an object was changed between two moments.

        :param bucket_name: The bucket.
        :param object_name: The object's name.
        :param min_ts: The first moment.
        :param max_ts: The last moment, not included.
        """
        return _in_utc(min_ts) <= self.get_blob_update_time(bucket_name, object_name) < _in_utc(max_ts)

    def is_updated_before(self, bucket_name: str, object_name: str, ts: datetime) -> bool:
        """Say whether an object was changed before a moment.

        :param bucket_name: The bucket.
        :param object_name: The object's name.
        :param ts: The moment.
        """
        return self.get_blob_update_time(bucket_name, object_name) < _in_utc(ts)

    def is_older_than(self, bucket_name: str, object_name: str, seconds: int) -> bool:
        """Say whether an object is older than some seconds.

        :param bucket_name: The bucket.
        :param object_name: The object's name.
        :param seconds: The seconds.
        """
        then = datetime.now(timezone.utc) - timedelta(seconds=seconds)
        return self.is_updated_before(bucket_name, object_name, then)

    get_conn = get_bucket = not_here("hands out a client of google-cloud-storage")
    rewrite = compose = sync = not_here("works on objects within Google's own servers")
    get_crc32c = get_md5hash = not_here("asks for a checksum")
    create_bucket = delete_bucket = not_here("makes or removes whole buckets")
    insert_bucket_acl = insert_object_acl = add_bucket_iam_binding = not_here("changes who may do what")
    provide_file = provide_file_and_upload = sync_to_local_dir = not_here("works on local files, which Dag code can't here")
    list_by_timespan = not_here("lists by time of creation")


def _in_utc(moment):
    return moment if moment.tzinfo else moment.replace(tzinfo=timezone.utc)


def _glob(pattern):
    """Google's patterns: `*` within a level, `**` over levels, `?`, `[...]`, `{a,b}`."""
    out = ""
    depth = 0
    index = 0
    while index < len(pattern):
        sign = pattern[index]
        if pattern.startswith("**", index):
            out += ".*"
            index += 1
        elif sign == "*":
            out += "[^/]*"
        elif sign == "?":
            out += "[^/]"
        elif sign == "[" and "]" in pattern[index:]:
            end = pattern.index("]", index)
            inner = pattern[index + 1 : end].replace("\\", "\\\\")
            out += "[" + ("^" + inner[1:] if inner.startswith("!") else inner) + "]"
            index = end
        elif sign == "{":
            out += "(?:"
            depth += 1
        elif sign == "}" and depth:
            out += ")"
            depth -= 1
        elif sign == "," and depth:
            out += "|"
        else:
            out += re.escape(sign)
        index += 1
    return re.compile(out, re.DOTALL)
