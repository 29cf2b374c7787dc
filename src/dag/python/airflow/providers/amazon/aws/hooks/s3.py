"""`S3Hook`: objects of Amazon S3 and of what speaks its language."""

import fnmatch
import re
from collections.abc import Callable
from datetime import datetime
from typing import Any
from urllib.parse import urlsplit

from airflow.sdk.bases.hook import BaseHook
from updraft_bucket import Bucket
from updraft_native_hook import not_here

NO_ACL = "no-acl"


class S3HookUriParseFailure(Exception):
    """A URL that names no bucket and key."""


class ClientError(Exception):
    """What S3 refused."""

    # As it is seen in logs on a Python worker.
    __module__ = "botocore.exceptions"

    def __init__(self, code, reason, operation):
        super().__init__(f"An error occurred ({code}) when calling the {operation} operation: {reason}")
        self.response = {"Error": {"Code": code, "Message": reason}}
        self.operation_name = operation


class Object:
    """An object, with what is used most of boto3's `S3.Object`."""

    def __init__(self, bucket, bucket_name, stored):
        self._bucket = bucket
        self.bucket_name = bucket_name
        self.key = stored.key
        self.content_length = stored.size
        self.last_modified = stored.last_modified
        self.e_tag = stored.e_tag
        self.content_type = stored.content_type
        self.metadata = stored.metadata
        self.version_id = stored.version

    def get(self):
        """The object with its content."""
        import io

        return {
            "Body": io.BytesIO(self._bucket.read(self.key)),
            "ContentLength": self.content_length,
            "ContentType": self.content_type,
            "ETag": self.e_tag,
            "LastModified": self.last_modified,
            "Metadata": self.metadata,
        }

    def __repr__(self):
        return f"s3.Object(bucket_name={self.bucket_name!r}, key={self.key!r})"


