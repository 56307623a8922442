"""PostgreSQL's binary COPY in Python: the oracle of cdc_native.avro.postgresql."""

from __future__ import annotations

import struct
import uuid
from typing import TYPE_CHECKING, Any

import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Container

_DAYS, _MICROS = 10_957, 946_684_800_000_000


def copy_rows(rows: pa.RecordBatch, uuids: Container[int] = ()) -> bytes:
    """The bytes of a whole COPY."""
    columns = [_values(column) for column in rows.columns]
    out = [b"PGCOPY\n\xff\r\n\0", bytes(8)]
    for row in range(rows.num_rows):
        out.append(struct.pack(">h", len(columns)))
        for number, (column, values) in enumerate(zip(rows.columns, columns, strict=True)):
            data = None if values[row] is None else _field(values[row], column.type, is_uuid=number in uuids)
            out.append(struct.pack(">i", -1 if data is None else len(data)) + (data or b""))
    return b"".join([*out, b"\xff\xff"])


def _values(column: pa.Array) -> list[Any]:
    """The values, and numbers in the place of dates and times."""
    kind = column.type
    if pa.types.is_date32(kind):
        column = column.cast(pa.int32())
    elif pa.types.is_timestamp(kind) or pa.types.is_time64(kind):
        column = column.cast(pa.int64())
    found: list[Any] = column.to_pylist()
    return found


def _field(value: Any, kind: pa.DataType, *, is_uuid: bool) -> bytes:  # noqa: ANN401, PLR0911 - of any type; a case for each kind
    if isinstance(value, bool):
        return bytes([value])
    if isinstance(value, bytes):
        return value
    if isinstance(value, str):
        return uuid.UUID(value).bytes if is_uuid else value.encode()
    if isinstance(value, float):
        return struct.pack(">f" if pa.types.is_float32(kind) else ">d", value)
    if pa.types.is_timestamp(kind):
        return struct.pack(">q", value - _MICROS)
    if pa.types.is_date32(kind):
        return struct.pack(">i", value - _DAYS)
    return struct.pack(">i" if pa.types.is_int32(kind) else ">q", value)
