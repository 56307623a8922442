"""The shares that a worker has open: their consumers, and what each needs for its work."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

import structlog

from cdc_common.errors.codes import CdcError
from stream_runtime.errors import trace_of
from stream_runtime.fault_points import StatelessPoint, reach
from stream_runtime.kafka import Topics
from stream_runtime.kafka.source_check import check_sources
from stream_runtime.kafka.source_reader import SourceReader

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from cdc_common.settings import KafkaSettings
    from stream_runtime.exactly_once.report import Report
    from stream_runtime.exactly_once.stateless_task import Done
    from stream_runtime.faults import Faults
    from stream_runtime.kafka.source_reader import Read
    from stream_runtime.records import Share, SourcePartition, SourceRecord, TopicShape
    from stream_runtime.worker.task import Assignment

_logger = structlog.get_logger(__name__)


class Opened(Protocol):
    """An open share."""

    @property
    def shapes(self) -> Mapping[SourcePartition, TopicShape]:
        """The partitions that are read, each with the shape of its topic to which the share is bound."""
        ...

    def close(self) -> None: ...


P = TypeVar("P")
O = TypeVar("O", bound=Opened)  # noqa: E741 - as P


class OpenShares(ABC, Generic[P, O]):
    """Opens and closes shares, and works on them. One consumer for each reader that the shares name.

    A job makes a subclass. P is its plan of a batch, O is what it opens.
    """

    def __init__(self, kafka: KafkaSettings, faults: Faults, *, readers: int = 1) -> None:
        """readers: how many there are at most; they share the memory for what is read ahead."""
        self._kafka = kafka
        self._faults = faults
        self._topics = Topics(kafka)
        self._most_readers = readers
        self._readers: dict[str, SourceReader] = {}
        self._open: dict[Share, O] = {}

    @abstractmethod
    def group(self, reader: str) -> str:
        """The consumer group of a reader."""

    @abstractmethod
    def open_share(self, plan: P, share: Share, reader: SourceReader) -> O:
        """Step 1 of the protocol. `reader` reads the partitions from their offsets on. CdcError, KafkaException."""

    @abstractmethod
    def is_planned(self, plan: P, share: Share, opened: O) -> bool:
        """Whether an open share is as the plan has it."""

    @abstractmethod
    def process(self, share: Share, read: Read) -> Done:
        """Process what was read of a share. CdcError. NotOwnerError asks to open the share again."""

    @property
    def shares(self) -> set[Share]:
        return set(self._open)

    def of_reader(self, reader: str) -> list[Share]:
        """The open shares of a reader."""
        return [share for share in self._open if share.reader == reader]

    def keep(self, plan: P, assignment: Assignment) -> None:
        """Close all but those of the assignment, and those that are planned otherwise now."""
        assigned = set(assignment.shares)
        for share, opened in list(self._open.items()):
            if share not in assigned or not self.is_planned(plan, share, opened):
                self.close(share)

    def open(self, plan: P, share: Share) -> Report | None:
        """Open a share. Return a report if the driver shows where it is at. CdcError, KafkaException."""
        self._open[share] = self.open_share(plan, share, self._reader(share.reader))
        return None

    def read(self, most: int, seconds: float) -> Iterator[tuple[str, Read | CdcError]]:
        """Read with each consumer that has open shares, in so many seconds together."""
        readers = {name: reader for name, reader in self._readers.items() if self.of_reader(name)}
        for name, reader in readers.items():
            try:
                read = reader.read(max(1, most // len(readers)), seconds / len(readers))
            except CdcError as error:
                yield name, error
            else:
                reach(StatelessPoint.POLLED)
                shapes = {at: shape for share in self.of_reader(name) for at, shape in self._open[share].shapes.items()}
                yield name, check_sources(read, shapes, self._topics, self._faults)

    def in_hand(self, _share: Share, _read: Read) -> Sequence[SourceRecord]:
        """The messages that a failure concerns, if it can only be one of those that were just read."""
        return ()

    def close(self, share: Share) -> None:
        """A failure to close concerns this share only, which is opened from its committed offsets next time."""
        opened = self._open.pop(share, None)
        if opened is None:
            return
        try:
            for partition in opened.shapes:
                self._reader(share.reader).remove(partition)
            opened.close()
        except Exception as error:  # noqa: BLE001 - the other shares must stay open
            event = f"{self._faults.words.partition} not closed cleanly"
            _logger.warning(event, trace=trace_of(error))

    def close_all(self) -> None:
        for share in list(self._open):
            self.close(share)
        for reader in self._readers.values():
            reader.close()

    def _reader(self, name: str) -> SourceReader:
        reader = self._readers.get(name)
        if reader is None:
            reader = SourceReader(self._kafka, self.group(name), self._faults, readers=self._most_readers)
            self._readers[name] = reader
        return reader
