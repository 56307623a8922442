r"""Rows as the audit compares them: what the state shows and what SELECT shows, in Cassandra's serialization. Pure.

A unit is a row, or the static columns of a Cassandra partition. Units have keys, by which both sides are in the same
order: b"" for the static columns, then b"\\x01" and the byte-comparable clustering.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from cassandra_storage.formats.rows.clustering import Clustering
from cassandra_storage.formats.rows.row import Cell
from cassandra_storage.formats.schema.compact_tables import as_selected
from cassandra_storage.formats.types.cql_types import quoted_if_needed
from cassandra_storage.formats.types.marshal import ListType, MapType, SetType, UserType
from materializer.rows.row_image import RowImager

if TYPE_CHECKING:
    from collections.abc import Callable

    from cassandra_storage.formats.rows.row import Row
    from cassandra_storage.formats.schema.tables import ColumnMetadata, TableMetadata
    from cassandra_storage.formats.types.marshal import CqlType
    from cdc_common.messages.changes import ColumnImage

STATIC_UNIT = b""
ROW_UNIT = b"\x01"
_MAX_WRITE_TIME_SINCE = 5  # the release that has maxwritetime() for collections and user types
_NULL = b"\xff\xff\xff\xff"


class ShownCell(NamedTuple):
    """The value of a column that is not null."""

    # The value as SELECT serializes it.
    value: bytes
    # Its write time (µs), of a multi-cell value the largest; None if SELECT cannot tell.
    timestamp: int | None = None
    # The second at which it expires; None if it does not, or if SELECT cannot tell.
    expires: int | None = None


class Side(NamedTuple):
    """A unit as one side shows it."""

    # Whether the row is visible, or any of the static columns.
    is_there: bool
    # The columns that are not null, by name.
    cells: Mapping[str, ShownCell]


ABSENT = Side(is_there=False, cells={})


class SelectedUnit(NamedTuple):
    """One row, or the static columns of one Cassandra partition, as SELECT shows them."""

    # The token of the Cassandra partition.
    token: int
    # The serialized partition key.
    partition_key: bytes
    # The unit's key within the Cassandra partition, which sorts it.
    unit: bytes
    # The values of the clustering columns; None for the static columns.
    clustering: Clustering | None
    # The unit's columns.
    side: Side


class _Selected(NamedTuple):
    """A column in a SELECT: the positions of its value, its write time and its time to live."""

    name: str
    value: int
    timestamp: int | None
    ttl: int | None


class AuditedTable:
    """One table: the statements that read it, and the two sides of its units.

    release: of Cassandra, by which it can tell write times. unit_key: of a clustering.
    """

    def __init__(self, table: TableMetadata, release: str, clustering_key: Callable[[Clustering], bytes]) -> None:
        self.table = as_selected(table)
        self.columns = {column.name: column for column in self.table.static_columns + self.table.regular_columns}
        self._imager = RowImager(table, is_as_written=True)
        self._is_static_compact = table.is_static_compact
        self._has_max_write_time = int(release.split(".", maxsplit=1)[0]) >= _MAX_WRITE_TIME_SINCE
        self._clustering_key = clustering_key
        self._key_count = len(self.table.partition_key)
        self._clustering_end = 1 + self._key_count + len(self.table.clustering)
        self._selection: list[str] = []
        self._statics = [self._select(column) for column in self.table.static_columns]
        self._regulars = [self._select(column) for column in self.table.regular_columns]

    def range_query(self) -> str:
        """The rows with tokens from the first to the second value, both included."""
        token = self._token()
        return f"{self._query()} WHERE {token} >= ? AND {token} <= ?"

    def unit_query(self, *, is_static: bool) -> str:
        """One row by its primary key; the first row of a Cassandra partition for its static columns."""
        columns = self.table.partition_key if is_static else self.table.partition_key + self.table.clustering
        where = " AND ".join(f"{quoted_if_needed(column.name)} = ?" for column in columns)
        return f"{self._query()} WHERE {where}" + (" LIMIT 1" if is_static else "")

    def unit_key(self, clustering: Clustering | None) -> bytes:
        return STATIC_UNIT if clustering is None else ROW_UNIT + self._row_key(clustering)

    def selected_units(self, row: Sequence[bytes | None], second: int) -> list[SelectedUnit]:
        """The static columns, if any is not null, and the row, if there is one, of a row that SELECT gave at `second`
        (s since the epoch).
        """
        token = int.from_bytes(row[0] or b"", "big", signed=True)
        key = _partition_key([value or b"" for value in row[1 : 1 + self._key_count]])
        clustering = tuple(row[1 + self._key_count : self._clustering_end])
        found = []
        statics = _cells(self._statics, row, second)
        if statics:
            found.append(SelectedUnit(token, key, STATIC_UNIT, None, Side(is_there=True, cells=statics)))
        if not (self._statics and all(value is None for value in clustering)):
            side = Side(is_there=True, cells=_cells(self._regulars, row, second))
            found.append(SelectedUnit(token, key, self.unit_key(clustering), clustering, side))
        return found

    def state_side(self, row: Row | None, second: int, *, is_static: bool) -> Side:
        """A merged row of the state as SELECT would show it at `second`."""
        if row is None:
            return ABSENT
        if is_static or self._is_static_compact:
            image = self._imager.columns(row, second)
            is_there = bool(image)
        else:
            found = self._imager.image(row, second)
            image, is_there = dict(found or {}), found is not None
        cells = {name: self._state_cell(name, row, found, second) for name, found in image.items()}
        return Side(is_there, cells)

    def stored_unit_key(self, clustering_key: bytes, *, is_static: bool) -> bytes | None:
        """The unit of a stored row; None if SELECT shows nothing of it. The rows of static compact tables are stored as
        static rows.
        """
        if self._is_static_compact:
            return ROW_UNIT if is_static else None
        return STATIC_UNIT if is_static else ROW_UNIT + clustering_key

    def state_key(self, clustering: Clustering | None) -> bytes | None:
        """The clustering key of a unit's stored row; None if that is the static row."""
        return None if clustering is None or self._is_static_compact else self._clustering_key(clustering)

    def is_stored_static(self, unit: bytes) -> bool:
        return self._is_static_compact or unit == STATIC_UNIT

    def clustering_of(self, row: Row) -> Clustering:
        """The clustering as SELECT shows it."""
        return () if self._is_static_compact else row.clustering

    def _state_cell(self, name: str, row: Row, image: ColumnImage, second: int) -> ShownCell:
        data = row.columns[name]
        if isinstance(data, Cell):
            value = image if isinstance(image, bytes) else b""
            if self.table.is_counter:
                return ShownCell(value)
            return ShownCell(value, data.timestamp, data.local_deletion_time if data.is_expiring else None)
        assert not isinstance(image, bytes)
        value = whole_value(self.columns[name].type, image)
        if not self._has_max_write_time:
            return ShownCell(value)
        return ShownCell(value, max(cell.timestamp for cell in data.cells if cell.is_live(second)))

    def _row_key(self, clustering: Clustering) -> bytes:
        return b"" if self._is_static_compact else self._clustering_key(clustering)

    def _token(self) -> str:
        return f"token({', '.join(quoted_if_needed(column.name) for column in self.table.partition_key)})"

    def _query(self) -> str:
        keys = [quoted_if_needed(column.name) for column in self.table.partition_key + self.table.clustering]
        columns = ", ".join([self._token(), *keys, *self._selection])
        keyspace, name = quoted_if_needed(self.table.keyspace), quoted_if_needed(self.table.name)
        return f"SELECT {columns} FROM {keyspace}.{name}"  # noqa: S608 - names, quoted

    def _select(self, column: ColumnMetadata) -> _Selected:
        """Add the column to the selection. Counters have a time for each shard, which SELECT does not show."""
        name = quoted_if_needed(column.name)
        value = self._add(name)
        if self.table.is_counter:
            return _Selected(column.name, value, None, None)
        if column.is_complex:
            timestamp = self._add(f"maxwritetime({name})") if self._has_max_write_time else None
            return _Selected(column.name, value, timestamp, None)
        return _Selected(column.name, value, self._add(f"writetime({name})"), self._add(f"ttl({name})"))

    def _add(self, selector: str) -> int:
        self._selection.append(selector)
        return self._clustering_end + len(self._selection) - 1


