"""The header of an update for all its rows (org.apache.cassandra.db.SerializationHeader, Columns, rows.EncodingStats).

Layout for messaging: timestamp, local deletion time and TTL that the rows' values are deltas of, then the names of the
static columns (only if there is a static row) and of the regular columns. Names are resolved in the table at hand.
"""

from __future__ import annotations

from typing import NamedTuple

from cassandra_storage.formats.errors import FormatError, UnknownColumnError
from cassandra_storage.formats.primitives.vint import (
    SIZES,
    read_int,
    read_sized,
    read_unsigned_vint,
    write_int,
    write_sized,
    write_unsigned_vint,
)
from cassandra_storage.formats.rows.clustering_prefix import VARIABLE
from cassandra_storage.formats.rows.deletion import LIVE, NO_DELETION_TIME, NO_TIMESTAMP, DeletionTime
from cassandra_storage.formats.schema.tables import ColumnKind, ColumnMetadata, TableMetadata
from cassandra_storage.formats.types.marshal import NativeType, fixed_length
from cassandra_storage.formats.versions import NO_DELETION_TIMES, VERSION_50, MessagingFormat, messaging_format

_COUNTER = NativeType("counter")
_TIMESTAMP_EPOCH = 1_442_880_000_000_000  # EncodingStats: 2015-09-22 00:00 UTC, µs
_DELETION_TIME_EPOCH = 1_442_880_000  # the same, s
_INVALID_DELETION_TIME = 2**32 - 2  # Cell.INVALID_DELETION_TIME, s
_NEVER = NO_TIMESTAMP - 1  # before every timestamp
_LONG = 1 << 64
_CACHED_SUBSETS = 1024  # of one list of columns
_CACHED_LISTS = 1024  # of one table
_LARGE = 64  # from so many columns on a subset is written as a list of indexes


class EncodingStats(NamedTuple):
    """EncodingStats: the bases of the deltas that stand for times and TTLs."""

    # The base of timestamps, in µs.
    min_timestamp: int = _TIMESTAMP_EPOCH
    # The base of local deletion times, in s since the epoch.
    min_local_deletion_time: int = _DELETION_TIME_EPOCH
    # The base of TTLs, in s.
    min_ttl: int = 0


NO_STATS = EncodingStats()


class ColumnLayout(NamedTuple):
    """The facts needed to read a column's cells."""

    # The column's name.
    name: str
    # Whether it has several cells: it is a non-frozen collection or user type.
    is_complex: bool
    # The bytes of its values if fixed, otherwise VARIABLE.
    length: int
    # Cells written at or before this time (µs) are dropped.
    dropped_time: int
    # The name as headers contain it.
    raw: bytes
    # Whether it is a counter.
    is_counter: bool


