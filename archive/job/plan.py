"""The records that the driver gives the workers: the settings, and the topics of a batch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from archive.records import Definition
from archive.settings import ArchiveSettings
from cdc_common.settings import KafkaSettings, RegistrySettings
from stream_runtime.records import Share, SourcePartition, TopicShape

EVENT_BYTES = 8 * 1024 * 1024
"""The largest file event."""
DEAD_LETTER_BYTES = 96 * 1024 * 1024
"""The largest dead letter."""


@dataclass(frozen=True, slots=True)
class Job:
    """The settings, which do not change while the job runs. They have secrets: task_pickle sends them once."""

    # The `[kafka]` settings.
    kafka: KafkaSettings
    # The `[registry]` settings.
    registry: RegistrySettings
    # The `[archive]` settings.
    settings: ArchiveSettings


@dataclass(frozen=True, slots=True)
class Stream:
    """A topic that is archived."""

    # The topic's id and its number of partitions.
    shape: TopicShape
    # Whether the topic is compacted.
    is_compacted: bool
    # How its files are made.
    definition: Definition


@dataclass(frozen=True, slots=True)
class ArchivePlan:
    """The plan of a batch."""

    # The settings.
    job: Job
    # The topics, by name.
    streams: Mapping[str, Stream]
    # The number of partitions of the topic of file events.
    events: int
    # The shares of all topics.
    shares: tuple[Share, ...]


def list_shares(topic: str, partitions: int, size: int) -> list[Share]:
    """The shares of a topic: partitions in groups of `size`, by their numbers. Added partitions join the last one."""
    shares = []
    for first in range(0, partitions, size):
        group = tuple(SourcePartition(topic, number) for number in range(first, min(first + size, partitions)))
        shares.append(Share(topic, group, str(group[0])))
    return shares
