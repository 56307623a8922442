"""Segments of real servers: all is read, splits and rewrites to the same, and makes what SELECT showed."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

from cassandra_storage.formats.commitlog.segment import SegmentReader
from cassandra_storage.formats.rows.mutation import read_mutation, split_mutation
from tests.support.cassandra_storage.folded import Shown, fold
from tests.support.cassandra_storage.split_parts import is_rewritten, joined
from tests.support.vectors.load import VERSIONS, Vectors, load

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cassandra_storage.formats.rows.partition import PartitionUpdate

MESSAGING = 12


@pytest.fixture(params=VERSIONS)
def vectors(request: pytest.FixtureRequest) -> Vectors:
    return load(request.param)


def mutations(vectors: Vectors) -> Iterator[bytes]:
    for segment in vectors.segments:
        for entry in segment.entries():
            yield entry.mutation


def updates(vectors: Vectors) -> Iterator[PartitionUpdate]:
    for mutation in mutations(vectors):
        yield from read_mutation(mutation, MESSAGING, vectors.tables)


def test_live_and_finished_segments(vectors: Vectors) -> None:
    assert {segment.cdc_index.is_completed for segment in vectors.segments} == {True, False}
    for segment in vectors.segments:
        reader = SegmentReader(segment.name)
        events = list(reader.read(segment.durable, segment.length))
        assert reader.is_ended is segment.cdc_index.is_completed
        assert reader.is_ended or reader.position == segment.cdc_index.offset
        assert events
        # In small windows, and resumed after every tenth entry, it is the same.
        for index in range(0, len(events), 10):
            assert (
                read_in_windows(segment.durable, segment.name, segment.length, events[index].end_position)
                == (events[index + 1 :])
            )


def read_in_windows(data: bytes, name: str, length: int | None, resume_from: int) -> list[Any]:
    reader = SegmentReader(name, resume_from)
    events: list[Any] = []
    place = None
    while not reader.is_ended and place != (reader.position, reader.wanted):
        place = (reader.position, reader.wanted)
        events += reader.read(data[reader.position : reader.position + max(reader.wanted, 10_000)], length)
    return events


def test_every_mutation_is_read_and_split(vectors: Vectors) -> None:
    kinds: Counter[str] = Counter()
    for mutation in mutations(vectors):
        whole = read_mutation(mutation, MESSAGING, vectors.tables)
        split = split_mutation(mutation, MESSAGING, vectors.tables)
        assert [table for table, _ in split] == [update.table for update in whole]
        for update, (table, parts) in zip(whole, split, strict=True):
            assert joined(parts, table, update.partition_key, MESSAGING) == update
            kinds.update(part.kind for part in parts)
    assert set(kinds) == {"row", "static", "partition_deletion", "range_deletion"}
    assert kinds["row"] > 1000


def test_rows_are_written_as_cassandra_writes_them(vectors: Vectors) -> None:
    count = 0
    for mutation in mutations(vectors):
        for table, parts in split_mutation(mutation, MESSAGING, vectors.tables):
            if table.dropped_columns:
                continue  # their cells are left out
            for part in parts:
                if part.kind in ("row", "static"):
                    assert is_rewritten(part, table, MESSAGING), (table.name, part)
                    count += 1
    assert count > 1000


def test_select(vectors: Vectors) -> None:
    """The plainest fold of all updates shows what SELECT did: values, WRITETIME, and whether a TTL runs."""
    of_table: dict[str, list[PartitionUpdate]] = {name: [] for name in vectors.select}
    for update in updates(vectors):
        if update.table.keyspace == "vectors":
            of_table[update.table.name].append(update)
    compared = 0
    for name, expected in vectors.select.items():
        rows = fold(vectors.table(name), of_table[name], vectors.now, is_strict=name == "by_v")
        shown = [comparable(row) for row in rows]
        selected = [from_select(expected["columns"], row) for row in expected["rows"]]
        assert sorted(shown, key=repr) == sorted(selected, key=repr), name
        compared += len(selected)
    assert compared > 100


def comparable(row: dict[str, Shown | bytes | None]) -> dict[str, Any]:
    return {
        name: (value.value if value.written is None else (*value,)) if isinstance(value, Shown) else value
        for name, value in sorted(row.items())
    }


def from_select(columns: list[str], values: list[str | None]) -> dict[str, Any]:
    found = dict(zip(columns, (None if value is None else bytes.fromhex(value) for value in values), strict=True))
    row: dict[str, Any] = {}
    for name, value in sorted(found.items()):
        if name.endswith((" written", " ttl")):
            continue
        row[name] = value
        if f"{name} written" in found:
            written = found[f"{name} written"]
            row[name] = (
                None
                if value is None
                else (value, written and int.from_bytes(written, "big", signed=True), found[f"{name} ttl"] is not None)
            )
    return row
