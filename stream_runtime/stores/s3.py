"""A bucket of S3, or of a store that speaks its protocol: `s3://bucket/folder`.

A file is stored only if its name is free: `If-None-Match: *`, which AWS, MinIO and others know.
Parts of a large file have no name until all are there.
"""

from __future__ import annotations

import re
from contextlib import contextmanager, suppress
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import parse_qsl, urlsplit

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError, ConnectionError, HTTPClientError, IncompleteReadError  # noqa: A004 - botocore's own
from pyarrow.fs import S3FileSystem

from stream_runtime.fault_points import reach

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    import pyarrow as pa

    from stream_runtime.fault_points import Point
    from stream_runtime.stores.faults import StoreFaults

PART_BYTES = 64 * 1024 * 1024
ATTEMPTS = 5
CONNECT_SECONDS = 10.0
ANSWER_SECONDS = 60.0
_OPTIONS = {
    "region": (".+", "a region"),
    "scheme": ("https?", "http or https"),
    "endpoint_override": ("[^/]+", "HOST:PORT"),
    "path_style": ("true|false", "true or false"),
}
_NEW = {"IfNoneMatch": "*"}
_TAKEN = "PreconditionFailed"
_CONFLICT = "ConditionalRequestConflict"  # another request for the name is under way, and may fail
_BUSY = {"SlowDown", "RequestTimeout", "ThrottlingException", "Throttling", "RequestLimitExceeded", "429"}
FIRST_SERVER_ERROR = 500
_AWAY_OF_PYARROW = (
    "NETWORK_CONNECTION",
    "SLOW_DOWN",
    "SERVICE_UNAVAILABLE",
    "INTERNAL_FAILURE",
    "THROTTLING",
    "HTTP status 5",
)
_MISSING = {"404", "NoSuchKey", "NotFound"}


class S3Location(NamedTuple):
    """Where files are, as `s3://bucket/folder?region=…&scheme=…&endpoint_override=…&path_style=…`."""

    # The bucket's name.
    bucket: str
    # The folder in it, which may be empty; no slash at its ends.
    folder: str
    # The region; None: what the environment says.
    region: str | None = None
    # The URL of the store; None: AWS.
    endpoint: str | None = None
    # Whether the bucket's name is in the path of URLs, and not in their host.
    path_style: bool = False

    @classmethod
    def parse(cls, location: str, faults: StoreFaults) -> S3Location:
        """CdcError for a location that cannot be used."""
        url = urlsplit(location)
        if "@" in url.netloc:
            raise faults.location_refused("s3://…", "it holds credentials, which logs and errors would show")
        options = dict(parse_qsl(url.query, keep_blank_values=True))
        problem = _problem_of(url.netloc, options)
        if problem:
            raise faults.location_refused(location, problem)
        host = options.get("endpoint_override")
        endpoint = f"{options.get('scheme', 'https')}://{host}" if host else None
        path_style = options.get("path_style", "true" if endpoint else "false") == "true"
        return cls(url.netloc, url.path.strip("/"), options.get("region"), endpoint, path_style)

    def client(self) -> Any:  # noqa: ANN401 - boto3 makes its classes at run time
        config = Config(
            connect_timeout=CONNECT_SECONDS,
            read_timeout=ANSWER_SECONDS,
            retries={"mode": "standard", "total_max_attempts": ATTEMPTS},
            s3={"addressing_style": "path" if self.path_style else "auto"},
        )
        return boto3.session.Session().client("s3", region_name=self.region, endpoint_url=self.endpoint, config=config)

    def files(self) -> S3FileSystem:
        """The same bucket for readers of Parquet, which read parts of a file."""
        options: dict[str, Any] = {} if self.region is None else {"region": self.region}
        if self.endpoint is not None:
            scheme, _, host = self.endpoint.partition("://")
            options |= {"scheme": scheme, "endpoint_override": host}
        return S3FileSystem(force_virtual_addressing=self.endpoint is not None and not self.path_style, **options)

    def catalog_properties(self) -> dict[str, str]:
        """Return the properties with which PyIceberg reaches the store."""
        found = {"s3.region": self.region, "s3.endpoint": self.endpoint}
        return {name: value for name, value in found.items() if value is not None}


def _problem_of(bucket: str, options: Mapping[str, str]) -> str:
    """Why a location cannot be used; empty if it can."""
    if not bucket:
        return "it has no bucket"
    for name, value in options.items():
        if name not in _OPTIONS:
            return f"it has the unknown option {name}"
        pattern, what = _OPTIONS[name]
        if not re.fullmatch(pattern, value):
            return f"its option {name} is not {what}"
    if "scheme" in options and "endpoint_override" not in options:
        return "its option scheme has no effect without endpoint_override"
    return ""


