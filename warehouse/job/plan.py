"""The records that the driver gives the workers: the settings, and the topics of a batch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from cdc_common.settings import KafkaSettings, RegistrySettings
from stream_runtime.records import Share, SourcePartition, TopicShape, list_shares
from warehouse.job.definitions import Definition
from warehouse.settings import WarehouseSettings

SIGNAL_BYTES = 1024 * 1024
"""The largest signal."""
Role = Literal["load", "write", "copy"]
"""`load`: topics into tables. `write`: topics into objects, with signals. `copy`: signals into tables."""


@dataclass(frozen=True, slots=True)
class Job:
    """The settings, which do not change while the job runs. They have secrets: task_pickle sends them once."""

    # The `[kafka]` settings.
    kafka: KafkaSettings
    # The `[registry]` settings.
    registry: RegistrySettings
    # The `[warehouse]` settings.
    settings: WarehouseSettings
    # What it does.
    role: Role = "load"


@dataclass(frozen=True, slots=True)
class WarehousePlan:
    """The plan of a batch."""

    # The settings.
    job: Job
    # The shapes of the topics, or of the topics of signals, by name.
    shapes: Mapping[str, TopicShape]
    # How their tables are made, by the same names.
    definitions: Mapping[str, Definition]

    @property
    def shares(self) -> list[Share]:
        if self.job.role == "write":
            return list_shares(self.shapes)
        return [share_of(topic, shape.partitions) for topic, shape in self.shapes.items()]


def share_of(topic: str, partitions: int) -> Share:
    """The share of a topic: all its partitions, as one transaction loads its table."""
    return Share(topic, tuple(SourcePartition(topic, number) for number in range(partitions)), topic)


def signals_of(topic: str, own: WarehouseSettings) -> str:
    """The topic of the signals of a topic."""
    return f"{own.signals_prefix}.{topic}"


def source_of(signals: str, own: WarehouseSettings) -> str:
    """The topic of a topic of signals; empty for another topic."""
    prefix = f"{own.signals_prefix}."
    return signals.removeprefix(prefix) if signals.startswith(prefix) else ""
