"""Which values a column cannot hold, and nested ones as JSON."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from warehouse.records import Column
from warehouse.tables.types import DUCKDB, POSTGRESQL
from warehouse.targets.values import json_column, postgresql_values, refused_values


def test_nested_values_are_json() -> None:
    kind = pa.struct([("b", pa.binary()), ("f", pa.list_(pa.float64())), ("t", pa.timestamp("ms", "UTC"))])
    value = {"b": b"\0\1", "f": [0.1, float("nan"), float("-inf"), None], "t": 2**62}
    found = json_column(pa.array([value, None], kind)).to_pylist()
    assert found == ['{"b":"0x0001","f":[0.1,"NaN","-Infinity",null],"t":4611686018427387904}', None]


def test_values_that_a_column_cannot_hold() -> None:
    utc = pa.timestamp("ms", "UTC")
    cases: list[tuple[Any, str, Any, list[Any], list[bool]]] = [
        (pa.string(), "TEXT", POSTGRESQL, ["a", "b\0", None], [False, True, False]),
        (pa.string(), "UUID", DUCKDB, ["6ba7b810-9dad-41d1-80b4-00c04fd430c8", "x"], [False, True]),
        (utc, "TIMESTAMPTZ", DUCKDB, [2**63 - 1, 9_223_372_036_854_775, -(2**63)], [True, False, True]),
        (utc, "TIMESTAMPTZ", POSTGRESQL, [106_751_983 * 86_400_000 - 1, 106_751_983 * 86_400_000], [False, True]),
        (pa.date32(), "DATE", DUCKDB, [2**31 - 1, 2**31 - 2, -(2**31), -(2**31) + 2], [True, False, True, False]),
    ]
    for kind, name, dialect, values, wanted in cases:
        found = refused_values(pa.array(values, kind), Column(("a",), "a", name), dialect)
        assert found is not None
        assert found[0].to_pylist() == wanted, (kind, name)
    assert refused_values(pa.array(["a\0"]), Column(("a",), "a", "TEXT"), DUCKDB) is None


@pytest.mark.parametrize(
    ("kind", "column", "wider"),
    [
        (pa.int32(), "BIGINT", pa.int64()),
        (pa.int32(), "DOUBLE PRECISION", pa.float64()),
        (pa.float32(), "DOUBLE PRECISION", pa.float64()),
    ],
)
def test_a_message_from_before_its_column_was_widened(kind: pa.DataType, column: str, wider: pa.DataType) -> None:
    """COPY's binary form has the width of the column."""
    found = postgresql_values(pa.array([1, None], kind), column)
    assert found.equals(pa.array([1, None], wider))
