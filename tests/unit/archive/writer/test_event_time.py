"""Which value is the time of a row's event."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest

from archive.writer.event_time import MOST_KAFKA_MS, find_times

KAFKA_MS = 1_795_258_800_000
KAFKA_US = KAFKA_MS * 1000
AT = KAFKA_US - 3_600_000_000


def found(value: Any, kind: pa.DataType, kafka_ms: int = KAFKA_MS) -> tuple[int, int]:  # noqa: ANN401 - of the kind
    rows = pa.record_batch({"at": pa.array([value], kind)})
    times = find_times(rows, ("missing", "at"), pa.array([kafka_ms]))
    return times.values.cast(pa.int64())[0].as_py(), times.by_kafka


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (AT, pa.timestamp("us", "UTC")),
        (AT // 1000, pa.timestamp("ms", "UTC")),
        (AT * 1000 + 7, pa.timestamp("ns", "UTC")),
        (AT // 1_000_000, pa.int64()),
        (AT // 1000, pa.int64()),
        (AT, pa.int64()),
        ((datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=AT)).isoformat(), pa.string()),
        ("2026-11-21T10:00:00.0000009Z", pa.string()),
        ("2026-11-21 12:00:00+02:00", pa.string()),
    ],
)
def test_a_time(value: Any, kind: pa.DataType) -> None:  # noqa: ANN401 - of the kind
    assert found(value, kind) == (AT, 0)


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (None, pa.int64()),
        (0, pa.int64()),
        (-(2**63), pa.int64()),
        (2**63 - 1, pa.int64()),
        (KAFKA_US + 2 * 86_400_000_000, pa.int64()),
        (2**63 - 1, pa.timestamp("ms", "UTC")),
        (-(2**63), pa.timestamp("ms", "UTC")),
        ("2026-02-30T00:00:00Z", pa.string()),
        ("2026-11-21", pa.string()),
        ("soon", pa.string()),
        (True, pa.bool_()),
        (b"x", pa.binary()),
    ],
)
def test_no_time_is_kafkas(value: Any, kind: pa.DataType) -> None:  # noqa: ANN401 - of the kind
    assert found(value, kind) == (KAFKA_US, 1)


@pytest.mark.parametrize(("kafka_ms", "time_us"), [(-1, 0), (2**62, MOST_KAFKA_MS * 1000)])
def test_a_kafka_time_that_is_none(kafka_ms: int, time_us: int) -> None:
    assert found(None, pa.int64(), kafka_ms) == (time_us, 1)


def test_the_first_field_with_a_time_counts() -> None:
    rows = pa.record_batch({"a": pa.array([None, AT, 5]), "b": pa.array([AT, AT + 1, AT + 1])})
    times = find_times(rows, ("a", "b"), pa.array([KAFKA_MS] * 3))
    assert times.values.cast(pa.int64()).to_pylist() == [AT, AT, AT + 1]


def test_a_field_of_a_record_that_is_null() -> None:
    rows = pa.record_batch({"a": pa.array([{"b": AT}, None])})
    times = find_times(rows, ("a.b", "a.c"), pa.array([KAFKA_MS] * 2))
    assert times.values.cast(pa.int64()).to_pylist() == [AT, KAFKA_US]
    assert times.by_kafka == 1