def _cells(columns: Sequence[_Selected], row: Sequence[bytes | None], second: int) -> dict[str, ShownCell]:
    found = {}
    for name, at, timestamp_at, ttl_at in columns:
        value = row[at]
        if value is not None:
            timestamp = None if timestamp_at is None else row[timestamp_at]
            ttl = None if ttl_at is None else row[ttl_at]
            found[name] = ShownCell(
                value,
                None if timestamp is None else int.from_bytes(timestamp, "big", signed=True),
                None if ttl is None else second + int.from_bytes(ttl, "big", signed=True),
            )
    return found


def _partition_key(values: Sequence[bytes]) -> bytes:
    if len(values) == 1:
        return values[0]
    return b"".join(len(value).to_bytes(2, "big") + value + b"\x00" for value in values)


def whole_value(type_: CqlType, pairs: Sequence[tuple[bytes, bytes]]) -> bytes:
    """A multi-cell value as the native protocol has it (CollectionType, UserType: serializeForNativeProtocol).

    pairs: (path, value), in path order.
    """
    match type_:
        case ListType():
            parts = [value for _, value in pairs]
        case SetType():
            parts = [path for path, _ in pairs]
        case MapType():
            parts = [part for pair in pairs for part in pair]
        case UserType():
            fields = {int.from_bytes(path, "big"): value for path, value in pairs}
            return b"".join(_sized(fields.get(number)) for number in range(len(type_.field_names)))
        case _:
            raise ValueError("only a collection or a user type has several cells")
    return len(pairs).to_bytes(4, "big") + b"".join(map(_sized, parts))


def _sized(value: bytes | None) -> bytes:
    return _NULL if value is None else len(value).to_bytes(4, "big") + value
