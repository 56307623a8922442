"""Measures how far a transformer is behind, for stream_runtime.driver.lag_watch."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stream_runtime.driver.lag_watch import UnreadKafka
from stream_runtime.kafka import driver_errors

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stream_runtime.exactly_once.commits import StoredOffset
    from stream_runtime.kafka import Topics
    from stream_runtime.records import SourcePartition
    from transformer.records import Definitions


class UnreadMessages(UnreadKafka):
    """The messages that one transformer has not transformed yet."""

    def __init__(self, definitions: Definitions, topics: Topics, transformer: str) -> None:
        """topics: those of all transformers share it. transformer: its name."""
        super().__init__(definitions.kafka, definitions.group_of(transformer), topics=topics)

    def positions(self, partitions: Sequence[SourcePartition]) -> dict[SourcePartition, StoredOffset | None]:
        """The committed offsets, also of topics that were recreated since."""
        with driver_errors(f"read the offsets of the group {self._group}"):
            return self._positions.stored(partitions)

    def bounds(self, partitions: Sequence[SourcePartition]) -> dict[SourcePartition, tuple[int, int]]:
        """The bounds of partitions whose topics exist: a missing topic must not hide the others."""
        counts = self._topics.partition_counts()
        return super().bounds([partition for partition in partitions if partition.topic in counts])
