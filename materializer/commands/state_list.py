"""What `cassandra-materializer state ls` finds out: which states are stored, and where they stand."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from materializer.exactly_once.position import Position
from materializer.kafka import GroupPositions, Topics, driver_errors
from materializer.records import RawPartition
from materializer.store.checkpoints import CheckpointStore

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cdc_program.settings import Settings
    from materializer.store.object_store import ObjectStore


class StoredPartition(NamedTuple):
    """A raw partition of which the location holds a state or the group an offset.

    `end` is the raw partition's next offset, None where the topic is gone; `sizes` are bytes of changelogs, and of
    snapshots with their files.
    """

    partition: RawPartition
    position: Position | None
    end: int | None
    changelogs: int
    snapshots: int
    sizes: tuple[int, int]


def stored_partitions(store: ObjectStore, group: str) -> list[RawPartition]:
    """The raw partitions that have a folder in the location."""
    names = (name.rpartition("-") for name in store.folders(group))
    return sorted(RawPartition(topic, int(number)) for topic, _, number in names if topic and number.isdigit())


def positions_of(settings: Settings, partitions: list[RawPartition]) -> dict[RawPartition, Position | None]:
    """The group's committed positions, as they are now; CdcError where one is not ours."""
    group = settings.materializer.group_id
    with driver_errors(f"read the offsets of the group {group}"):
        return GroupPositions(settings.kafka, group, stable=False).read(partitions)


def list_states(settings: Settings, store: ObjectStore) -> Iterator[StoredPartition]:
    group = settings.materializer.group_id
    partitions = stored_partitions(store, group)
    positions = positions_of(settings, partitions)
    topics = Topics(settings.kafka)
    counts = topics.partition_counts()
    bounds = topics.bounds([each for each in partitions if each.partition < counts.get(each.topic, 0)])
    for partition in partitions:
        changelogs, snapshots, files = CheckpointStore(store, group, partition).entries()
        yield StoredPartition(
            partition,
            positions.get(partition),
            bounds[partition][1] if partition in bounds else None,
            len(changelogs),
            len(snapshots),
            (sum(each.size for each in changelogs), sum(each.size for each in (*snapshots, *files))),
        )
