"""Objects: files of rows that a warehouse copies by itself. They are CSV of a strict dialect, or Parquet.

Booleans, integers and floats have their types; every other value is a text, which the warehouse casts. In CSV all are
texts: in quotes, with each quote doubled, and null is nothing at all. Decision 0109 has the dialect.
"""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Literal

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet as pq

from warehouse.tables.columns import taken_columns
from warehouse.tables.forms import CHANGED_AT, KEY, OFFSET, OP, PARTITION, SEQUENCE
from warehouse.targets.staging import own_values
from warehouse.targets.values import json_column

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from warehouse.records import Column, Rows
    from warehouse.tables.types import Dialect, Limits

ObjectForm = Literal["csv", "parquet"]
OWN: tuple[tuple[str, str], ...] = (
    (KEY, "UUID"),
    (SEQUENCE, "BIGINT"),
    (OP, "TEXT"),
    (PARTITION, "INTEGER"),
    (OFFSET, "BIGINT"),
    (CHANGED_AT, "TIMESTAMPTZ"),
)
"""The first columns of every object, with PostgreSQL's types."""
TYPED = frozenset({"BOOLEAN", "INTEGER", "BIGINT", "REAL", "DOUBLE PRECISION", "DOUBLE", "FLOAT"})
"""The types of columns that objects have as they are."""
_GROUP_ROWS = 131_072


def write_object(rows: pa.Table, form: ObjectForm) -> bytes:
    """The bytes of an object."""
    out = io.BytesIO()
    if form == "parquet":
        pq.write_table(rows, out, compression="zstd", store_schema=False, row_group_size=_GROUP_ROWS)
    else:
        options = pyarrow.csv.WriteOptions(include_header=False, quoting_style="all_valid")
        pyarrow.csv.write_csv(_with_plain_floats(rows), out, options)
    return out.getvalue()


def read_object(data: bytes, form: ObjectForm, names: Sequence[str]) -> pa.Table:
    """The rows of an object; those of CSV as texts."""
    if form == "parquet":
        return pq.read_table(io.BytesIO(data))
    return pyarrow.csv.read_csv(
        io.BytesIO(data),
        pyarrow.csv.ReadOptions(column_names=list(names), block_size=max(len(data), 1)),
        pyarrow.csv.ParseOptions(newlines_in_values=True, ignore_empty_lines=False),
        pyarrow.csv.ConvertOptions(
            column_types=dict.fromkeys(names, pa.string()),
            null_values=[""],
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
        ),
    )


def object_rows(found: Iterable[Rows], columns: Sequence[Column], fields: Sequence[str], dialect: Dialect) -> pa.Table:
    """Rows as an object has them. columns: those of the fields."""
    kinds = {field: column.type for column, field in taken_columns(columns, fields)}
    return pa.concat_tables([_table(rows, kinds, fields, dialect.micros) for rows in found])


def object_type(kind: str, dialect: Dialect) -> str:
    """The type of a column in the table that objects are copied into."""
    return kind if kind in TYPED else dialect.own_type("TEXT")


def _table(rows: Rows, kinds: dict[str, str], fields: Sequence[str], limits: Limits) -> pa.Table:
    own = [object_values(own_values(rows, name, limits), kind) for name, kind in OWN]
    there = set(rows.values.schema.names)
    values = [
        object_values(rows.values.column(name), kinds[name])
        if name in there and name in kinds
        else pa.nulls(len(rows), _arrow_type(kinds.get(name, "TEXT")))
        for name in fields
    ]
    return pa.table([*own, *values], names=[*(name for name, _ in OWN), *fields])


_ARROW_TYPES = {
    "BOOLEAN": pa.bool_(),
    "INTEGER": pa.int32(),
    "BIGINT": pa.int64(),
    "REAL": pa.float32(),
    "FLOAT": pa.float64(),
    "DOUBLE": pa.float64(),
    "DOUBLE PRECISION": pa.float64(),
}


def _arrow_type(kind: str) -> pa.DataType:
    return _ARROW_TYPES.get(kind, pa.string())


def object_values(values: pa.Array, kind: str) -> pa.Array:
    """The values of a column of this type."""
    wanted = _arrow_type(kind)
    if wanted != pa.string() or pa.types.is_string(values.type):
        return values.cast(wanted)
    return _texts(values, kind)


def _texts(values: pa.Array, kind: str) -> pa.Array:  # noqa: PLR0911 - a case for each kind
    found = values.type
    if pa.types.is_nested(found):
        return json_column(values)
    if pa.types.is_fixed_size_binary(found) and kind == "UUID":
        return pa.array([None if value is None else _uuid(value.hex()) for value in values.to_pylist()], pa.string())
    if pa.types.is_binary(found) or pa.types.is_fixed_size_binary(found):
        return pa.array([None if value is None else value.hex() for value in values.to_pylist()], pa.string())
    if pa.types.is_decimal(found):
        # Arrow's own texts of small numbers have exponents.
        return pa.array([None if value is None else f"{value:f}" for value in values.to_pylist()], pa.string())
    if pa.types.is_timestamp(found):
        texts = values.cast(pa.timestamp("us", found.tz)).cast(pa.string())
        return texts if found.tz is None else pc.replace_substring(texts, "Z", "+00:00")
    if pa.types.is_time(found):
        return values.cast(pa.time64("us")).cast(pa.string())
    return values.cast(pa.string())


def _uuid(digits: str) -> str:
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"


def _with_plain_floats(rows: pa.Table) -> pa.Table:
    """The floats as texts: Arrow writes `nan`."""
    for number, field in enumerate(rows.schema):
        if pa.types.is_floating(field.type):
            texts = rows.column(number).cast(pa.string())
            rows = rows.set_column(number, field.name, pc.replace_substring(texts, "nan", "NaN"))
    return rows