class S3Store:
    """stream_runtime.stores.store.Store. Credentials come from boto3's usual chain."""

    def __init__(self, location: str, faults: StoreFaults, in_store: Point) -> None:
        """in_store: the fault point before a file gets its name."""
        self._faults = faults
        self._in_store = in_store
        self._location = S3Location.parse(location, faults)
        self._bucket = self._location.bucket

    def put_new(self, path: str, source: Path) -> bool:
        with self._errors("write", path):
            if source.stat().st_size <= PART_BYTES:
                return self._put(path, source.read_bytes())
            return self._put_parts(path, source)

    def put_new_bytes(self, path: str, data: bytes) -> bool:
        with self._errors("write", path):
            return self._put(path, data)

    def put(self, path: str, data: bytes) -> None:
        with self._errors("write", path):
            self._client.put_object(Bucket=self._bucket, Key=self._key(path), Body=data)

    def read(self, path: str) -> bytes | None:
        with self._errors("read", path):
            answer = self._ask(self._client.get_object, path)
            data: bytes | None = None if answer is None else answer["Body"].read()
            return data

    def size(self, path: str) -> int | None:
        with self._errors("read", path):
            answer = self._ask(self._client.head_object, path)
            return None if answer is None else int(answer["ContentLength"])

    @contextmanager
    def open(self, path: str) -> Iterator[pa.NativeFile]:
        with self._errors("read", path), self._files.open_input_file(f"{self._bucket}/{self._key(path)}") as file:
            yield file

    def list(self, folder: str) -> Sequence[str]:
        prefix = self._key(folder) + "/"
        with self._errors("list", folder):
            pages = self._client.get_paginator("list_objects_v2").paginate(
                Bucket=self._bucket, Prefix=prefix, Delimiter="/"
            )
            keys = [str(found["Key"]) for page in pages for found in page.get("Contents", ())]
        return sorted(key.removeprefix(prefix) for key in keys if key != prefix)

    def uri(self, path: str) -> str:
        return f"s3://{self._bucket}/{self._key(path)}"

    def delete(self, path: str) -> None:
        with self._errors("delete", path):
            self._client.delete_object(Bucket=self._bucket, Key=self._key(path))

    def catalog_properties(self) -> dict[str, str]:
        return self._location.catalog_properties()

    @cached_property
    def _client(self) -> Any:  # noqa: ANN401 - boto3 makes its classes at run time
        return self._location.client()

    @cached_property
    def _files(self) -> S3FileSystem:
        return self._location.files()

    def _key(self, path: str) -> str:
        return f"{self._location.folder}/{path}".strip("/")

    def _ask(self, request: Callable[..., dict[str, Any]], path: str) -> dict[str, Any] | None:
        """The answer about a file; None if there is none."""
        try:
            return request(Bucket=self._bucket, Key=self._key(path))
        except ClientError as error:
            if _code(error) in _MISSING:
                return None
            raise

    def _put(self, path: str, data: bytes) -> bool:
        for _ in range(ATTEMPTS):
            reach(self._in_store)
            try:
                self._client.put_object(Bucket=self._bucket, Key=self._key(path), Body=data, **_NEW)
            except ClientError as error:
                if _code(error) == _TAKEN:
                    return False
                if _code(error) != _CONFLICT:
                    raise
                continue
            return True
        return False  # the others that store the same name are not done: their file counts, or the task's next attempt

    def _put_parts(self, path: str, source: Path) -> bool:
        """Store a large file in parts. They are deleted if the name is taken by the time of the last one."""
        if self.size(path) is not None:
            return False
        target = {"Bucket": self._bucket, "Key": self._key(path)}
        target["UploadId"] = self._client.create_multipart_upload(**target)["UploadId"]
        try:
            parts = list(self._send_parts(target, source))
            reach(self._in_store)
            self._client.complete_multipart_upload(**target, MultipartUpload={"Parts": parts}, **_NEW)
        except BaseException as error:
            with suppress(ClientError, BotoCoreError):
                self._client.abort_multipart_upload(**target)
            if isinstance(error, ClientError) and _code(error) in {_TAKEN, _CONFLICT}:
                return False
            raise
        return True

    def _send_parts(self, target: dict[str, str], source: Path) -> Iterator[dict[str, Any]]:
        with source.open("rb") as file:
            number = 1
            while data := file.read(PART_BYTES):
                answer = self._client.upload_part(**target, PartNumber=number, Body=data)
                checksums = {name: value for name, value in answer.items() if name.startswith("Checksum")}
                yield {"PartNumber": number, "ETag": answer["ETag"], **checksums}
                number += 1

    @contextmanager
    def _errors(self, doing: str, path: str) -> Iterator[None]:
        try:
            yield
        except (ClientError, BotoCoreError, OSError) as error:
            if _is_away(error):
                raise self._faults.store_away(self.uri(path), f"{error}") from error
            raise self._faults.location_refused(self.uri(path), f"it refuses to {doing}: {error}") from error


def _is_away(error: Exception) -> bool:
    """Whether waiting may help. The client has tried several times. PyArrow has only texts."""
    if isinstance(error, ClientError):
        status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
        return status >= FIRST_SERVER_ERROR or _code(error) in _BUSY
    if isinstance(error, BotoCoreError):
        return isinstance(error, HTTPClientError | ConnectionError | IncompleteReadError)
    return any(word in str(error) for word in _AWAY_OF_PYARROW)


def _code(error: ClientError) -> str:
    return str(error.response["Error"]["Code"])
