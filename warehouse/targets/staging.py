"""What is staged of rows: the warehouse's own columns, and those of the table that the rows have."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa

from warehouse.records import KEY_BYTES
from warehouse.tables.columns import taken_columns
from warehouse.tables.forms import CHANGED_AT, KEY, OFFSET, OP, PARTITION, SEQUENCE
from warehouse.tables.types import Limits, staged_type

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from warehouse.records import Column, Rows
    from warehouse.tables.forms import Form
    from warehouse.tables.types import Dialect

_OWN = ((KEY, "UUID"), (SEQUENCE, "BIGINT"), (OP, "TEXT"))
_OWN_OF_PLACE = ((PARTITION, "INTEGER"), (OFFSET, "BIGINT"))
_CHANGED_AT = (CHANGED_AT, "TIMESTAMPTZ")
_TIMES = Limits(-2_440_588 * 86_400_000_000, 2**63 - 1)
"""The times that both warehouses have. Cassandra takes any number as a time of a write."""
_UTC_US = pa.timestamp("us", "UTC")


class Staged(NamedTuple):
    """A column of rows that are staged."""

    # The column's name.
    name: str
    # Its type in the staging.
    type: str
    # The values.
    values: pa.Array


def own_columns(form: Form) -> tuple[tuple[str, str], ...]:
    """The names and types of the warehouse's own columns in the staging."""
    if form.marks_deleted:
        return (*_OWN, _CHANGED_AT)
    return (*_OWN, *_OWN_OF_PLACE, _CHANGED_AT) if form.keeps_all else _OWN


def staged_columns(rows: Rows, columns: Sequence[Column], form: Form, dialect: Dialect) -> list[Staged]:
    """The columns of rows. Those of the table that the rows do not have are null."""
    own = [Staged(name, kind, own_values(rows, name)) for name, kind in own_columns(form)]
    return [*own, *row_columns(rows, columns, dialect)]


def row_columns(rows: Rows, columns: Sequence[Column], dialect: Dialect) -> Iterator[Staged]:
    """The columns of the table that rows have."""
    for column, field in taken_columns(columns, rows.values.schema.names):
        yield Staged(column.name, staged_type(column.type, dialect), rows.values.column(field))


def key_values(rows: Rows) -> pa.Array:
    """The `_key` of each row."""
    return pa.array(rows.keys, pa.binary(KEY_BYTES))


def own_values(rows: Rows, name: str, times: Limits = _TIMES) -> pa.Array:
    """The values of one of the warehouse's own columns. times: those that it can have."""
    match name:
        case "_key":
            return key_values(rows)
        case "_sequence":
            return pa.array(rows.sequences, pa.int64())
        case "_op":
            return pa.array(rows.ops, pa.string())
        case "_partition":
            return pa.repeat(pa.scalar(rows.partition, pa.int32()), len(rows))
        case "_offset":
            return pa.array(rows.offsets, pa.int64())
    return pa.array([min(max(at, times.first), times.end - 1) for at in rows.times_us], pa.int64()).cast(_UTC_US)
