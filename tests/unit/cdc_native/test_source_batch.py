"""The records that the core makes of a batch of messages."""

from __future__ import annotations

import gc
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("cdc_native.kafka.source_batch", reason="the native core is not compiled: test_compiled says so")

from cdc_native.kafka.source_batch import SourceBatch
from stream_runtime.records import Record

BYTES = st.one_of(st.none(), st.binary(max_size=40))
INT64 = st.integers(-(2**63), 2**63 - 1)


class Three(NamedTuple):
    key: bytes
    value: bytes
    offset: int


@given(st.lists(st.tuples(BYTES, BYTES, INT64, INT64), max_size=20), st.data())
def test_each_message_is_a_record(rows: list[tuple[bytes | None, bytes | None, int, int]], data: st.DataObject) -> None:
    batch = SourceBatch.of("topic", 3, rows)
    first = data.draw(st.integers(0, len(rows)))
    end = data.draw(st.integers(first, len(rows)))
    found = batch.part(first, end).records(Record)
    del batch
    assert found == [Record(key or b"", value or b"", offset, at) for key, value, offset, at in rows[first:end]]
    assert all(type(record) is Record and gc.is_tracked(record) for record in found)


@pytest.mark.parametrize("kind", [Three, int, list])
def test_another_class_is_refused(kind: type) -> None:
    with pytest.raises((TypeError, AttributeError)):
        SourceBatch.of("topic", 0, [(b"k", b"v", 1, 1)]).records(kind)
