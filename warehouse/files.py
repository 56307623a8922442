"""The store of the objects that a warehouse copies."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stream_runtime.stores import store
from warehouse.fault_points import WriterPoint
from warehouse.faults import WAREHOUSE_FAULTS

if TYPE_CHECKING:
    from stream_runtime.stores.store import Store


def open_store(location: str) -> Store:
    """The store of warehouse.location. CdcError for one that cannot be used."""
    return store.open_store(location, WAREHOUSE_FAULTS, WriterPoint.OBJECT_IN_STORE)


def check_store(files: Store) -> None:
    """Check that an object is stored only if its name is free, and deleted. CdcError."""
    store.check_store(files, WAREHOUSE_FAULTS)
