"""Measures how far the archive is behind, for stream_runtime.driver.lag_watch."""

from __future__ import annotations

from typing import TYPE_CHECKING

from archive.faults import ARCHIVE_FAULTS
from stream_runtime.driver.lag_watch import UnreadKafka
from stream_runtime.kafka import Topics, driver_errors

if TYPE_CHECKING:
    from collections.abc import Sequence

    from archive.job.plan import Job
    from stream_runtime.exactly_once.commits import StoredOffset
    from stream_runtime.records import SourcePartition


class UnreadMessages(UnreadKafka):
    """The messages that are not archived yet."""

    def __init__(self, job: Job) -> None:
        self._own_topics = Topics(job.kafka)
        super().__init__(job.kafka, job.settings.group_id, ARCHIVE_FAULTS, self._own_topics)

    def positions(self, partitions: Sequence[SourcePartition]) -> dict[SourcePartition, StoredOffset | None]:
        """The committed offsets, whatever is committed beside them."""
        with driver_errors(f"read the offsets of the group {self._group}"):
            return self._positions.stored(partitions)

    def bounds(self, partitions: Sequence[SourcePartition]) -> dict[SourcePartition, tuple[int, int]]:
        """The bounds of partitions whose topics exist: a missing topic must not hide the others."""
        counts = self._own_topics.partition_counts()
        return super().bounds([partition for partition in partitions if partition.topic in counts])
