"""What is held of a partition, and how it is stored: PartitionState and the values behind materializer.state_keys.

Every value begins with the format version; a reader takes its own and the one before (version 1 has none before it).
Rows are in Cassandra's own serialization under a header made from a table schema, to which the value refers by number.
"""

from __future__ import annotations

import struct
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from cassandra_storage.deletion import LIVE, DeletionTime
from cassandra_storage.errors import FormatError
from cassandra_storage.header import SerializationHeader
from cassandra_storage.schema import ColumnKind
from cassandra_storage.schema_rows import in_order
from cassandra_storage.unfiltered import read_row, write_row
from cassandra_storage.vint import read_unsigned_vint, write_unsigned_vint
from cdc_program.errors import CdcError, Code
from materializer.lifetimes import deletion_second, row_times
from materializer.ranges import DeletedRange, add_range, touching
from materializer.state_keys import (
    FACTS_SECTION,
    FLOOR,
    RANGES_SECTION,
    ROWS_SECTION,
    STATIC_SECTION,
    partition_prefix,
    schema_key,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from cassandra_storage.rows import Row
    from cassandra_storage.schema import TableMetadata
    from materializer.catalog import TableCatalog
    from materializer.lifetimes import Moment
    from materializer.overlay import Overlay
    from materializer.queues import Queues

FORMAT_VERSION = 1
_VERSION = bytes([FORMAT_VERSION])
_FACTS = struct.Struct(">BqqQQ?")
_RANGE = struct.Struct(">Bqq")


class StoredRow(NamedTuple):
    """A merged row and the number of changes that have been emitted for it."""

    row: Row
    row_sequence: int


class PartitionFacts(NamedTuple):
    """A partition's own facts: its deletion; of a table with statics, how many of its rows are visible, and the
    row_sequence of the row that stands for it when none is; whether it holds range tombstones.
    """

    deletion: DeletionTime = LIVE
    visible_rows: int = 0
    static_sequence: int = 0
    has_ranges: bool = False


_NO_FACTS = PartitionFacts()


class SequenceFloor:
    """The row_sequence above which rows begin that are new to the state: the largest of any row that was purged."""

    __slots__ = ("_overlay", "value")

    def __init__(self, overlay: Overlay) -> None:
        self._overlay = overlay
        self.value = int.from_bytes(overlay.get(FLOOR) or b"", "big")

    def raise_to(self, row_sequence: int) -> None:
        if row_sequence > self.value:
            self.value = row_sequence
            self._overlay.put(FLOOR, row_sequence.to_bytes(8, "big"))


class PendingRow(bytes):
    """The value of a row that a chunk has changed, encoded when the chunk ends: more may come for it before."""

    stored: StoredRow


class RowCodec:
    """Rows to stored values and back, for one chunk of one raw partition."""

    __slots__ = ("_catalog", "_headers", "_newest", "_number", "_overlay", "_table_id")

    def __init__(self, overlay: Overlay, catalog: TableCatalog, table_id: bytes) -> None:
        self._overlay = overlay
        self._catalog = catalog
        self._table_id = table_id
        self._headers: dict[int, SerializationHeader] = {}
        self._newest, _ = catalog.newest_of(table_id)
        self._number: int | None = None

    def encode(self, stored: StoredRow, *, is_static: bool) -> bytes:
        number = self._newest_number()
        row = write_row(stored.row, self._header(number), is_static=is_static)
        return _VERSION + write_unsigned_vint(stored.row_sequence) + write_unsigned_vint(number) + row

    def pending(self, stored: StoredRow) -> PendingRow:
        """The value of a regular row until `encode_pending`."""
        value = PendingRow()
        value.stored = stored
        return value

    def encode_pending(self) -> None:
        """Make bytes of the rows that the chunk has changed."""
        for key, value in list(self._overlay.writes.items()):
            if isinstance(value, PendingRow):
                self._overlay.put(key, self.encode(value.stored, is_static=False))

    def decode(self, value: bytes, *, is_static: bool) -> StoredRow:
        if isinstance(value, PendingRow):
            return value.stored
        check_version(value)
        try:
            row_sequence, position = read_unsigned_vint(value, 1)
            number, position = read_unsigned_vint(value, position)
            row, _ = read_row(value, position, self._header(number), is_static=is_static)
        except FormatError as error:
            raise CdcError(
                Code.STATE_DAMAGED,
                f"A stored row of table id {self._table_id.hex()} can't be read: {error}.",
                "Delete the local state of this raw partition: it is restored from the checkpoint location.",
            ) from error
        return StoredRow(row, row_sequence)

    def _header(self, number: int) -> SerializationHeader:
        header = self._headers.get(number)
        if header is None:
            digest = self._overlay.get(schema_key(number))
            assert digest is not None, f"state refers to schema {number}, which it does not hold"
            header = SerializationHeader.of_table(
                with_dropped_columns(self._catalog.schema(self._table_id, digest[1:]))
            )
            self._headers[number] = header
        return header

    def _newest_number(self) -> int:
        """The number of the newest schema; it is given one when first used."""
        if self._number is None:
            number = 0
            while (stored := self._overlay.get(schema_key(number))) is not None and stored[1:] != self._newest:
                number += 1
            if stored is None:
                self._overlay.put(schema_key(number), _VERSION + self._newest)
            self._number = number
        return self._number


class PartitionState:
    """PartitionState: a partition's facts, range tombstones and static row as a chunk reads and changes them.

    Its rows are not held here: each is read and written by itself, so that the cost of an update does not grow with
    the partition.
    """

    __slots__ = ("_codec", "_overlay", "_queues", "_ranges", "facts", "prefix", "static", "static_key")

    def __init__(self, overlay: Overlay, codec: RowCodec, queues: Queues, partition_key: bytes) -> None:
        self._overlay = overlay
        self._codec = codec
        self._queues = queues
        self.prefix = partition_prefix(partition_key)
        facts = overlay.get(self.prefix + FACTS_SECTION)
        self.facts = PartitionFacts() if facts is None else decode_facts(facts)
        self.static_key = self.prefix + STATIC_SECTION
        static = overlay.get(self.static_key)
        self.static = None if static is None else codec.decode(static, is_static=True).row
        self._ranges: list[DeletedRange] | None = None

    @property
    def ranges(self) -> list[DeletedRange]:
        """The range tombstones, disjoint and in order."""
        if not self.facts.has_ranges:
            return []
        if self._ranges is None:
            start = self.prefix + RANGES_SECTION
            pairs = self._overlay.scan(start, self.static_key)
            self._ranges = [decode_range(key[len(start) :], value) for key, value in pairs]
        return self._ranges

    def put_facts(self, facts: PartitionFacts) -> None:
        """Facts that say nothing are not stored."""
        if facts == self.facts:
            return
        key = self.prefix + FACTS_SECTION
        self._queues.move_purge(key, deletion_second(self.facts.deletion), deletion_second(facts.deletion))
        self._overlay.put(key, None if facts == _NO_FACTS else encode_facts(facts))
        self.facts = facts

    def put_static(self, row: Row | None, moment: Moment) -> None:
        """Replace the static row; an empty one is none."""
        if row is not None and row.is_empty:
            row = None
        if row != self.static:
            value = None if row is None else self._codec.encode(StoredRow(row, 0), is_static=True)
            self._overlay.put(self.static_key, value)
        elif moment.before == moment.after:
            return
        self._queues.move(self.static_key, row_times(self.static, moment.before), row_times(row, moment.after))
        self.static = row

    def put_row(self, key: bytes, before: StoredRow | None, after: StoredRow | None, moment: Moment) -> None:
        """Replace the row at `key`, which was `before`."""
        if before != after:
            self._overlay.put(key, None if after is None else self._codec.pending(after))
        elif moment.before == moment.after:
            return
        self._queues.move(
            key,
            row_times(None if before is None else before.row, moment.before),
            row_times(None if after is None else after.row, moment.after),
        )

    def renumber(self, sequences: Mapping[bytes | None, int]) -> None:
        """Give rows, by their clustering's key, other row_sequences; None is the row that stands for the partition."""
        for clustering_key, row_sequence in sequences.items():
            if clustering_key is None:
                self.put_facts(self.facts._replace(static_sequence=row_sequence))
                continue
            key = self.prefix + ROWS_SECTION + clustering_key
            value = self._overlay.get(key)
            assert value is not None  # a row that has just changed
            stored = self._codec.decode(value, is_static=False)
            self._overlay.put(key, self._codec.pending(stored._replace(row_sequence=row_sequence)))

    def add_range(self, new: DeletedRange) -> None:
        """Add a range tombstone, at the cost of the pieces that it touches."""
        touched = touching(self.ranges, new)
        self._replace_ranges(touched, add_range(self.ranges[touched], new))

    def keep_ranges(self, is_kept: Callable[[DeletionTime], bool]) -> None:
        """Drop the pieces whose deletion is not to be kept."""
        kept = [piece for piece in self.ranges if is_kept(piece.deletion)]
        if len(kept) != len(self.ranges):
            self._replace_ranges(slice(0, len(self.ranges)), kept)

    def _replace_ranges(self, at: slice, pieces: list[DeletedRange]) -> None:
        """Put pieces into the place of others, and store the difference."""
        ranges = self.ranges
        before, after = set(ranges[at]), set(pieces)
        for piece in before - after:
            self._put_range(piece.first, piece, None)
        for piece in after - before:
            self._put_range(piece.first, None, piece)
        ranges[at] = pieces
        self._ranges = ranges
        self.put_facts(self.facts._replace(has_ranges=bool(ranges)))

    def _put_range(self, first: bytes, before: DeletedRange | None, after: DeletedRange | None) -> None:
        key = self.prefix + RANGES_SECTION + first
        self._overlay.put(key, None if after is None else encode_range(after))
        seconds = (None if piece is None else deletion_second(piece.deletion) for piece in (before, after))
        self._queues.move_purge(key, *seconds)


def with_dropped_columns(table: TableMetadata) -> TableMetadata:
    """The table as it is stored: cells of a dropped column that are newer than its drop stay, as in Cassandra, and
    are shown again if the column is added again.
    """
    present = {column.name for column in table.static_columns + table.regular_columns}
    dropped = [each.column for name, each in table.dropped_columns.items() if name not in present]
    if not dropped:
        return table
    statics = [column for column in dropped if column.kind is ColumnKind.STATIC]
    regulars = [column for column in dropped if column.kind is ColumnKind.REGULAR]
    return replace(
        table,
        static_columns=in_order([*table.static_columns, *statics]),
        regular_columns=in_order([*table.regular_columns, *regulars]),
    )


def check_version(value: bytes) -> None:
    """CdcError(STATE_FORMAT) for a value of a newer build."""
    if value[:1] != _VERSION:
        raise CdcError(
            Code.STATE_FORMAT,
            f"The state holds a value of format version {value[0] if value else 'none'}; this build reads version "
            f"{FORMAT_VERSION}.",
            "Run the newer version of the materializer that wrote it.",
        )


def encode_facts(facts: PartitionFacts) -> bytes:
    return _FACTS.pack(FORMAT_VERSION, *facts.deletion, *facts[1:])


def decode_facts(value: bytes) -> PartitionFacts:
    check_version(value)
    _, marked, local, *rest = _FACTS.unpack(value)
    return PartitionFacts(DeletionTime(marked, local), *rest)


def encode_range(piece: DeletedRange) -> bytes:
    """The value of a range tombstone; its first clustering is in the key."""
    return _RANGE.pack(FORMAT_VERSION, *piece.deletion) + piece.last


def decode_range(first: bytes, value: bytes) -> DeletedRange:
    check_version(value)
    _, marked, local = _RANGE.unpack_from(value)
    return DeletedRange(first, value[_RANGE.size :], DeletionTime(marked, local))
