"""The time of a row's event: the first of a list of fields whose value is a time near the message's Kafka time.

Bounds are relative to the Kafka time, never to a clock, so that a retry decides the same. A row without such a value
has its Kafka time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from archive.writer.columns import UTC_US

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

ENVELOPE_TIMES = ("source.ts_us", "source.ts_ms", "ts_ms")
MOST_KAFKA_MS = 253_402_214_399_999  # the last day but one of the year 9999
_DAY_US = 86_400_000_000
_EARLIEST_US = 7_300 * _DAY_US  # before the Kafka time: 20 years
_LATEST_US = _DAY_US  # after it
_MOST_MS = 9_000_000_000_000_000  # more are no int64 in microseconds
_UNITS = ((10**11, 1_000_000), (10**14, 1_000), (10**17, 1))  # (less than, microseconds): seconds, ms, microseconds
_RFC_3339 = (
    r"^\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])[T ]([01]\d|2[0-3]):[0-5]\d:[0-5]\d(\.\d+)?(Z|[+-]\d\d:[0-5]\d)$"
)


class Times(NamedTuple):
    """The times of rows."""

    # A timestamp (µs, UTC) for each row.
    values: pa.Array
    # The number of rows that have their Kafka time.
    by_kafka: int


def find_times(rows: pa.RecordBatch, paths: Sequence[str], kafka_ms: pa.Array) -> Times:
    """The times of rows. kafka_ms: an int64 for each, -1 without one."""
    kafka_us = kafka_micros(kafka_ms)
    found = pa.nulls(len(rows), pa.int64())
    for column in _columns(rows, paths):
        found = pc.coalesce(found, _near(_micros(column), kafka_us))
        if not found.null_count:
            break
    return Times(pc.coalesce(found, kafka_us).cast(UTC_US), found.null_count)


def kafka_micros(kafka_ms: pa.Array) -> pa.Array:
    """Kafka's times in microseconds, within the years that dates have."""
    return pc.multiply(pc.min_element_wise(pc.max_element_wise(kafka_ms, 0), MOST_KAFKA_MS), 1000)


def _columns(rows: pa.RecordBatch, paths: Sequence[str]) -> Iterator[pa.Array]:
    """The columns of those of the paths that the rows have."""
    for path in paths:
        names = path.split(".")
        kind: pa.DataType = pa.struct(list(rows.schema))
        for name in names:
            at = kind.get_field_index(name) if pa.types.is_struct(kind) else -1
            if at < 0:
                break
            kind = kind.field(at).type
        else:
            column = rows.column(names[0])
            yield pc.struct_field(column, names[1:]) if names[1:] else column


def _micros(column: pa.Array) -> pa.Array:
    """The values as microseconds since 1970; null for what is no time."""
    kind = column.type
    if pa.types.is_timestamp(kind):
        return _scaled(column.cast(pa.int64()), {"s": 1_000_000, "ms": 1_000, "us": 1, "ns": 0}[kind.unit])
    if pa.types.is_date32(kind):
        return pc.multiply(column.cast(pa.int32()).cast(pa.int64()), _DAY_US)
    if pa.types.is_int64(kind) or pa.types.is_int32(kind):
        return _by_size(column.cast(pa.int64()))
    if pa.types.is_string(kind):
        return _parsed(column)
    return pa.nulls(len(column), pa.int64())


def _scaled(numbers: pa.Array, factor: int) -> pa.Array:
    """factor: microseconds of one; 0 for nanoseconds."""
    if factor == 0:
        return pc.divide(numbers, 1000)
    if factor == 1:
        return numbers
    is_small = pc.less(pc.abs(_without_least(numbers)), _MOST_MS * 1000 // factor)
    return pc.multiply(pc.if_else(is_small, numbers, None), factor)


def _by_size(numbers: pa.Array) -> pa.Array:
    """Numbers whose size says whether they are seconds, milliseconds or microseconds."""
    size = pc.abs(_without_least(numbers))
    found = pa.nulls(len(numbers), pa.int64())
    for less_than, factor in reversed(_UNITS):
        is_unit = pc.less(size, less_than)
        found = pc.if_else(is_unit, pc.multiply(pc.if_else(is_unit, numbers, None), factor), found)
    return found


def _without_least(numbers: pa.Array) -> pa.Array:
    """Without -2^63, which has no positive."""
    return pc.if_else(pc.equal(numbers, -(2**63)), None, numbers)


def _parsed(texts: pa.Array) -> pa.Array:
    """RFC 3339. Digits after microseconds are cut off."""
    kept = pc.if_else(pc.match_substring_regex(texts, _RFC_3339), texts, None)
    kept = pc.replace_substring_regex(kept, r"(\.\d{6})\d+", r"\1")
    try:
        return kept.cast(UTC_US).cast(pa.int64())
    except pa.ArrowInvalid:  # a day that its month does not have
        return pa.array([_parse_one(text) for text in kept], pa.int64())


def _parse_one(text: pa.Scalar) -> int | None:
    try:
        return text.cast(UTC_US).value  # type: ignore[no-any-return]
    except pa.ArrowInvalid:
        return None


def _near(micros: pa.Array, kafka_us: pa.Array) -> pa.Array:
    """The values near the Kafka time; null for others."""
    is_near = pc.and_kleene(
        pc.greater_equal(micros, pc.subtract(kafka_us, _EARLIEST_US)),
        pc.less_equal(micros, pc.add(kafka_us, _LATEST_US)),
    )
    return pc.if_else(is_near, micros, None)