class S3Hook(BaseHook):
    """Lists, reads, writes, copies and deletes objects in S3."""

    conn_name_attr = "aws_conn_id"
    default_conn_name = "aws_default"
    conn_type = "s3"
    hook_name = "Amazon S3"

    def __init__(self, aws_conn_id="aws_default", transfer_config_args=None, extra_args=None, *args, **kwargs):
        super().__init__()
        unknown = set(kwargs) - {"region_name", "verify", "client_type", "resource_type", "config", "requester_pays"}
        if args or unknown:
            raise TypeError(f"S3Hook takes no {', '.join(sorted(unknown)) or 'more arguments'} on this worker")
        self.aws_conn_id = aws_conn_id
        self._region_name = kwargs.get("region_name")
        self._verify = kwargs.get("verify")
        self._more = bool(transfer_config_args or extra_args or kwargs.get("config") or kwargs.get("requester_pays"))

    def _updraft_obstacle(self):
        """Why the hook, as it was made, can't run here; None when it can."""
        return "has settings for boto3's client" if self._more else None

    @property
    def service_config(self):
        """The connection's settings for S3."""
        if self.aws_conn_id is None:
            return {}
        from airflow.sdk.exceptions import AirflowNotFoundException

        try:
            connection = self.get_connection(self.aws_conn_id)
        except AirflowNotFoundException:
            # Taken for an empty connection.
            return {}
        return connection.extra_dejson.get("service_config", {}).get("s3", {})

    def _bucket(self, name, encrypt=None):
        return Bucket(
            self.aws_conn_id, f"s3://{name}", region_name=self._region_name, verify=self._verify, encrypt=encrypt
        )

    def _place(self, key, bucket_name):
        """Bucket and key, where the key may be a URL and the bucket may stand in the connection."""
        if bucket_name is None:
            try:
                bucket_name, key = self.parse_s3_url(key)
            except S3HookUriParseFailure:
                pass
        return self._name(bucket_name), key

    def _name(self, bucket_name):
        name = bucket_name or self.service_config.get("bucket_name")
        if not name:
            raise ValueError(
                "no bucket is named: give bucket_name, a full s3:// URL as key, or the bucket_name in the connection's "
                "service_config"
            )
        return name

    @staticmethod
    def parse_s3_url(s3url: str) -> tuple[str, str]:
        """Take an S3 URL apart into bucket and key.

        :param s3url: The URL, of the form s3://bucket/key or https://bucket.s3.region.amazonaws.com/key.
        """
        url = urlsplit(s3url, allow_fragments=False)
        if url.netloc and url.scheme in ("s3", "s3a", "s3n"):
            return url.netloc, url.path.lstrip("/")
        if url.scheme == "https":
            # A key may hold a question mark.
            below = s3url.partition("//")[2].partition("/")[2]
            labels = url.netloc.split(".")
            if labels[0] == "s3":
                bucket, _, key = below.partition("/")
                return bucket, key
            if labels[1:2] == ["s3"]:
                return labels[0], below
        raise S3HookUriParseFailure(
            "Please provide a bucket name using a valid format of the form: S3://bucket-name/key-name or "
            f'https://bucket-name.s3.region-code.amazonaws.com/key-name but provided: "{s3url}"'
        )

    @staticmethod
    def get_s3_bucket_key(
        bucket: str | None, key: str, bucket_param_name: str, key_param_name: str
    ) -> tuple[str, str]:
        """Say which bucket and key are meant.

        :param bucket: The bucket, or nothing when the key is a full URL.
        :param key: The key, or a full s3:// URL.
        :param bucket_param_name: What the caller's argument for the bucket is called.
        :param key_param_name: What the caller's argument for the key is called.
        """
        if bucket is not None and any(urlsplit(key)[:2]):
            raise TypeError(f"{key_param_name} is a full URL: leave {bucket_param_name} out, or give the key alone")
        return S3Hook.parse_s3_url(key) if bucket is None else (bucket, key)

    def check_for_bucket(self, bucket_name: str | None = None) -> bool:
        """Say whether a bucket is there and may be listed.

        :param bucket_name: The bucket.
        """
        try:
            self._bucket(self._name(bucket_name)).list(max_items=1)
        except RuntimeError as error:
            self.log.info('Bucket "%s" can not be listed: %s', bucket_name, error)
            return False
        return True

    def check_for_prefix(self, prefix: str, delimiter: str, bucket_name: str | None = None) -> bool:
        """Say whether a prefix is in a bucket.

        :param prefix: The prefix, such as a folder's name.
        :param delimiter: What ends a level, usually a slash.
        :param bucket_name: The bucket.
        """
        stem = prefix.removesuffix(delimiter)
        whole = stem + delimiter
        # A level may begin at any sign that belongs to no word.
        last_word = re.search(r"\w+\Z", stem)
        above = stem[: last_word.start()] if last_word else whole
        return whole in self.list_prefixes(bucket_name, above, delimiter)

    def list_prefixes(
        self,
        bucket_name: str | None = None,
        prefix: str | None = None,
        delimiter: str | None = None,
        page_size: int | None = None,
        max_items: int | None = None,
    ) -> list:
        """List the prefixes in a bucket, one level below a prefix.

        :param bucket_name: The bucket.
        :param prefix: Only what begins with this.
        :param delimiter: What ends a level, usually a slash; without one there are no prefixes.
        :param page_size: How many keys one request asks for.
        :param max_items: How many keys and prefixes at most.
        """
        return self._bucket(self._name(bucket_name)).list(prefix, delimiter, max_items=max_items)[1]

    def list_keys(
        self,
        bucket_name: str | None = None,
        prefix: str | None = None,
        delimiter: str | None = None,
        page_size: int | None = None,
        max_items: int | None = None,
        start_after_key: str | None = None,
        from_datetime: datetime | None = None,
        to_datetime: datetime | None = None,
        object_filter: Callable[..., list] | None = None,
        apply_wildcard: bool = False,
    ) -> list:
        """List the keys in a bucket.

        :param bucket_name: The bucket.
        :param prefix: Only keys that begin with this.
        :param delimiter: Leaves out keys that have this after the prefix, such as those in folders below.
        :param page_size: How many keys one request asks for.
        :param max_items: How many keys at most.
        :param start_after_key: Only keys that come after this one.
        :param from_datetime: Only objects changed after this moment.
        :param to_datetime: Only objects changed up to this moment.
        :param object_filter: A function that chooses among the objects.
        :param apply_wildcard: Reads the asterisks in the prefix as wildcards.
        """
        wanted = prefix or ""
        wildcard = apply_wildcard and "*" in wanted
        start = wanted.split("*", 1)[0] if wildcard else wanted
        bucket = self._bucket(self._name(bucket_name))
        objects = bucket.list(start, delimiter, start_after_key, max_items)[0]
        if wildcard:
            objects = [found for found in objects if fnmatch.fnmatch(found.key, wanted)]
        if object_filter is not None:
            return object_filter([_listed(found) for found in objects], from_datetime, to_datetime)
        return [
            found.key
            for found in objects
            if (from_datetime is None or found.last_modified > from_datetime)
            and (to_datetime is None or found.last_modified <= to_datetime)
        ]

    def get_file_metadata(
        self,
        prefix: str,
        bucket_name: str | None = None,
        page_size: int | None = None,
        max_items: int | None = None,
    ) -> list:
        """List the objects below a prefix with their size and time.

        :param prefix: Only keys that begin with this.
        :param bucket_name: The bucket.
        :param page_size: How many keys one request asks for.
        :param max_items: How many keys at most.
        """
        objects = self._bucket(self._name(bucket_name)).list(prefix, max_items=max_items)[0]
        return [_listed(found) for found in objects]

    def iter_file_metadata(
        self,
        prefix: str,
        bucket_name: str | None = None,
        page_size: int | None = None,
        max_items: int | None = None,
    ):
        """Give the objects below a prefix one by one, with their size and time.

        :param prefix: Only keys that begin with this.
        :param bucket_name: The bucket.
        :param page_size: How many keys one request asks for.
        :param max_items: How many keys at most.
        """
        yield from self.get_file_metadata(prefix, bucket_name, page_size, max_items)

    def head_object(self, key: str, bucket_name: str | None = None) -> dict | None:
        """Give the metadata of an object, or nothing when there is no such object.

        :param key: The key, or a full s3:// URL.
        :param bucket_name: The bucket, unless the key is a URL.
        """
        bucket_name, key = self._place(key, bucket_name)
        found = self._bucket(bucket_name).head(key)
        if found is None:
            return None
        return {
            "LastModified": found.last_modified,
            "ContentLength": found.size,
            "ETag": found.e_tag,
            "ContentType": found.content_type,
            "Metadata": found.metadata,
        }

    def check_for_key(self, key: str, bucket_name: str | None = None) -> bool:
        """Say whether an object is there.

        :param key: The key, or a full s3:// URL.
        :param bucket_name: The bucket, unless the key is a URL.
        """
        return self.head_object(key, bucket_name) is not None

    def get_key(self, key: str, bucket_name: str | None = None):
        """Give an object with its metadata.

        :param key: The key, or a full s3:// URL.
        :param bucket_name: The bucket, unless the key is a URL.
        """
        bucket_name, key = self._place(key, bucket_name)
        bucket = self._bucket(bucket_name)
        found = bucket.head(key)
        if found is None:
            raise ClientError("404", "Not Found", "HeadObject")
        return Object(bucket, bucket_name, found)

    def read_key(self, key: str, bucket_name: str | None = None) -> str:
        """Read an object's text.

        :param key: The key, or a full s3:// URL.
        :param bucket_name: The bucket, unless the key is a URL.
        """
        return self.get_key(key, bucket_name).get()["Body"].read().decode("utf-8")

    def check_for_wildcard_key(
        self, wildcard_key: str, bucket_name: str | None = None, delimiter: str = ""
    ) -> bool:
        """Say whether an object is there whose key fits a pattern.

        :param wildcard_key: The pattern, with asterisks and question marks, or a full s3:// URL with them.
        :param bucket_name: The bucket, unless the pattern is a URL.
        :param delimiter: Leaves out keys that have this after the pattern's fixed beginning.
        """
        return self.get_wildcard_key(wildcard_key, bucket_name, delimiter) is not None

    def get_wildcard_key(self, wildcard_key: str, bucket_name: str | None = None, delimiter: str = ""):
        """Give the first object whose key fits a pattern.

        :param wildcard_key: The pattern, with asterisks and question marks, or a full s3:// URL with them.
        :param bucket_name: The bucket, unless the pattern is a URL.
        :param delimiter: Leaves out keys that have this after the pattern's fixed beginning.
        """
        bucket_name, pattern = self._place(wildcard_key, bucket_name)
        start = re.split(r"[\[*?]", pattern, maxsplit=1)[0]
        for key in self.list_keys(bucket_name, start, delimiter):
            if fnmatch.fnmatch(key, pattern):
                return self.get_key(key, bucket_name)
        return None

    def load_string(
        self,
        string_data: str,
        key: str,
        bucket_name: str | None = None,
        replace: bool = False,
        encrypt: bool = False,
        encoding: str | None = None,
        acl_policy: str | None = None,
        compression: str | None = None,
    ) -> None:
        """Write a text as an object.

        :param string_data: The text.
        :param key: The key, or a full s3:// URL.
        :param bucket_name: The bucket, unless the key is a URL.
        :param replace: Overwrites an object that is there already, which is an error otherwise.
        :param encrypt: Has the store encrypt the object.
        :param encoding: How the text becomes bytes, utf-8 when nothing is said.
        :param acl_policy: Who may do what with the object.
        :param compression: The word gzip, to compress the text.
        """
        data = string_data.encode(encoding or "utf-8")
        if compression not in (None, "gzip"):
            raise NotImplementedError(f"compression is {compression}, and can be gzip or left out")
        if compression == "gzip":
            import gzip

            data = gzip.compress(data)
        self.load_bytes(data, key, bucket_name, replace, encrypt, acl_policy)

    def load_bytes(
        self,
        bytes_data: bytes,
        key: str,
        bucket_name: str | None = None,
        replace: bool = False,
        encrypt: bool = False,
        acl_policy: str | None = None,
    ) -> None:
        """Write bytes as an object.

        :param bytes_data: The bytes.
        :param key: The key, or a full s3:// URL.
        :param bucket_name: The bucket, unless the key is a URL.
        :param replace: Overwrites an object that is there already, which is an error otherwise.
        :param encrypt: Has the store encrypt the object.
        :param acl_policy: Who may do what with the object.
        """
        if acl_policy:
            raise ValueError("acl_policy is not supported on this worker: set the bucket's policy instead")
        bucket_name, key = self._place(key, bucket_name)
        if not replace and self._bucket(bucket_name).head(key) is not None:
            raise ValueError(f"The key {key} already exists.")
        self._bucket(bucket_name, encrypt=encrypt or None).write(key, bytes_data)

    def copy_object(
        self,
        source_bucket_key: str,
        dest_bucket_key: str,
        source_bucket_name: str | None = None,
        dest_bucket_name: str | None = None,
        source_version_id: str | None = None,
        acl_policy: str | None = None,
        meta_data_directive: str | None = None,
        kms_key_id: str | None = None,
        kms_encryption_type: str | None = None,
        **kwargs: Any,
    ) -> None:
        """Copy an object.

        :param source_bucket_key: The key to copy from, or a full s3:// URL.
        :param dest_bucket_key: The key to copy to, or a full s3:// URL.
        :param source_bucket_name: The bucket to copy from, unless its key is a URL.
        :param dest_bucket_name: The bucket to copy to, unless its key is a URL.
        :param source_version_id: The version to copy.
        :param acl_policy: Who may do what with the copy.
        :param meta_data_directive: Whether the copy keeps the metadata.
        :param kms_key_id: The key that the copy is encrypted with.
        :param kms_encryption_type: How the copy is encrypted.
        """
        given = {
            "source_version_id": source_version_id,
            "acl_policy": acl_policy if acl_policy not in ("private", NO_ACL) else None,
            "meta_data_directive": meta_data_directive if meta_data_directive != "COPY" else None,
            "kms_key_id": kms_key_id,
            "kms_encryption_type": kms_encryption_type,
            **kwargs,
        }
        refused = [name for name, value in given.items() if value]
        if refused:
            raise ValueError(f"copy_object takes no {', '.join(refused)} on this worker")
        to_bucket, to = self.get_s3_bucket_key(
            dest_bucket_name, dest_bucket_key, "dest_bucket_name", "dest_bucket_key"
        )
        from_bucket, key = self.get_s3_bucket_key(
            source_bucket_name, source_bucket_key, "source_bucket_name", "source_bucket_key"
        )
        self._bucket(from_bucket).copy(key, f"s3://{to_bucket}", to)

    def delete_objects(self, bucket: str, keys: str | list) -> None:
        """Delete objects.

        :param bucket: The bucket.
        :param keys: One key, or a list of keys.
        """
        keys = [keys] if isinstance(keys, str) else list(keys)
        self._bucket(bucket).delete(keys)
        self.log.info("Deleted: %s", keys)

    def get_bucket_tagging(self, bucket_name: str | None = None) -> list[dict[str, str]] | None:
        """Give the tags of a bucket.

        :param bucket_name: The bucket, unless the connection names it.
        """
        answer = self._bucket(self._name(bucket_name)).tags()
        refused = answer.get("refused")
        if refused:
            error = ClientError(refused["code"], refused["message"], "GetBucketTagging")
            self.log.error(error)
            raise error
        self.log.info("S3 Bucket Tag Info: %s", answer["tags"])
        return answer["tags"]

    get_conn = get_bucket = get_session = not_here("hands out an object of boto3")
    resource = transfer_config = property(get_conn)
    create_bucket = delete_bucket = not_here("makes or removes whole buckets")
    put_bucket_tagging = delete_bucket_tagging = not_here("changes a bucket's tags")
    load_file = load_file_obj = not_here("reads local files, which Dag code can't here")
    download_file = sync_to_local_dir = not_here("writes local files, which Dag code can't here")
    generate_presigned_url = not_here("signs addresses for others")
    select_key = not_here("asks S3 Select")


def _listed(found):
    return {"Key": found.key, "Size": found.size, "LastModified": found.last_modified, "ETag": found.e_tag}
