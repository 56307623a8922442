"""What is done with the raw messages of one raw topic: the part of a task that the protocol does not know."""

from __future__ import annotations

from abc import ABC, abstractmethod
from types import MappingProxyType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from materializer.fold.gaps import DeadLetter
    from materializer.fold.result import ChunkResult
    from materializer.records import Change, Message, RawPartition, RawRecord, Rest, TopicShape
    from materializer.rows.overlay import StateReader
    from materializer.rows.published import Published

NO_TOPICS: Mapping[bytes, Published] = MappingProxyType({})


class Processor(ABC):
    """The job's is materializer.job.processor.TableProcessor.

    shape: the raw topic's partition count and id.
    """

    shape: TopicShape

    @abstractmethod
    def fold(self, state: StateReader, records: Sequence[RawRecord]) -> ChunkResult:
        """Fold a chunk of raw messages, or its first part. The state is only read."""

    @abstractmethod
    def change_messages(
        self, changes: Iterable[Change], published: Mapping[bytes, Published] = NO_TOPICS
    ) -> Iterator[Message]:
        """The messages that publish these changes. published: as in ChunkResult."""

    def dead_letter_messages(self, _raw_partition: RawPartition, _letters: Iterable[DeadLetter]) -> Iterator[Message]:
        """The messages that dead-letter these raw messages of the raw partition, or resolve them; none by default."""
        return iter(())

    def rest(self, _state: StateReader) -> Rest | None:
        """How long the state has nothing to do without a message; None if that is not known."""
        return None

    def is_busy(self, result: ChunkResult) -> bool:
        """Whether a chunk writes more to the state than times."""
        return bool(result.writes)

    def messages(self, raw_partition: RawPartition, result: ChunkResult) -> Iterator[Message]:
        """All messages of a folded chunk: its changes, then its dead letters."""
        yield from self.change_messages(result.changes, result.published)
        yield from self.dead_letter_messages(raw_partition, result.dead_letters)
