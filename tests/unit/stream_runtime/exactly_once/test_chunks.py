"""Chunks: nothing left out, no bound passed by more than one message."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from materializer.records import RawRecord
from stream_runtime.exactly_once.chunks import ChunkSettings, chunks

RECORDS = st.lists(st.binary(max_size=50)).map(
    lambda values: [RawRecord(b"k", value, offset, 0) for offset, value in enumerate(values)]
)


@given(RECORDS, st.integers(1, 200), st.integers(1, 10))
def test_chunks_hold_all_records_within_bounds(records: list[RawRecord], max_bytes: int, max_rows: int) -> None:
    made = list(chunks(records, ChunkSettings(max_bytes, max_rows, 1e9)))
    assert [record for chunk in made for record in chunk] == records
    for chunk in made:
        assert 1 <= len(chunk) <= max_rows
        assert sum(len(record.key) + len(record.value) for record in chunk[:-1]) < max_bytes


def test_a_chunk_ends_in_time() -> None:
    ticks = iter(range(1000))
    records = [RawRecord(b"", b"", offset, 0) for offset in range(10)]
    made = list(chunks(iter(records), ChunkSettings(10**9, 10**9, 3.0), clock=lambda: float(next(ticks))))
    assert [len(chunk) for chunk in made] == [3, 3, 3, 1]
