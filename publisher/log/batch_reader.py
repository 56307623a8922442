"""Reads a segment. A splitter splits many entries at once; those that it does not take are read one by one."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

from cassandra_storage.formats.commitlog.segment import BatchedReader

if TYPE_CHECKING:
    from cassandra_storage.formats.commitlog.segment import Event
    from cdc_native.formats.batches import Batch  # noqa: TC004 - it may not be compiled


class SplitEntries(NamedTuple):
    """Entries whose mutations are split."""

    # The position of the first entry in its segment, in bytes.
    position: int
    # The position after the last entry, in bytes.
    end_position: int
    # Their messages.
    batch: Batch
    # The raw topic of each table of the batch, by the table's place in it.
    topics: tuple[str, ...]


class Splitter(Protocol):
    """Splits the entries of a segment that need nothing else."""

    def split(self, reader: BatchReader, data: bytes, start: int, position: int, section_end: int) -> SplitEntries:
        """The first of the entries from `position` on, up to the one that it does not take; perhaps none. `data` begins
        at the position `start`, and the section ends at `section_end`. The batch is valid until the next call.
        """


class BatchReader(BatchedReader[SplitEntries]):
    """Yields SplitEntries for what its splitter takes, and the events of a SegmentReader for the rest.

    It reads as far as the consumer asks for: what the consumer does with an entry, such as reading a newer schema, is
    done when the entries after it are split.
    """

    splitter: Splitter | None = None

    def read_entries(  # noqa: PLR0913, PLR0917  as in SegmentReader
        self,
        data: bytes,
        base: int,
        here: int,
        section_end: int,
        limit: int,
        until: int,
        events: list[Event | SplitEntries],
    ) -> tuple[int, int]:
        """A batch, or one entry. As SegmentReader reads it: an entry that is not whole and sound is its own."""
        if self.splitter is None or here >= until:
            return super().read_entries(data, base, here, section_end, limit, until, events)
        split = self.splitter.split(self, data, base, here, section_end)
        if split.end_position > here:
            events.append(split)
            return split.end_position, 0
        return super().read_entries(data, base, here, section_end, limit, here + 1, events)
