"""A state into which chunks are folded, and the changes that came out, each checked."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cassandra_storage.formats.merge.reconciliation import RowMerger
from cassandra_storage.formats.rows.byte_comparable import clustering_encoder
from cassandra_storage.formats.rows.deletion import LIVE
from cdc_common.messages.changes import change_op
from materializer.fold.chunk import fold_chunk
from materializer.rows.keys import PARTITION, ROWS_END, ROWS_SECTION, split_data_key
from materializer.rows.overlay import Overlay
from materializer.rows.partition_state import PartitionState
from materializer.rows.row_codec import RowCodec
from materializer.rows.settings import DEFAULT_FOLD_SETTINGS
from materializer.rows.timers import Timers
from tests.support.materializer.brute_model import Event
from tests.support.materializer.memory_state import MemoryState
from tests.support.materializer.raw_builder import catalog_of, raw_record

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cassandra_storage.formats.rows.clustering import Clustering
    from cdc_common.messages.changes import RowChange, RowImage
    from materializer.fold.result import ChunkResult
    from materializer.records import RawRecord
    from materializer.rows.settings import FoldSettings
    from tests.support.materializer.brute_model import Visible
    from tests.support.materializer.raw_builder import TableWriter

Key = tuple[bytes, "Clustering | None"]


class FoldRun:
    """Folds chunks; `changes` is all that came out, `parts` what the chunks were folded in."""

    def __init__(self, writer: TableWriter, fold_settings: FoldSettings = DEFAULT_FOLD_SETTINGS) -> None:
        self.writer = writer
        self.fold_settings = fold_settings
        self.catalog = catalog_of(writer.table)
        self.state = MemoryState()
        self.changes: list[RowChange] = []
        self.parts: list[ChunkResult] = []
        self._latest: dict[Key, RowImage | None] = {}
        self._numbers: dict[Key, int] = {}

    def chunk(self, *records: RawRecord) -> ChunkResult:
        """Fold them, in as many parts as the settings ask for."""
        changes: list[RowChange] = []
        writes: dict[bytes, bytes | None] = {}
        while records:
            result = self.part(*records)
            changes += result.changes
            writes |= result.writes
            records = records[len(records) - result.left :]
        return result._replace(changes=changes, writes=writes)

    def part(self, *records: RawRecord) -> ChunkResult:
        """One part. It depends only on the state and on the records that are left."""
        result = fold_chunk(self.state, records, self.catalog, self.fold_settings)
        self.state.apply(result.writes)
        self.parts.append(result)
        self.changes += result.changes
        for change in result.changes:
            self._check(change)
        assert result.writes or not (result.changes or result.left == len(records))
        return result

    def heartbeat(self, ms: int, *, host: int = 1, clock: int = 0) -> ChunkResult:
        return self.chunk(
            raw_record(b"", "heartbeat", None, timestamp_ms=ms, host=host, clock=clock, writer=self.writer)
        )

    def continue_chains(self, others: Sequence[FoldRun]) -> None:
        """Continue the chains of others."""
        for other in others:
            self._latest |= other._latest
            self._numbers |= other._numbers

    def visible(self, partition_key: bytes) -> Visible:
        """The rows as their last messages leave them."""
        return {
            clustering: dict(image)
            for (partition, clustering), image in self._latest.items()
            if partition == partition_key and image is not None
        }

    def merged(self) -> dict[bytes, object]:
        """The data of every partition in a form in which equal data is equal: without counters, and without what a
        deletion of the partition or of a range shadows anyway.
        """
        overlay = Overlay(self.state)
        codec = RowCodec(overlay, self.catalog, self.writer.table.id.bytes)
        columns = {column.name: column for column in self.writer.table.columns}
        merger = RowMerger(columns, is_counter=self.writer.table.is_counter)
        encode = clustering_encoder(self.writer.table.clustering)
        found: dict[bytes, object] = {}
        for key in {split_data_key(key)[0] for key in self.state.data if key.startswith(PARTITION)}:
            partition = PartitionState(overlay, codec, Timers(overlay), key)
            rows = {}
            for _, value in overlay.scan_rows(partition.prefix + ROWS_SECTION, partition.prefix + ROWS_END):
                row = codec.decode(value, is_static=False).row
                active = max(partition.facts.deletion, partition.ranged_deletion(encode(row.clustering)))
                row = merger.merge((row,), active)
                if not row.is_empty:
                    rows[row.clustering] = row
            data = partition.facts.deletion, tuple(partition.ranges), partition.static, rows
            if data != (LIVE, (), None, {}):
                found[key] = data
        return found

    def _check(self, change: RowChange) -> None:
        """The chain, the operation, and that a number is never used again."""
        key = change.partition_key, change.clustering
        before = self._latest.get(key)
        assert change.before == before, "before is not the after of the message before"
        assert change.before != change.after, "a message that changes nothing"
        number = self._numbers.get(key, 0)
        if before is None:  # it may have been purged since
            assert change.row_sequence > number
        else:
            assert change.row_sequence == number + 1
        assert change.op == change_op(change.before, change.after, is_snapshot=change.source.snapshot)
        self._numbers[key] = change.row_sequence
        self._latest[key] = change.after


def events(changes: Sequence[RowChange]) -> list[Event]:
    return [
        Event(
            change.partition_key,
            change.clustering,
            None if change.before is None else dict(change.before),
            None if change.after is None else dict(change.after),
        )
        for change in changes
    ]


def in_any_order(expected: Sequence[Event]) -> list[Event]:
    """Events of one second, which have no defined order, in an order that can be compared."""
    return sorted(expected, key=repr)
