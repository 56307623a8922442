"""What all commands read first: the raw partitions that have a stored state, and their committed positions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from materializer.kafka import GroupPositions, driver_errors
from materializer.records import RawPartition

if TYPE_CHECKING:
    from cdc_program.settings import Settings
    from materializer.exactly_once.position import Position
    from materializer.store.object_store import ObjectStore


def list_stored_partitions(store: ObjectStore, group: str) -> list[RawPartition]:
    """The raw partitions that have a folder in the checkpoint location."""
    names = (name.rpartition("-") for name in store.folders(group))
    return sorted(RawPartition(topic, int(number)) for topic, _, number in names if topic and number.isdigit())


def read_positions(settings: Settings, raw_partitions: list[RawPartition]) -> dict[RawPartition, Position | None]:
    """The group's committed positions, as they are now. CdcError if another program has committed one."""
    group = settings.materializer.group_id
    with driver_errors(f"read the offsets of the group {group}"):
        return GroupPositions(settings.kafka, group, stable=False).read(raw_partitions)