class Columns:
    """Columns: what an update's rows may hold, or one of them does, in the order of the header; `raw` as serialized.
    Made once and kept, by tables and, for subsets, by the columns that they are of.
    """

    __slots__ = ("_index", "_subsets", "layouts", "raw")

    def __init__(self, layouts: tuple[ColumnLayout, ...]) -> None:
        self.layouts = layouts
        self.raw = write_unsigned_vint(len(layouts)) + b"".join([layout.raw for layout in layouts])
        self._index: dict[str, int] = {}
        self._subsets: dict[int, Columns] = {}

    @property
    def index(self) -> dict[str, int]:
        """Return each column's place by its name."""
        if not self._index:
            self._index = {layout.name: index for index, layout in enumerate(self.layouts)}
        return self._index

    def read_subset(self, buf: bytes, pos: int) -> tuple[Columns, int]:
        """Columns.Serializer.deserializeSubset: a row's columns."""
        missing, end = read_unsigned_vint(buf, pos)
        if not missing:
            return self, end
        known = self._subsets.get(missing)
        if known is not None:
            return known, end
        count = len(self.layouts)
        if count >= _LARGE:
            return self._read_large(buf, end, count - missing)
        if missing >> count:
            raise FormatError("columns marked as missing that the header does not have", position=pos)
        if len(self._subsets) >= _CACHED_SUBSETS:
            self._subsets.clear()
        known = Columns(tuple([c for i, c in enumerate(self.layouts) if not missing >> i & 1]))
        self._subsets[missing] = known
        return known, end

    def _read_large(self, buf: bytes, pos: int, present: int) -> tuple[Columns, int]:
        """deserializeLargeSubset: indexes of the present columns if they are few, otherwise of the missing ones."""
        count = len(self.layouts)
        if present < 0:
            raise FormatError("more columns missing than the header has", position=pos)
        lists_present = present < count // 2
        listed: list[int] = []
        for _ in range(present if lists_present else count - present):
            index, pos = read_unsigned_vint(buf, pos)
            if index >= count or (listed and index <= listed[-1]):
                raise FormatError(f"column index {index} out of order or range", position=pos)
            listed.append(index)
        if not lists_present:
            missing = frozenset(listed)
            listed = [index for index in range(count) if index not in missing]
        return Columns(tuple([self.layouts[index] for index in listed])), pos

    def write_subset(self, present: list[int]) -> bytes:
        """Columns.Serializer.serializeSubset of columns given by rising index."""
        count = len(self.layouts)
        if len(present) == count:
            return b"\x00"
        if count < _LARGE:
            bitmap = (1 << count) - 1
            for index in present:
                bitmap ^= 1 << index
            return write_unsigned_vint(bitmap)
        listed = present if len(present) < count // 2 else sorted(set(range(count)).difference(present))
        return write_unsigned_vint(count - len(present)) + b"".join(map(write_unsigned_vint, listed))


NO_COLUMNS = Columns(())


class SerializationHeader(NamedTuple):
    """SerializationHeader: the facts that reading or writing the rows of one update needs."""

    # The bytes of each clustering column's values if fixed, otherwise VARIABLE (clustering_prefix).
    clustering_lengths: tuple[int, ...]
    # The static columns that the update may have.
    static_columns: Columns
    # The regular columns that the update may have.
    regular_columns: Columns
    # The bases of times and TTLs.
    stats: EncodingStats = NO_STATS
    # The serialization of the messaging version.
    format: MessagingFormat = messaging_format(VERSION_50)

    @classmethod
    def of_table(
        cls, table: TableMetadata, stats: EncodingStats = NO_STATS, messaging_version: int = VERSION_50
    ) -> SerializationHeader:
        """A header of all the table's columns, in the table's order."""
        codec = table_codec(table)
        return cls(
            codec.clustering_lengths,
            Columns(tuple(codec.layout(column) for column in table.static_columns)),
            Columns(tuple(codec.layout(column) for column in table.regular_columns)),
            stats,
            messaging_format(messaging_version),
        )


