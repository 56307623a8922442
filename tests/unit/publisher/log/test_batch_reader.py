"""Segments read in batches: the events, positions and messages are those of SegmentReader and the Python code."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cdc_native
from cassandra_storage.files.codecs import SegmentCodecs
from cassandra_storage.formats.commitlog.descriptor import parse_file_name
from cassandra_storage.formats.commitlog.segment import CommitLogEntry, SegmentReader
from cassandra_storage.formats.primitives.vint import write_int
from cassandra_storage.formats.schema.schema_keyspace import SCHEMA_TABLES
from publisher.log.batch_reader import BatchReader, SplitEntries
from tests.support.cassandra_storage.files.coded import CODECS, FORMS
from tests.support.cassandra_storage.segment_builder import NAME, SEGMENT_ID, entry, segment
from tests.support.cassandra_storage.update_builder import updates
from tests.support.publisher.both_readers import Comparison, Read, choose, damaged, ends, events
from tests.support.publisher.chosen_tables import ChosenTables
from tests.support.vectors.segments import keys, tables, vectors

if TYPE_CHECKING:
    from tests.support.cassandra_storage.update_builder import Written
    from tests.support.vectors.segments import SegmentVector

pytestmark = pytest.mark.skipif(not cdc_native.is_compiled(), reason="the core is not compiled: test_compiled says so")

VECTORS = vectors()
WINDOWS = (64, 700, 1 << 18)


@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: f"{vector.version}-{vector.form}-{vector.name}")
def test_recorded_segments(vector: SegmentVector) -> None:
    rng = random.Random(vector.name)
    codecs = SegmentCodecs(keys(vector.version))
    whole = Comparison(choose(tables(vector.version), rng, all_published=True), vector.name, codecs)
    found = ends(whole.check(vector.log, Read()))
    assert whole.in_batches > 5 * whole.alone or len(found) < 50
    _, segment_id = parse_file_name(vector.name)
    mixed = Comparison(choose(tables(vector.version), rng, segment_id, all_published=False), vector.name, codecs)
    for window in WINDOWS:
        resume_from = rng.choice([0, *found, rng.randrange(len(vector.log))])
        durable = tuple(sorted(rng.choices(found or [0], k=3)))
        mixed.check(vector.log, Read(resume_from, durable, window))
    used = vector.log.rstrip(b"\0") + bytes(20)
    for _ in range(10):
        mixed.check(damaged(used, rng), Read(rng.choice([0, *found]), window=rng.choice(WINDOWS)))


def test_most_recorded_mutations_are_in_batches() -> None:
    for version in {vector.version for vector in VECTORS}:
        in_batches = alone = messages = 0
        for vector in VECTORS:
            if vector.version == version:
                chosen = choose(tables(version), random.Random(1), all_published=True)
                compared = Comparison(chosen, vector.name, SegmentCodecs(keys(version)))
                compared.check(vector.log, Read())
                in_batches += compared.in_batches
                alone += compared.alone
                messages += compared.messages
        assert messages > 50
        assert in_batches > 5 * alone


SECTIONS = st.lists(st.lists(st.integers(0, 7), max_size=6), min_size=1, max_size=4)
ENDS = st.tuples(st.integers(SEGMENT_ID - 1, SEGMENT_ID + 1), st.integers(0, 2000) | st.just(2**31 - 1))
BATCHES = st.lists(updates(), min_size=4, max_size=4, unique_by=lambda written: written.update.table.id)


def mutations_of(written: list[Written]) -> list[bytes]:
    """Eight kinds: of one table, of several, of an unknown one, of the schema, and no mutation at all."""
    one = [write_int(1) + mutation.data for mutation in written]
    return [
        *one,
        write_int(3) + b"".join(mutation.data for mutation in written[:3]),
        write_int(2) + written[1].data + written[2].data,
        write_int(1) + next(iter(SCHEMA_TABLES)) + bytes(30),
        b"\x01" + bytes(20),
    ]


@settings(deadline=None)
@given(BATCHES, SECTIONS, st.data())
def test_any_mix_of_tables(written: list[Written], sections: list[list[int]], data: st.DataObject) -> None:
    known = {mutation.update.table.id.bytes: mutation.update.table for mutation in written}
    ids = list(known)
    chosen = ChosenTables(
        {**known, **SCHEMA_TABLES},
        published={ids[0], ids[1]},
        excluded=data.draw(st.sets(st.just(ids[2]))),
        filler={ids[3]},
        closed=data.draw(st.sets(st.just(ids[1]))),
        ends=data.draw(st.dictionaries(st.sampled_from(ids[:2]), ENDS)),
    )
    mutations = mutations_of(written)
    form = data.draw(st.sampled_from((None, *FORMS)))
    content = [[mutations[kind] for kind in kinds] for kinds in sections]
    whole = (segment(content) if form is None else form.segment(content)) + bytes(data.draw(st.integers(0, 30)))
    compared = Comparison(chosen, NAME, CODECS)
    found = [0, *ends(compared.check(whole, Read()))]
    resume_from, window = data.draw(st.sampled_from(found)), data.draw(st.sampled_from(WINDOWS))
    durable = tuple(sorted(data.draw(st.lists(st.sampled_from(found), max_size=3))))
    compared.check(whole, Read(resume_from, durable, window))
    at = data.draw(st.integers(0, len(whole) - 1))
    other = whole[:at] + bytes((data.draw(st.integers(0, 255)),)) + whole[at + 1 :]
    compared.check(other, Read(resume_from, durable, window))
    compared.check(whole[:at], Read(resume_from, window=window))


@given(updates(), st.lists(st.integers(0, 40), max_size=6))
def test_each_byte_of_an_entrys_frame(written: Written, places: list[int]) -> None:
    table_id = written.update.table.id.bytes
    compared = Comparison(ChosenTables({table_id: written.update.table}, {table_id}), NAME)
    mutation = write_int(1) + written.data
    whole = segment([[mutation, mutation, mutation]])
    start = len(whole) - 2 * len(entry(mutation))
    for place in (*range(8), len(entry(mutation)) - 4, *places):
        for bit in (1, 128):
            changed = bytearray(whole)
            changed[min(start + place, len(whole) - 1)] ^= bit
            compared.check(bytes(changed), Read())


def test_what_is_done_with_an_entry_is_done_before_the_next_are_split() -> None:
    """A table whose topic is opened when its first mutation comes alone."""
    vector = next(vector for vector in VECTORS if vector.version == "5.0")
    chosen = choose(tables("5.0"), random.Random(1), all_published=True)
    chosen.closed = set(chosen.published)
    reader = BatchReader(vector.name, codecs=SegmentCodecs(keys("5.0")))
    reader.splitter = chosen.splitter()
    alone = []
    for event in events(reader, vector.log, Read()):
        if isinstance(event, CommitLogEntry) and event.mutation[:1] == b"\x01":
            alone.append(event.mutation[1:17])
            chosen.closed.discard(event.mutation[1:17])
            chosen.opened += 1
    opened = [table_id for table_id in alone if table_id in chosen.published]
    assert opened
    assert len(opened) - len(set(opened)) <= 2  # those with forms that the core leaves alone


def test_a_large_batch_is_cut() -> None:
    chosen = choose(tables("5.0"), random.Random(1), all_published=True)
    vector = next(vector for vector in VECTORS if (vector.version, vector.form) == ("5.0", "none"))
    found = SegmentReader(vector.name).read(vector.log, len(vector.log))
    mutations = [event.mutation for event in found if isinstance(event, CommitLogEntry)]
    mutation = next(mutation for mutation in mutations if mutation[1:17] in chosen.published)
    data = segment([[mutation] * 20_000])
    reader = BatchReader(NAME)
    reader.splitter = chosen.splitter()
    sizes = []
    for event in events(reader, data, Read(window=len(data))):
        assert isinstance(event, SplitEntries)
        sizes.append(event.batch.size)
    assert len(sizes) > 1
    assert all(1 << 20 <= size < (1 << 20) + 100_000 for size in sizes[:-1])
