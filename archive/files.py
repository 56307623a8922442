"""The store of an archive's files."""

from __future__ import annotations

from typing import TYPE_CHECKING

from archive.fault_points import ArchivePoint
from archive.faults import ARCHIVE_FAULTS
from stream_runtime.stores import store

if TYPE_CHECKING:
    from stream_runtime.stores.store import Store


def open_store(location: str) -> Store:
    """The store of archive.location. CdcError for one that cannot be used."""
    return store.open_store(location, ARCHIVE_FAULTS, ArchivePoint.IN_STORE)


def check_store(files: Store) -> None:
    """Check that a file is stored only if its name is free, and deleted. CdcError."""
    store.check_store(files, ARCHIVE_FAULTS)