class TableCodec:
    """A table as updates' headers refer to it; it remembers the column lists it has met."""

    __slots__ = ("_known", "_latest", "_layouts", "clustering_lengths", "table")

    def __init__(self, table: TableMetadata) -> None:
        self.table = table
        self.clustering_lengths = tuple(_length(column) for column in table.clustering)
        columns = {name: dropped.column for name, dropped in table.dropped_columns.items()}
        columns.update((column.name, column) for column in table.static_columns + table.regular_columns)
        self._layouts = {
            name.encode(): (column.kind is ColumnKind.STATIC, self.layout(column)) for name, column in columns.items()
        }
        self._latest = [NO_COLUMNS, NO_COLUMNS]  # regular, static
        self._known: tuple[dict[bytes, Columns], dict[bytes, Columns]] = ({}, {})

    def layout(self, column: ColumnMetadata) -> ColumnLayout:
        dropped = self.table.dropped_columns.get(column.name)
        return ColumnLayout(
            column.name,
            column.is_complex,
            _length(column),
            _NEVER if dropped is None else dropped.dropped_time,
            write_sized(column.name.encode()),
            column.type == _COUNTER,
        )

    def known_layouts(self, *, is_static: bool) -> list[ColumnLayout]:
        """The layouts of all columns that updates may name, dropped ones included."""
        return [layout for kind_is_static, layout in self._layouts.values() if kind_is_static is is_static]

    def read_columns(self, buf: bytes, pos: int, *, is_static: bool) -> tuple[Columns, int]:
        """Columns.Serializer.deserialize. The bytes end themselves, so a list that they begin with is the one."""
        latest = self._latest[is_static]
        if buf.startswith(latest.raw, pos):
            return latest, pos + len(latest.raw)
        end = _skip_columns(buf, pos)
        known = self._known[is_static]
        raw = buf[pos:end]
        columns = known.get(raw)
        if columns is None:
            columns = self._resolve(buf, pos, is_static=is_static)
            if len(known) >= _CACHED_LISTS:
                known.clear()
            known[raw] = columns
        self._latest[is_static] = columns
        return columns, end

    def _resolve(self, buf: bytes, pos: int, *, is_static: bool) -> Columns:
        count, pos = read_unsigned_vint(buf, pos)
        layouts: dict[str, ColumnLayout] = {}
        for _ in range(count):
            start = pos
            name, pos = read_sized(buf, pos)
            kind_is_static, layout = self._layouts.get(name, (not is_static, None))
            if layout is None or kind_is_static is not is_static or layout.name in layouts:
                shown = name.decode(errors="replace")
                raise UnknownColumnError(f"unknown column {shown!r} of {self.table.qualified_name}", position=start)
            layouts[layout.name] = layout
        return Columns(tuple(layouts.values()))


def _skip_columns(buf: bytes, pos: int) -> int:
    count, pos = read_unsigned_vint(buf, pos)
    for _ in range(count):
        size = buf[pos]
        if size < 0x80:
            pos += 1 + size
        else:
            _, pos = read_sized(buf, pos)
    if pos > len(buf):
        raise FormatError("ends inside column names", position=len(buf))
    return pos


_CODECS: dict[int, TableCodec] = {}
_CACHED_CODECS = 4096


def table_codec(table: TableMetadata) -> TableCodec:
    """The codec of the table, made once for each TableMetadata object."""
    codec = _CODECS.get(id(table))
    if codec is None:  # the codec keeps its table alive, so no other table can take its id
        if len(_CODECS) >= _CACHED_CODECS:
            _CODECS.clear()
        codec = _CODECS[id(table)] = TableCodec(table)
    return codec


def _length(column: ColumnMetadata) -> int:
    length = fixed_length(column.type)
    return VARIABLE if length is None else length


def read_stats(buf: bytes, pos: int) -> tuple[EncodingStats, int]:
    """EncodingStats.Serializer.deserialize."""
    timestamp, pos = read_unsigned_vint(buf, pos)
    timestamp = _to_long(timestamp + _TIMESTAMP_EPOCH)
    deletion_time, pos = read_int(buf, pos)
    ttl, pos = read_int(buf, pos)
    if timestamp == NO_TIMESTAMP:
        timestamp = _TIMESTAMP_EPOCH
    return EncodingStats(timestamp, _to_int(deletion_time + _DELETION_TIME_EPOCH), ttl), pos


def write_stats(stats: EncodingStats) -> bytes:
    """EncodingStats.Serializer.serialize."""
    timestamp = (stats.min_timestamp - _TIMESTAMP_EPOCH) % _LONG
    return (
        write_unsigned_vint(timestamp)
        + write_int(stats.min_local_deletion_time - _DELETION_TIME_EPOCH)
        + write_int(stats.min_ttl)
    )


def read_timestamp(buf: bytes, pos: int, stats: EncodingStats) -> tuple[int, int]:
    """SerializationHeader.readTimestamp: µs; deltas wrap as signed 64-bit numbers."""
    delta, pos = read_unsigned_vint(buf, pos)
    return _to_long(delta + stats.min_timestamp), pos


