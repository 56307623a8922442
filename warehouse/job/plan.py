"""The records that the driver gives the workers: the settings, and the topics of a batch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from cdc_common.settings import KafkaSettings, RegistrySettings
from stream_runtime.records import Share, SourcePartition, TopicShape
from warehouse.job.definitions import Definition
from warehouse.settings import WarehouseSettings


@dataclass(frozen=True, slots=True)
class Job:
    """The settings, which do not change while the job runs. They have secrets: task_pickle sends them once."""

    # The `[kafka]` settings.
    kafka: KafkaSettings
    # The `[registry]` settings.
    registry: RegistrySettings
    # The `[warehouse]` settings.
    settings: WarehouseSettings


@dataclass(frozen=True, slots=True)
class WarehousePlan:
    """The plan of a batch."""

    # The settings.
    job: Job
    # The topics' shapes, by name.
    shapes: Mapping[str, TopicShape]
    # How their tables are made, by the topic's name.
    definitions: Mapping[str, Definition]

    @property
    def shares(self) -> list[Share]:
        return [share_of(topic, shape.partitions) for topic, shape in self.shapes.items()]


def share_of(topic: str, partitions: int) -> Share:
    """The share of a topic: all its partitions, as one transaction loads its table."""
    return Share(topic, tuple(SourcePartition(topic, number) for number in range(partitions)), topic)
