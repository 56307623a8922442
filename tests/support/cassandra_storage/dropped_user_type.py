"""A table of 3.11 from which a column of a non-frozen user type was dropped, and what was written to it before."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING
from uuid import UUID

from cassandra_storage.formats.primitives.vint import write_int, write_sized
from cassandra_storage.formats.rows.deletion import DeletionTime, LivenessInfo
from cassandra_storage.formats.rows.header import EncodingStats, SerializationHeader, write_stats
from cassandra_storage.formats.rows.row import Cell, ComplexColumnData, Row
from cassandra_storage.formats.rows.unfiltered import write_row
from cassandra_storage.formats.schema.tables import ColumnKind, ColumnMetadata, DroppedColumn, TableMetadata
from cassandra_storage.formats.types.marshal import MapType, NativeType, TupleType, UserType
from cassandra_storage.formats.versions import VERSION_3014

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from cassandra_storage.formats.rows.row import ColumnData

INT, TEXT = NativeType("int"), NativeType("text")
FIELDS = (INT, TEXT)
USER_TYPE = UserType("ks", "pair", ("x", "y"), FIELDS, is_multi_cell=True)
MAP = ColumnMetadata("v", MapType(INT, TEXT, is_multi_cell=True), ColumnKind.REGULAR)
DROPPED_AT = 1_700_000_000_000_000
NEWER = DROPPED_AT + 1_000_000
BEFORE = TableMetadata(
    "ks",
    "t",
    UUID(int=9),
    (ColumnMetadata("k", INT, ColumnKind.PARTITION_KEY, 0),),
    regular_columns=(
        ColumnMetadata("a", INT, ColumnKind.REGULAR),
        ColumnMetadata("u", USER_TYPE, ColumnKind.REGULAR),
        MAP,
    ),
)
TUPLE = ColumnMetadata("u", TupleType(FIELDS), ColumnKind.REGULAR)
AFTER = replace(
    BEFORE,
    regular_columns=(BEFORE.regular_columns[0], MAP),
    dropped_columns={"u": DroppedColumn(TUPLE, DROPPED_AT)},
    altered_at=2,
)
AGAIN = replace(AFTER, regular_columns=(AFTER.regular_columns[0], TUPLE, MAP), altered_at=3)


def insert(
    table: TableMetadata,
    fields: Sequence[bytes] = (),
    elements: Mapping[int, str] | None = None,
    *,
    value: bytes | None = None,
    more: Mapping[str, bytes] | None = None,
    timestamp: int = NEWER,
) -> bytes:
    """A mutation of one row, as 3.11 writes an INSERT: with `fields` of a non-frozen user type in the column u, or with
    `value` for it as one cell, with `elements` of the map v, and `more` single cells; with a value of a if the table
    has it.
    """
    deletion = DeletionTime(timestamp - 1, timestamp // 1_000_000)
    names = {column.name for column in table.regular_columns}
    columns: dict[str, ColumnData] = {"a": Cell(timestamp, b"\0\0\0\7")} if "a" in names else {}
    columns |= {name: Cell(timestamp, value) for name, value in (more or {}).items()}
    if fields:
        cells = (Cell(timestamp, field, path=place.to_bytes(2, "big")) for place, field in enumerate(fields))
        columns["u"] = ComplexColumnData(deletion, tuple(cells))
    if value is not None:
        columns["u"] = Cell(timestamp, value)
    if elements is not None:
        written = (Cell(timestamp, text.encode(), path=key.to_bytes(4, "big")) for key, text in elements.items())
        columns["v"] = ComplexColumnData(deletion, tuple(written))
    used = replace(
        table,
        regular_columns=tuple(
            regular_column for regular_column in table.regular_columns if regular_column.name in columns
        ),
    )
    stats = EncodingStats(timestamp - 1, timestamp // 1_000_000, 0)
    header = SerializationHeader.of_table(used, stats, VERSION_3014)
    start = table.id.bytes + write_sized(b"\0\0\0\1") + b"\x10" + write_stats(header.stats)
    row = write_row(Row((), columns, LivenessInfo(timestamp)), header)
    return write_int(1) + start + header.regular_columns.raw + b"\x01" + row + b"\x01"


def joined(*mutations: bytes) -> bytes:
    """One mutation of the updates of several."""
    return write_int(len(mutations)) + b"".join(mutation[1:] for mutation in mutations)
