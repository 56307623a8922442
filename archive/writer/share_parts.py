"""The settings of an archived share, and the clients and places that its task works with."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol

from archive.records import Definition
from archive.writer.cut import CutSettings
from archive.writer.schema_plans import SchemaPlans
from stream_runtime.exactly_once.commits import Commits
from stream_runtime.stores.store import Store

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from stream_runtime.records import SourcePartition


class Bounds(Protocol):
    """The first available offset and the end of partitions: stream_runtime.kafka.Topics.bounds."""

    def __call__(self, partitions: Sequence[SourcePartition], /) -> Mapping[SourcePartition, tuple[int, int]]: ...


class EventTopic(NamedTuple):
    """The place for the file events of a share."""

    # The name of the topic.
    topic: str
    # The number of the partition.
    partition: int


class ShareSettings(NamedTuple):
    """The settings of a share."""

    # The consumer group.
    group: str
    # The definition with which new cuts are made.
    definition: Definition
    # The limits of a cut.
    cut: CutSettings
    # The number of partitions that a share has at most.
    partitions_per_share: int
    # The age, in s, of an offset that is committed again.
    refresh_seconds: float
    # The time, in s, that offsets which only markers have moved wait for an event.
    idle_seconds: float
    # Whether compaction may remove messages before a retry reads them.
    is_compacted: bool


class ShareParts(NamedTuple):
    """The clients and places that a share works with."""

    # The protocol that commits offsets.
    commits: Commits
    # The store of the files.
    store: Store
    # The plans of the topic's schemas.
    plans: SchemaPlans
    # The place for file events.
    events: EventTopic
    # The topic for dead letters.
    dead_letter_topic: str
    # Returns the first available offset and the end of partitions.
    bounds: Bounds
    # The folder on the worker's disk, for this share alone.
    folder: Path
    # The bytes of rows that are held before they go to disk.
    spill_bytes: int
