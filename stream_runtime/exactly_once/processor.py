"""A job's own work with the messages of one source topic: the part of a task that the protocol does not know."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from stream_runtime.exactly_once.report import Report
    from stream_runtime.records import ChangeRun, Message, Record, Rest, SourcePartition, TopicShape
    from stream_runtime.state.reader import StateReader


class Result(Protocol):
    """The result of processing a chunk, or its first part."""

    @property
    def writes(self) -> Mapping[bytes, bytes | None]:
        """Its writes to the state; None deletes a key. Without writes there are no messages either."""
        ...

    @property
    def now_ms(self) -> int:
        """The new time of the source partition."""
        ...

    @property
    def left(self) -> int:
        """How many records, from the end, are left for the next chunks. If it is all of them, part of the work before
        or of the first one is done.
        """
        ...


R = TypeVar("R", bound=Result)


class Processor(ABC, Generic[R]):
    """A job with a state makes a subclass. R is what it makes of a chunk."""

    shape: TopicShape
    """The source topic's number of partitions and its id."""

    @abstractmethod
    def fold(self, state: StateReader, records: Sequence[Record]) -> R:
        """Process a chunk of messages, or its first part. The state is only read."""

    @abstractmethod
    def messages(self, partition: SourcePartition, result: R) -> Iterable[Message | ChangeRun]:
        """All messages of a processed chunk. MessageGroups are sent together, where the commit protocol can."""

    @abstractmethod
    def add_to(self, report: Report, first: int, end: int, result: R) -> Report:
        """The report with one more chunk, or part of one: the offsets from `first` to before `end`."""

    def log_committed(self, _partition: SourcePartition, _offset: int, _result: R) -> None:
        """Log what of a committed chunk an operator should see."""

    def rest(self, _state: StateReader) -> Rest | None:
        """How long the state has nothing to do without a message; None if that is not known."""
        return None

    def is_busy(self, result: R) -> bool:
        """Whether a chunk writes more to the state than times."""
        return bool(result.writes)
