"""Work with the raw messages of one raw topic: the part of a task that the protocol does not know."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING

import structlog

from materializer.fold.result import ChunkResult
from materializer.processing.fold_report import FoldReport
from stream_runtime.exactly_once.processor import Processor

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from materializer.fold.gaps import DeadLetter
    from materializer.records import RawPartition
    from stream_runtime.exactly_once.report import Report
    from stream_runtime.records import ChangeRun, Message

_logger = structlog.get_logger(__name__)


class RawProcessor(Processor[ChunkResult]):
    """The job's is TableProcessor."""

    @abstractmethod
    def change_messages(self, result: ChunkResult) -> Iterator[Message | ChangeRun]:
        """The messages that publish the changes of a folded chunk."""

    def dead_letter_messages(self, _raw_partition: RawPartition, _letters: Iterable[DeadLetter]) -> Iterator[Message]:
        """The messages that dead-letter these raw messages of the raw partition, or resolve them; none by default."""
        return iter(())

    def messages(self, partition: RawPartition, result: ChunkResult) -> Iterator[Message | ChangeRun]:
        """All messages of a folded chunk: its changes, then its dead letters."""
        yield from self.change_messages(result)
        yield from self.dead_letter_messages(partition, result.dead_letters)

    def log_committed(self, partition: RawPartition, offset: int, result: ChunkResult) -> None:
        if result.moved_to:
            _logger.info("rows moved", partition=str(partition), topic=result.moved_to, offset=offset)

    def add_to(self, report: Report, first: int, end: int, result: ChunkResult) -> Report:
        found = FoldReport.of(result)
        return report.with_chunk(first, end, changes=len(result.changes), native=result.native, own=found)