def write_timestamp(timestamp: int, stats: EncodingStats) -> bytes:
    return write_unsigned_vint((timestamp - stats.min_timestamp) % _LONG)


def read_ttl(buf: bytes, pos: int, stats: EncodingStats) -> tuple[int, int]:
    """SerializationHeader.readTTL: s."""
    delta, end = read_int(buf, pos)
    ttl = _to_int(delta + stats.min_ttl)
    if ttl < 0:
        raise FormatError(f"invalid TTL {ttl}", position=pos)
    return ttl, end


def write_ttl(ttl: int, stats: EncodingStats) -> bytes:
    return write_int(ttl - stats.min_ttl)


def read_deletion_delta(buf: bytes, pos: int, header: SerializationHeader) -> tuple[int, int]:
    """SerializationHeader.readLocalDeletionTime, not yet decoded: negative where the version's range was exceeded.
    Before 5.0 the sum wraps as a signed 32-bit number.
    """
    delta, pos = read_int(buf, pos)
    value = delta + header.stats.min_local_deletion_time
    return value if header.format.has_unsigned_deletion_time else _to_int(value), pos


def decode_local_deletion_time(value: int, ttl: int, header: SerializationHeader) -> int:
    """Cell.decodeLocalDeletionTime: of a tombstone, an expiring cell or an expiring row liveness."""
    if value < 0:
        if not header.format.has_unsigned_deletion_time:
            return _INVALID_DELETION_TIME
        value &= 0xFFFFFFFF
        return NO_DELETION_TIME if value == header.format.no_deletion_time else value
    if value >= ttl or ttl == 0x7FFFFFFF:  # LivenessInfo.EXPIRED_LIVENESS_TTL
        return value
    return _INVALID_DELETION_TIME


def write_local_deletion_time(local_deletion_time: int, header: SerializationHeader) -> bytes:
    """SerializationHeader.writeLocalDeletionTime."""
    if local_deletion_time == NO_DELETION_TIME:
        local_deletion_time = header.format.no_deletion_time
    return write_int(local_deletion_time - header.stats.min_local_deletion_time)


def read_deletion_time(buf: bytes, pos: int, header: SerializationHeader) -> tuple[DeletionTime, int]:
    """SerializationHeader.readDeletionTime.

    DeletionTime.build takes what is negative for invalid in every version, though 5.0's writer makes it of times that
    are 2^31 s and more after the least of their update, and of all after 2038 if the least is too.
    """
    timestamp, pos = read_timestamp(buf, pos, header.stats)
    value, pos = read_deletion_delta(buf, pos, header)
    if timestamp == NO_TIMESTAMP and (value < 0 or value in NO_DELETION_TIMES):  # 5.0's mark is read as -1
        return LIVE, pos
    if value == header.format.no_deletion_time:
        return DeletionTime(timestamp, NO_DELETION_TIME), pos
    return DeletionTime(timestamp, _INVALID_DELETION_TIME if value < 0 else value), pos


def skip_deletion_time(buf: bytes, pos: int) -> int:
    """The position after the deletion time, which may lie past the buffer's end."""
    pos += SIZES[buf[pos]]
    return pos + SIZES[buf[pos]]


def write_deletion_time(deletion: DeletionTime, header: SerializationHeader) -> bytes:
    """SerializationHeader.writeDeletionTime."""
    return write_timestamp(deletion.marked_for_delete_at, header.stats) + write_local_deletion_time(
        deletion.local_deletion_time, header
    )


def _to_long(value: int) -> int:
    """The value as a signed 64-bit number, wrapped once."""
    return value - _LONG if value >= 1 << 63 else value


def _to_int(value: int) -> int:
    """The value as a signed 32-bit number."""
    return ((value + (1 << 31)) & 0xFFFFFFFF) - (1 << 31)
