"""Sends the merged partitions of a table as row images, and says how far all is acknowledged."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, Protocol

from cassandra_storage.formats.merge.range_merge import with_ranges
from cassandra_storage.formats.rows.deletion import LIVE
from cassandra_storage.formats.rows.row import Row
from cassandra_storage.formats.sstable.merge import MergePosition
from publisher.inflight import PendingMessages

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from cassandra_storage.formats.rows.clustering import Clustering
    from cassandra_storage.formats.rows.deletion import RangeTombstone
    from cassandra_storage.formats.rows.unfiltered import Unfiltered
    from cassandra_storage.formats.sstable.merge import MergedPartition
    from cdc_common.program.pace import Pace
    from cdc_native.formats.batches import Batch
    from publisher.mutations.messages import OutgoingMessage
    from publisher.snapshot.rows.messages import RowImages

BATCH_UNITS = 200  # between two places at which a snapshot can resume


@dataclass(slots=True)
class Progress:
    """The messages that Kafka has acknowledged since the sending began or resumed."""

    # The place up to which all rows are acknowledged; None at the start.
    place: MergePosition | None
    # The number of rows.
    rows: int = 0
    # The size of the messages.
    bytes: int = 0
    # The number of Cassandra partitions.
    partitions: int = 0


class _Batch(NamedTuple):
    pending: PendingMessages
    place: MergePosition
    rows: int
    bytes: int
    partitions: int


class Output(Protocol):
    """The destination of units."""

    def send(self, unit: list[OutgoingMessage], pending: PendingMessages) -> int:
        """Queue the messages of a unit, which `pending` counts; their bytes."""
        ...

    def send_batch(self, batch: Batch, pending: PendingMessages) -> None:
        """Queue all messages of a batch, which `pending` counts."""
        ...

    def poll(self) -> None:
        """Handle the acknowledgements that are there."""
        ...

    def wait(self) -> None:
        """Wait a moment for acknowledgements and handle them as `poll` does."""
        ...


class PartitionSender:
    """`report` is called after each batch. `place`: past what was sent."""

    def __init__(
        self,
        images: RowImages,
        output: Output,
        pace: Pace,
        report: Callable[[Progress], None],
        after: MergePosition | None,
    ) -> None:
        self._images = images
        self._output = output
        self._pace = pace
        self._report = report
        self._in_flight: deque[_Batch] = deque()
        self._pending = PendingMessages()
        self._rows = self._bytes = self._partitions = 0
        self._clustering: Clustering | None = None
        self.place = after
        self.progress = Progress(after)

    def send_partitions(self, partitions: Iterable[MergedPartition], most: int | None = None) -> bool:
        """Send them all, or so many; True if there were no more. They come after `place`."""
        sent = 0
        for partition in partitions:
            self._send_partition(partition)
            sent += 1
            if sent == most:
                break
        if sent:
            self._close_batch()
        return sent != most

    def batch_bytes(self, most: int) -> int:
        """Return how many bytes of messages a batch is to have, at most so many."""
        return self._pace.at_once(most)

    def send_batch(self, batch: Batch, place: MergePosition | None, rows: int, partitions: int) -> None:
        """Send the units of a batch, which lead to the place; without one they are a part of what leads to the next."""
        self._output.send_batch(batch, self._pending)
        self._bytes += batch.size
        self._rows += rows
        self._partitions += partitions
        if place is not None:
            self.place = place
            self._close_batch()
        else:
            self._go_on(batch.size)

    def finish(self) -> None:
        """Wait until all are acknowledged."""
        while self._in_flight:
            self._output.wait()
            self._collect()

    def _send_partition(self, partition: MergedPartition) -> None:
        token, key, deletion, static, unfiltereds = partition
        self._clustering = None
        if self.place is not None and (token, key) == self.place[:2]:
            deletion, static = LIVE, None  # sent with the first row
        for unit in self._images.partition(key, deletion, static, self._followed(with_ranges(unfiltereds))):
            self._bytes += self._output.send(unit, self._pending)
            self._rows += 1
            if self._rows >= BATCH_UNITS and self._clustering is not None:
                self.place = MergePosition(token, key, self._clustering)
                self._close_batch()
        self._partitions += 1
        self.place = MergePosition(token, key)
        if self._rows >= BATCH_UNITS:
            self._close_batch()

    def _followed(self, elements: Iterator[RangeTombstone | Unfiltered]) -> Iterator[Row | RangeTombstone]:
        """Notes the last row: a snapshot resumes after a row, not after a range."""
        for element in elements:
            if isinstance(element, Row):
                self._clustering = element.clustering
            yield element  # type: ignore[misc]  # with_ranges leaves no marker

    def _close_batch(self) -> None:
        assert self.place is not None
        self._in_flight.append(_Batch(self._pending, self.place, self._rows, self._bytes, self._partitions))
        size = self._bytes
        self._pending = PendingMessages()
        self._rows = self._bytes = self._partitions = 0
        self._go_on(size)

    def _go_on(self, size: int) -> None:
        self._output.poll()
        self._collect()
        self._pace.wait(size)

    def _collect(self) -> None:
        progress = self.progress
        while self._in_flight and not self._in_flight[0].pending.outstanding:
            batch = self._in_flight.popleft()
            progress.place = batch.place
            progress.rows += batch.rows
            progress.bytes += batch.bytes
            progress.partitions += batch.partitions
        self._report(progress)
