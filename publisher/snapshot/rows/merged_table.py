"""Turns a table's merged SSTables into row images, with the native core and, for what it leaves, in Python."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

from cassandra_storage.files.native_sstables import NotNativeError, native_table
from cassandra_storage.formats.errors import FormatError
from cassandra_storage.formats.sstable.merge import MergePosition
from publisher.snapshot.rows.messages import message_parts

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cassandra_storage.files.native_sstables import NativeTable
    from cassandra_storage.files.table_sstables import TableSSTables
    from cassandra_storage.formats.merge.purge import Purger
    from cassandra_storage.formats.primitives.token_ranges import TokenRange
    from cdc_native.formats.row_images import RowImages as NativeImages
    from publisher.snapshot.rows.messages import RowImages, SnapshotOrigin
    from publisher.snapshot.rows.sending import PartitionSender
    from publisher.topics.raw_topics import RawTopic

BATCH_BYTES = 1 << 18  # of messages, between two places
BATCH_STEPS = 50_000  # rows and markers that may be read for them: orders are heard between two batches
MOST_TURN = 4096  # partitions that the Python code takes before the core tries again
_LONG_RUN = 10_000  # units in a row after which what the core leaves is rare


class MergedTable:
    """Gives `sender` all partitions of the ranges after its place."""

    def __init__(self, sstables: TableSSTables, purger: Purger, ranges: Sequence[TokenRange]) -> None:
        self._sstables = sstables
        self._purger = purger
        self._ranges = ranges

    def send(self, sender: PartitionSender, images: RowImages, raw_topic: RawTopic, origin: SnapshotOrigin) -> None:
        """Send all, and wait until all is acknowledged. DamagedTableError, UnsupportedError, OSError."""
        table = native_table(self._sstables.table)
        if table is None:
            self._send_by_python(sender)
        else:
            self._send_by_both(sender, images, raw_topic, origin, table)
        sender.finish()

    def _send_by_both(
        self,
        sender: PartitionSender,
        images: RowImages,
        raw_topic: RawTopic,
        origin: SnapshotOrigin,
        table: NativeTable,
    ) -> None:
        """The core sends up to a partition that it leaves, the Python code that one, and more of them each time that
        the core soon leaves another.
        """
        from cdc_native.formats.row_images import RowImages as Core  # noqa: PLC0415 - it may not be compiled

        parts = message_parts(raw_topic.table, origin, raw_topic.schema_id)
        core = Core(table.shapes, raw_topic.table.id, *parts)
        turn = 1
        while True:
            before = core.units = images.units
            is_done = self._send_by_core(sender, core, table)
            images.units = core.units
            if is_done:
                return
            turn = min(2 * turn, MOST_TURN) if core.units - before < _LONG_RUN else 1
            if self._send_by_python(sender, turn):
                return

    def _send_by_core(self, sender: PartitionSender, images: NativeImages, table: NativeTable) -> bool:
        """Send with the native core; return False if it is not done. The Python code sends what comes after the
        sender's place, also to report what is wrong with it.
        """
        from cdc_native.formats.batches import Batch  # noqa: PLC0415 - it may not be compiled

        batch = Batch()
        units = images.units
        try:
            merge = table.merge(self._sstables, images, self._purger, self._ranges, sender.place)
            while not merge.is_done and not merge.is_stopped:
                units = images.units
                merge.fill(batch, sender.batch_bytes(BATCH_BYTES), BATCH_STEPS)
                place = None if merge.place is None else MergePosition(*merge.place)
                sender.send_batch(batch, place, merge.rows, merge.partitions)
        except (FormatError, OSError, NotNativeError):
            images.units = units
            return False
        return merge.is_done

    def _send_by_python(self, sender: PartitionSender, most: int | None = None) -> bool:
        """Send at most `most` Cassandra partitions, or all if it is None; return whether all are sent."""
        with closing(self._sstables.merged(self._purger, self._ranges, sender.place)) as merged:
            return sender.send_partitions(merged, most)
