"""Rows of every value that objects may have, and how they are compared."""

from __future__ import annotations

import math
import struct
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

from warehouse.targets.objects import object_values

TEXTS = st.text(st.characters(codec="utf-8"), max_size=12) | st.sampled_from(
    ["", '"', '""', "\\N", "NULL", "a\nb", "\r\n", "\r", ",", '","', "\\", "\\.", " x ", "\0", "𝄞", "\u2028", "#", "'"]
)
"""All of UTF-8, and what other dialects of CSV stumble over."""
ROWS = st.lists(
    st.tuples(
        st.none() | TEXTS,
        st.none() | st.booleans(),
        st.none() | st.integers(-(2**63), 2**63 - 1),
        st.none() | st.floats(),
        st.none() | st.floats(width=32),
        st.none() | st.binary(max_size=6),
        st.none() | TEXTS,
    ),
    max_size=5,
)
TYPES = (
    ("text", pa.string(), "TEXT"),
    ("flag", pa.bool_(), "BOOLEAN"),
    ("number", pa.int64(), "BIGINT"),
    ("double", pa.float64(), "DOUBLE PRECISION"),
    ("float", pa.float32(), "REAL"),
    ("bytes", pa.binary(), "BYTEA"),
    ("last", pa.string(), "TEXT"),
)
NAMES = [name for name, _, _ in TYPES]
Row = tuple[Any, ...]


def table_of(rows: list[Row]) -> pa.Table:
    columns = [
        object_values(pa.array([row[number] for row in rows], kind), sql) for number, (_, kind, sql) in enumerate(TYPES)
    ]
    return pa.table(columns, names=NAMES)


def exact(row: Row) -> Row:
    """A row whose floats compare bit by bit; every NaN is one."""
    text, flag, number, double, single, data, last = row
    bits = [
        value if value is None or math.isnan(value) else struct.pack(code, value)
        for code, value in (("d", double), ("f", single))
    ]
    return text, flag, number, *map(str, bits), data, last


def from_hex(digits: str | None) -> bytes | None:
    return None if digits is None else bytes.fromhex(digits)
