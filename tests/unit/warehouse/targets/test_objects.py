"""Objects are written and read back exactly: by Arrow, and by DuckDB, which did not write them."""

from __future__ import annotations

import math
import struct
from decimal import Decimal
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from hypothesis import example, given

from tests.support.warehouse.object_rows import NAMES, ROWS, Row, exact, from_hex, table_of
from warehouse.targets.objects import object_values, read_object, write_object


def from_texts(row: dict[str, str | None]) -> Row:
    text, flag, number, double, single, data, last = row.values()
    return (
        text,
        None if flag is None else {"true": True, "false": False}[flag],
        None if number is None else int(number),
        None if double is None else float(double),
        None if single is None else struct.unpack("f", struct.pack("f", float(single)))[0],
        from_hex(data),
        last,
    )


@given(rows=ROWS)
@example(rows=[(None,) * 7])
@example(rows=[("", None, None, None, None, b"", ""), (None, True, 0, -0.0, math.nan, b'"\n', None)])
def test_csv_is_read_back_exactly(rows: list[Row]) -> None:
    found = read_object(write_object(table_of(rows), "csv"), "csv", NAMES) if rows else pa.table({})
    assert [exact(from_texts(row)) for row in found.to_pylist()] == [exact(row) for row in rows]


@given(rows=ROWS)
def test_parquet_is_read_back_exactly(rows: list[Row]) -> None:
    found = read_object(write_object(table_of(rows), "parquet"), "parquet", NAMES).to_pylist()
    read = [(*row.values(),) for row in found]
    assert [exact(row) for row in rows] == [exact((*row[:5], from_hex(row[5]), row[6])) for row in read]


@given(rows=ROWS.filter(bool))
def test_duckdb_reads_the_csv(tmp_path_factory: pytest.TempPathFactory, rows: list[Row]) -> None:
    file = tmp_path_factory.mktemp("csv") / "rows.csv"
    file.write_bytes(write_object(table_of(rows), "csv"))
    kinds = ("VARCHAR", "BOOLEAN", "BIGINT", "DOUBLE", "FLOAT", "VARCHAR", "VARCHAR")
    columns = ", ".join(f"'{name}': '{kind}'" for name, kind in zip(NAMES, kinds, strict=True))
    options = "header = false, delim = ',', quote = '\"', escape = '\"', nullstr = '', allow_quoted_nulls = false"
    options += ", new_line = '\\n'"  # otherwise the first one of the file, which may lie in quotes
    query = f"SELECT * FROM read_csv(?, columns = {{{columns}}}, {options}, auto_detect = false, strict_mode = true)"
    found = duckdb.execute(query, [str(file)]).fetchall()
    read = [(*row[:5], from_hex(row[5]), row[6]) for row in found]
    assert [exact(row) for row in read] == [exact(row) for row in rows]


@pytest.mark.parametrize(
    ("values", "kind", "wanted"),
    [
        (pa.array([Decimal("0.0000000001"), None], pa.decimal128(38, 10)), "NUMERIC(38, 10)", ["0.0000000001", None]),
        (pa.array([-62_135_596_800_000_000, 253_402_300_799_999_999], pa.timestamp("us", "UTC")), "TIMESTAMPTZ",
         ["0001-01-01 00:00:00.000000+00:00", "9999-12-31 23:59:59.999999+00:00"]),
        (pa.array([1], pa.timestamp("ms")), "TIMESTAMP", ["1970-01-01 00:00:00.001000"]),
        (pa.array([7], pa.timestamp("ns", "UTC")), "BIGINT", [7]),
        (pa.array([86_399_999], pa.time32("ms")), "TIME", ["23:59:59.999000"]),
        (pa.array([-719_162], pa.date32()), "DATE", ["0001-01-01"]),
        (pa.array([b"\0" * 15 + b"\xff"], pa.binary(16)), "UUID", ["00000000-0000-0000-0000-0000000000ff"]),
        (pa.array([[1, None]], pa.list_(pa.int64())), "JSON", ["[1,null]"]),
        (pa.array([b"\0\xff", b""], pa.binary()), "BYTEA", ["00ff", ""]),
    ],
    ids=["decimal", "instant", "local", "nanos", "time", "date", "uuid", "list", "bytes"],
)  # fmt: skip
def test_values_as_texts(values: pa.Array, kind: str, wanted: list[Any]) -> None:
    assert object_values(values, kind).to_pylist() == wanted


def test_the_bytes_of_the_dialect() -> None:
    """Another program can be written by this."""
    rows = [('a"b', True, -1, math.nan, -math.inf, b"\xff", ""), ("é,\n", False, None, 0.1, -0.0, b"", None)]
    assert write_object(table_of(rows), "csv") == (
        b'"a""b","true","-1","NaN","-inf","ff",""\n"\xc3\xa9,\n","false",,"0.1","-0","",\n'
    )
