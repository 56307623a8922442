"""What is held of a partition, and how it is stored: PartitionState and the values behind materializer.rows.keys.

Rows are in Cassandra's own serialization under a header made from a table schema, to which the value refers by number.
"""

from __future__ import annotations

import struct
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from cassandra_storage.deletion import LIVE, DeletionTime
from cassandra_storage.errors import FormatError
from cassandra_storage.header import SerializationHeader
from cassandra_storage.rows import Row
from cassandra_storage.schema import ColumnKind
from cassandra_storage.schema_rows import in_order
from cassandra_storage.unfiltered import read_row, write_row
from cassandra_storage.vint import read_unsigned_vint, write_unsigned_vint
from cdc_program.errors import CdcError, Code
from materializer.rows.budget import row_size
from materializer.rows.expiry import deletion_second, row_times
from materializer.rows.format_version import FORMAT_VERSION, VERSION_BYTE, check_version
from materializer.rows.keys import (
    FACTS_SECTION,
    FLOOR,
    ROWS_SECTION,
    STATIC_SECTION,
    partition_prefix,
    schema_key,
)
from materializer.rows.range_tombstones import PartitionRanges

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cassandra_storage.schema import TableMetadata
    from materializer.rows.catalog import TableCatalog
    from materializer.rows.expiry import Moment
    from materializer.rows.overlay import Overlay
    from materializer.rows.timers import Queues

_FACTS = struct.Struct(">BqqQQ?")


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
        return VERSION_BYTE + write_unsigned_vint(stored.row_sequence) + write_unsigned_vint(number) + row

    def pending(self, stored: StoredRow) -> PendingRow:
        """The value of a regular row until `encode_pending`."""
        value = PendingRow()
        value.stored = stored
        return value

    def size(self, value: bytes) -> int:
        """About how many bytes a stored row has."""
        return row_size(value.stored.row) if isinstance(value, PendingRow) else len(value)

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
                self._overlay.put(schema_key(number), VERSION_BYTE + self._newest)
            self._number = number
        return self._number


def renumbered(value: bytes, numbers: Mapping[int, int]) -> bytes:
    """The value of a row or a static row that refers to its schema by another number: that of another state."""
    check_version(value)
    _, start = read_unsigned_vint(value, 1)
    number, end = read_unsigned_vint(value, start)
    return value[:start] + write_unsigned_vint(numbers[number]) + value[end:]


class PartitionState:
    """PartitionState: a partition's facts and static row as a chunk reads and changes them.

    Its rows and range tombstones are not held here: each is read and written by itself, so that the cost of an update
    does not grow with the partition.
    """

    __slots__ = ("_codec", "_overlay", "_queues", "facts", "prefix", "ranges", "static", "static_key")

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
        self.ranges = PartitionRanges(overlay, queues, self.prefix)

    def ranged_deletion(self, clustering_key: bytes) -> DeletionTime:
        """The deletion of the range tombstone that is over a row; LIVE if there is none."""
        return self.ranges.covering(clustering_key) if self.facts.has_ranges else LIVE

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


def encode_facts(facts: PartitionFacts) -> bytes:
    return _FACTS.pack(FORMAT_VERSION, *facts.deletion, *facts[1:])


def decode_facts(value: bytes) -> PartitionFacts:
    check_version(value)
    _, marked, local, *rest = _FACTS.unpack(value)
    return PartitionFacts(DeletionTime(marked, local), *rest)
