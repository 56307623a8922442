"""The native core writes what the Python code writes, of any columns, and of parts of columns."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdc_native.avro.postgresql import CopyError, copy_rows
from tests.support.warehouse import binary_copy

TEXTS = st.text(st.characters(exclude_categories=["Cs"]))
KINDS: list[tuple[pa.DataType, st.SearchStrategy[Any]]] = [
    (pa.bool_(), st.booleans()),
    (pa.int32(), st.integers(-(2**31), 2**31 - 1)),
    (pa.int64(), st.integers(-(2**63), 2**63 - 1)),
    (pa.float32(), st.floats(width=32)),
    (pa.float64(), st.floats()),
    (pa.string(), TEXTS),
    (pa.binary(), st.binary()),
    (pa.binary(4), st.binary(min_size=4, max_size=4)),
    (pa.date32(), st.integers(-(2**31) + 10_957, 2**31 - 1)),
    (pa.timestamp("us", "UTC"), st.integers(-(2**62), 2**62)),
    (pa.timestamp("us"), st.integers(-(2**62), 2**62)),
    (pa.time64("us"), st.integers(0, 86_400_000_000 - 1)),
    (pa.null(), st.none()),
]


@given(st.data())
def test_any_columns(data: st.DataObject) -> None:
    kinds = data.draw(st.lists(st.sampled_from(KINDS), max_size=6))
    rows = data.draw(st.integers(0, 20))
    first = data.draw(st.integers(0, rows))
    arrays = [
        pa.array(data.draw(st.lists(st.none() | values, min_size=rows, max_size=rows)), kind) for kind, values in kinds
    ]
    uuids = pa.array(data.draw(st.lists(st.uuids().map(str), min_size=rows, max_size=rows)), pa.string())
    names = [str(number) for number in range(len(arrays) + 1)]
    batch = pa.RecordBatch.from_arrays([array.slice(first) for array in [*arrays, uuids]], names=names)
    assert copy_rows(batch, {len(arrays)}) == binary_copy.copy_rows(batch, {len(arrays)})


@pytest.mark.parametrize("text", ["", "6ba7b810-9dad-41d1-80b4-00c04fd430cg", "6ba7b810-9dad-41d1-80b4-00c04fd430c8 "])
def test_a_text_that_is_no_uuid(text: str) -> None:
    good = "6BA7B810-9dad-41d1-80b4-00c04fd430c8"
    batch = pa.RecordBatch.from_arrays([pa.array([1, 2]), pa.array([good, text])], names=["a", "b"])
    with pytest.raises(CopyError) as caught:
        copy_rows(batch, {1})
    assert (caught.value.index, caught.value.column) == (1, 1)


def test_a_type_that_is_not_written() -> None:
    batch = pa.RecordBatch.from_arrays([pa.array([[1]])], names=["a"])
    with pytest.raises(ValueError, match=r"a column of the Arrow type \+l"):
        copy_rows(batch)
