"""Measurements of topics and consumer groups: values, and their arithmetic."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

Partition = tuple[str, int]
"""A topic and one of its partitions."""


@dataclass(frozen=True, slots=True)
class Sample:
    """Offsets at one moment."""

    # The moment, in seconds of a clock that only goes forward.
    seconds: float
    # The next offset to be written, by partition.
    ends: Mapping[Partition, int]
    # The next offset to be read, by consumer group and partition.
    committed: Mapping[str, Mapping[Partition, int]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Measured:
    """The measurements of one topic."""

    # The number of its partitions.
    partitions: int
    # Offsets a second, about messages a second (Kafka's transactions take some); None before the second sample.
    rate: float | None
    # The number of offsets that a consumer group has not read yet, by group.
    lags: Mapping[str, int]


def measured(first: Sample | None, last: Sample) -> dict[str, Measured]:
    """Return each topic's measures. Rates are those between the two samples. A partition that was created again counts
    0.
    """
    partitions: dict[str, int] = {}
    written: dict[str, int] = {}
    for partition, end in last.ends.items():
        topic = partition[0]
        partitions[topic] = partitions.get(topic, 0) + 1
        before = first.ends.get(partition, end) if first is not None else end
        written[topic] = written.get(topic, 0) + max(0, end - before)
    elapsed = last.seconds - first.seconds if first is not None else 0.0
    lags = _lags(last)
    return {
        topic: Measured(count, written[topic] / elapsed if elapsed > 0 else None, lags.get(topic, {}))
        for topic, count in partitions.items()
    }


def _lags(sample: Sample) -> dict[str, dict[str, int]]:
    """Return the lags by topic and group, in messages."""
    found: dict[str, dict[str, int]] = {}
    for group, offsets in sample.committed.items():
        for partition, offset in offsets.items():
            if partition in sample.ends and offset >= 0:
                lags = found.setdefault(partition[0], {})
                lags[group] = lags.get(group, 0) + max(0, sample.ends[partition] - offset)
    return found
