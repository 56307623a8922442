"""Values as a warehouse takes them, JSON, and which values its types cannot hold."""

from __future__ import annotations

import json
import math
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from warehouse.records import Column
    from warehouse.tables.types import Dialect, Limits

_UNIT_MICROS = {"s": 1_000_000, "ms": 1_000, "us": 1}


def refused_values(values: pa.Array, column: Column, dialect: Dialect) -> tuple[pa.Array, str] | None:
    """Which values a column cannot hold, as an array of booleans, and why; None if it holds all."""
    found: tuple[pa.Array | None, str] = None, ""
    texts = {dialect.plain["string"], dialect.plain["json"]}
    if pa.types.is_string(values.type) and not dialect.holds_nul and column.type in texts:
        found = pc.match_substring(values, "\0"), "it has the character U+0000"
    limits = _limits(values.type, column, dialect)
    if limits is not None:
        numbers = values.cast(pa.int32() if pa.types.is_date(values.type) else pa.int64()).cast(pa.int64())
        low = pc.less(numbers, limits.first)
        found = pc.or_(low, pc.greater_equal(numbers, limits.end)), "the warehouse has no such date"
    if column.type == dialect.plain["uuid"]:
        found = (
            pc.invert(pc.match_substring_regex(values, "^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$")),
            ("it is no UUID"),
        )
    for refused, reason in (found, _too_long(values, dialect)):
        if refused is not None and pc.any(refused).as_py():
            return pc.fill_null(refused, False), reason
    return None


def _too_long(values: pa.Array, dialect: Dialect) -> tuple[pa.Array | None, str]:
    """Which values are too long, as they are in objects: bytes have two digits each."""
    kind, most = values.type, dialect.text_bytes
    if not most:
        return None, ""
    if pa.types.is_nested(kind):
        values = json_column(values)
    elif pa.types.is_binary(kind):
        most //= 2
    elif not pa.types.is_string(kind):
        return None, ""
    return pc.greater(pc.binary_length(values), most), f"it has more than {most:,} bytes"


def _limits(kind: pa.DataType, column: Column, dialect: Dialect) -> Limits | None:
    if pa.types.is_date(kind):
        return dialect.days
    if not pa.types.is_timestamp(kind) or column.type == "BIGINT":
        return None
    return dialect.micros.in_units_of(_UNIT_MICROS[kind.unit])


_WIDENED = {
    (pa.int32(), "BIGINT"): pa.int64(),
    (pa.int32(), "DOUBLE PRECISION"): pa.float64(),
    (pa.float32(), "DOUBLE PRECISION"): pa.float64(),
    (pa.string(), "BYTEA"): pa.binary(),
}


def postgresql_values(values: pa.Array, type_name: str) -> pa.Array:
    """A column of values as cdc_native.avro.postgresql writes them. Decimals are staged as text."""
    kind = values.type
    if pa.types.is_nested(kind):
        return json_column(values)
    if pa.types.is_timestamp(kind):
        return values.cast(pa.int64() if type_name == "BIGINT" else pa.timestamp("us", kind.tz))
    if pa.types.is_time(kind):
        return values.cast(pa.time64("us"))
    if pa.types.is_decimal(kind):
        return values.cast(pa.string())
    wider = _WIDENED.get((kind, type_name))  # of a message that is older than the column's type
    return values if wider is None else values.cast(wider)


def json_column(values: pa.Array) -> pa.Array:
    """Arrays, maps and records as JSON texts, by the rules of docs/reference/data-types.md."""
    plain = values.cast(_plain_type(values.type))
    texts = [
        None if value is None else json.dumps(_json(value, plain.type), ensure_ascii=False, separators=(",", ":"))
        for value in plain.to_pylist()
    ]
    return pa.array(texts, pa.string())


def _plain_type(kind: pa.DataType) -> pa.DataType:
    """The type with numbers in the place of dates and times, which Python cannot hold all."""
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(_plain_type(field.type)) for field in kind])
    if pa.types.is_map(kind):
        return pa.map_(kind.key_field, kind.item_field.with_type(_plain_type(kind.item_type)))
    if pa.types.is_list(kind):
        return pa.list_(kind.value_field.with_type(_plain_type(kind.value_type)))
    if pa.types.is_date32(kind) or pa.types.is_time32(kind):
        return pa.int32()
    return pa.int64() if pa.types.is_time64(kind) or pa.types.is_timestamp(kind) else kind


def _json(value: Any, kind: pa.DataType) -> Any:  # noqa: ANN401, PLR0911 - JSON; a case for each kind
    if value is None:
        return None
    if pa.types.is_struct(kind):
        return {field.name: _json(value[field.name], field.type) for field in kind}
    if pa.types.is_map(kind):
        return {key: _json(item, kind.item_type) for key, item in value}
    if pa.types.is_list(kind):
        return [_json(item, kind.value_type) for item in value]
    if isinstance(value, bytes):
        return f"0x{value.hex()}"
    if isinstance(value, Decimal):
        return str(value)
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    return value


def each_refused(
    values: pa.RecordBatch, columns: Sequence[tuple[Column, str]], dialect: Dialect
) -> Iterator[tuple[str, pa.Array, str]]:
    """Each field with values that its column cannot hold, with which, and why."""
    for column, field in columns:
        found = refused_values(values.column(field), column, dialect)
        if found is not None:
            yield field, *found
