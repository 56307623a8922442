"""Rows as MergeOracle.java reads and writes them: its head tells the layout."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from cassandra_storage.formats.rows.deletion import DeletionTime, LivenessInfo, RowDeletion
from cassandra_storage.formats.rows.row import Cell, ColumnData, ComplexColumnData, Row
from cassandra_storage.formats.schema.tables import ColumnKind, ColumnMetadata
from cassandra_storage.formats.types.marshal import ListType, MapType, NativeType, SetType, UserType

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cassandra_storage.formats.types.marshal import CqlType

TEXT, INT, COUNTER_TYPE = NativeType("text"), NativeType("int"), NativeType("counter")
SET = SetType(TEXT, is_multi_cell=True)
MAP = MapType(INT, TEXT, is_multi_cell=True)
LIST = ListType(TEXT, is_multi_cell=True)
DECIMAL_SET = SetType(NativeType("decimal"), is_multi_cell=True)
DOUBLE_MAP = MapType(NativeType("double"), INT, is_multi_cell=True)
USER_TYPE = UserType("ks", "u", ("f0", "f1", "f2"), (INT, TEXT, INT), is_multi_cell=True)
_COMPLEX: tuple[CqlType, ...] = (SET, MAP, LIST, DECIMAL_SET, DOUBLE_MAP, USER_TYPE)

_HEAD = struct.Struct(">Bqiqqq?B")
_DELETION = struct.Struct(">qq")
_CELL = struct.Struct(">qiq")
_LENGTH = struct.Struct(">i")
_COUNT = struct.Struct(">H")
_NO_PATH = _LENGTH.pack(-1)


class MergedTable(NamedTuple):
    """One of the oracle's tables."""

    # Its number there.
    number: int
    # The columns, by name.
    columns: Mapping[str, ColumnMetadata]
    # Whether they are counters.
    is_counter: bool = False


class Merge(NamedTuple):
    """One merge."""

    # `r` for a merge as a read does it, `w` for one as a memtable does it.
    how: str
    # The index of the active deletion in the request; a memtable's merge does not use it.
    active: int
    # The indexes of the rows in the request's pool.
    rows: tuple[int, ...]


def _columns(types: Sequence[CqlType], kind: ColumnKind) -> dict[str, ColumnMetadata]:
    return {f"c{index}": ColumnMetadata(f"c{index}", type_, kind) for index, type_ in enumerate(types)}


REGULAR = MergedTable(0, _columns((TEXT, INT, ListType(TEXT, is_multi_cell=False), *_COMPLEX), ColumnKind.REGULAR))
STATIC = MergedTable(1, _columns((TEXT, *_COMPLEX), ColumnKind.STATIC))
COUNTER = MergedTable(2, _columns((COUNTER_TYPE, COUNTER_TYPE), ColumnKind.REGULAR), is_counter=True)
TABLES = (REGULAR, STATIC, COUNTER)


def write_request(
    table: MergedTable, pool: Sequence[Row], active: Sequence[DeletionTime], merges: Sequence[Merge]
) -> bytes:
    parts = [bytes((table.number,)), _COUNT.pack(len(pool)), *map(write_row, pool), _COUNT.pack(len(active))]
    parts += [_DELETION.pack(*deletion) for deletion in active]
    parts.append(_LENGTH.pack(len(merges)))
    for merge in merges:
        layout = f">cHB{len(merge.rows)}H"
        parts.append(struct.pack(layout, merge.how.encode(), merge.active, len(merge.rows), *merge.rows))
    return b"".join(parts)


def write_row(row: Row) -> bytes:
    if row.is_empty:
        return b"\0"
    parts = [_HEAD.pack(1, *row.liveness, *row.deletion.time, row.deletion.is_shadowable, len(row.columns))]
    for name in sorted(row.columns):
        data = row.columns[name]
        parts.append(bytes((int(name[1:]),)))
        if isinstance(data, Cell):
            parts.append(_write_cell(data))
        else:
            parts += (_DELETION.pack(*data.deletion), _COUNT.pack(len(data.cells)), *map(_write_cell, data.cells))
    return b"".join(parts)


def _write_cell(cell: Cell) -> bytes:
    path = _NO_PATH if cell.path is None else _LENGTH.pack(len(cell.path)) + cell.path
    fixed = _CELL.pack(cell.timestamp, cell.ttl, cell.local_deletion_time)
    return b"".join((fixed, path, _LENGTH.pack(len(cell.value)), cell.value))


class RowReader:
    """Reads rows one after the other from an answer."""

    def __init__(self, answer: bytes) -> None:
        self._answer = answer
        self._at = 0

    @property
    def at_end(self) -> bool:
        return self._at == len(self._answer)

    def row(self, table: MergedTable) -> Row:
        """An empty one for none."""
        if not self._answer[self._at]:
            self._at += 1
            return Row((), {})
        _, timestamp, ttl, expiration, marked, seconds, is_shadowable, count = self._read_bytes(_HEAD)
        columns: dict[str, ColumnData] = {}
        for _ in range(count):
            name = f"c{self._answer[self._at]}"
            self._at += 1
            columns[name] = self._complex() if is_complex(table.columns[name].type) else self._cell()
        liveness = LivenessInfo(timestamp, ttl, expiration)
        return Row((), columns, liveness, RowDeletion(DeletionTime(marked, seconds), bool(is_shadowable)))

    def _complex(self) -> ComplexColumnData:
        deletion = DeletionTime(*self._read_bytes(_DELETION))
        (count,) = self._read_bytes(_COUNT)
        return ComplexColumnData(deletion, tuple(self._cell() for _ in range(count)))

    def _cell(self) -> Cell:
        timestamp, ttl, seconds = self._read_bytes(_CELL)
        path, value = self._bytes(), self._bytes()
        return Cell(timestamp, value or b"", seconds, ttl, path)

    def _bytes(self) -> bytes | None:
        (length,) = self._read_bytes(_LENGTH)
        if length < 0:
            return None
        start, self._at = self._at, self._at + length
        return self._answer[start : self._at]

    def _read_bytes(self, layout: struct.Struct) -> tuple[int, ...]:
        start, self._at = self._at, self._at + layout.size
        return layout.unpack_from(self._answer, start)


def is_complex(type_: CqlType) -> bool:
    return type_ in _COMPLEX
