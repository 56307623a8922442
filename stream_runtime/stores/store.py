"""The interface of a store of files, and how to open one.

Paths are relative to the store's location and use `/`.
"""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING, Protocol

from stream_runtime.stores.local import LocalStore

if TYPE_CHECKING:
    from collections.abc import Sequence
    from contextlib import AbstractContextManager
    from pathlib import Path

    import pyarrow as pa

    from stream_runtime.fault_points import Point
    from stream_runtime.stores.faults import StoreFaults


class Store(Protocol):
    """A store. The CdcErrors of its faults: if it refuses, and if it does not answer."""

    def put_new(self, path: str, source: Path, /) -> bool:
        """Store a copy of a file of this machine under a path that has no file yet; whether it had none. Of two calls
        at the same time, one wins.
        """
        ...

    def put_new_bytes(self, path: str, data: bytes, /) -> bool:
        """As put_new."""
        ...

    def put(self, path: str, data: bytes, /) -> None:
        """Store a small file, in place of one that has the path."""
        ...

    def read(self, path: str, /) -> bytes | None:
        """The bytes of a small file; None if there is none."""
        ...

    def size(self, path: str, /) -> int | None:
        """The size of a file; None if there is none."""
        ...

    def open(self, path: str, /) -> AbstractContextManager[pa.NativeFile]:
        """Open a file for reading in parts, which may fail until it is closed."""
        ...

    def list(self, folder: str, /) -> Sequence[str]:
        """The names of the files directly in a folder."""
        ...

    def uri(self, path: str, /) -> str:
        """The name of a file for readers of its table."""
        ...

    def delete(self, path: str, /) -> None:
        """Delete a file that may be there."""
        ...

    def catalog_properties(self) -> dict[str, str]:
        """The properties with which the client of an Iceberg catalog reads the files."""
        ...


def open_store(location: str, faults: StoreFaults, in_store: Point) -> Store:
    """The store of a location. CdcError for one that cannot be used. in_store: the fault point at which a file of the
    store has a temporary name only.
    """
    if location.startswith("file://"):
        return LocalStore(location.removeprefix("file://"), faults, in_store)
    if location.startswith("s3://"):
        from stream_runtime.stores.s3 import S3Store  # noqa: PLC0415 - workers of a folder need no boto3

        return S3Store(location, faults, in_store)
    if "://" in location:
        raise faults.location_refused(location, "only folders and s3://bucket/folder are supported")
    return LocalStore(location, faults, in_store)


def check_store(store: Store, faults: StoreFaults) -> None:
    """Check that a file is stored only if its name is free, and deleted. CdcError."""
    name = f"_check/{secrets.token_hex(8)}"
    is_new = store.put_new_bytes(name, b"")
    is_new_again = store.put_new_bytes(name, b"")
    store.delete(name)
    if not is_new or is_new_again:
        raise faults.location_refused(
            store.uri(""), "it stores a file twice under one name (S3: it ignores If-None-Match)"
        )
