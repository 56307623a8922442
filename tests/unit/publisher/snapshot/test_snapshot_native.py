"""Row images by the native core are those of the Python code, byte for byte."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING
from unittest import mock

import pytest
from hypothesis import given, reject, settings
from hypothesis import strategies as st

from cassandra_storage.files import table_sstables
from cassandra_storage.files.sstables import SSTable
from cassandra_storage.files.table_sstables import TableSSTables
from cassandra_storage.formats.errors import FormatError
from cassandra_storage.formats.merge.purge import Purger
from cassandra_storage.formats.primitives.murmur3 import decorated_token, token
from cassandra_storage.formats.primitives.token_ranges import MAXIMUM, MINIMUM, TokenRange
from cassandra_storage.formats.rows.byte_comparable import bound_encoder, clustering_encoder
from cassandra_storage.formats.rows.deletion import LIVE
from cassandra_storage.formats.rows.header import SerializationHeader
from cassandra_storage.formats.rows.row import Cell, Row
from cassandra_storage.formats.rows.unfiltered import Marker
from cdc_common.messages.raw import decode
from tests.support.cassandra_storage import sstable_builder, strategies
from tests.support.cassandra_storage.merged_tables import NARROW, CaseMaker, expected, place_in
from tests.support.publisher.both_images import NB, OA, MemorySSTable, MemoryTable, check_same, damaged, in_memory, run
from tests.support.vectors import indexed_sstables, sstables

if TYPE_CHECKING:
    from uuid import UUID

    from cassandra_storage.files.sstables import SSTableFile
    from cassandra_storage.formats.schema.tables import TableMetadata
    from cassandra_storage.formats.sstable.partition_index import IndexEntry
    from tests.support.cassandra_storage.merged_tables import Case
    from tests.support.vectors.indexed_sstables import IndexedVectors

NOW = 2_000_000_000

cases = st.randoms(use_true_random=False).map(lambda rng: (rng, CaseMaker(rng).case()))


@given(cases)
@settings(max_examples=300, deadline=None)
def test_merged_and_purged_rows_are_the_same(drawn: tuple[random.Random, Case]) -> None:
    rng, case = drawn
    table = in_memory(case, rng)
    batch = rng.choice(((1 << 18, 50_000), (1, 50_000), (200, 3), (1 << 18, 1)))
    _, found = check_same(table, case.purge.purger(), batch=batch)
    assert found.native == (0 if case.table.is_counter else len(found.messages))


@given(cases)
@settings(max_examples=150, deadline=None)
def test_the_core_goes_on_after_any_place(drawn: tuple[random.Random, Case]) -> None:
    rng, case = drawn
    table = in_memory(case, rng)
    whole = expected(case)
    if whole:
        check_same(table, case.purge.purger(), after=place_in(case, whole, rng), batch=(rng.choice((1, 300)), 50_000))


@given(cases)
@settings(max_examples=80, deadline=None)
def test_from_each_place_of_a_batch_the_rest_follows(drawn: tuple[random.Random, Case]) -> None:
    rng, case = drawn
    table = in_memory(case, rng)
    whole = run(table, case.purge.purger(), native=True, batch=(1, rng.choice((1, 50_000))))
    updates = [(key, decode(value).update) for key, value in whole.messages]
    for place, count in whole.places:
        rest = [
            (key, decode(value).update)
            for key, value in run(table, case.purge.purger(), native=True, after=place).messages
        ]
        assert len(rest) >= len(updates) - count  # ranges that end after the place's row come again
        assert rest == updates[len(updates) - len(rest) :]


@given(cases)
@settings(max_examples=300, deadline=None)
def test_damaged_bytes_are_the_format_s_error(drawn: tuple[random.Random, Case]) -> None:
    """The core and the Python code send the same and report the same error."""
    rng, case = drawn
    check_same(damaged(in_memory(case, rng), rng), case.purge.purger(), batch=(rng.choice((1, 1 << 18)), 50_000))


@st.composite
def any_tables(draw: st.DrawFn) -> MemoryTable:
    """Tables of all types with any values, in one or two SSTables."""
    table = draw(strategies.tables())
    keys = draw(st.sets(st.binary(max_size=20), min_size=1, max_size=2))
    made = []
    for _ in range(draw(st.integers(1, 2))):
        form = draw(st.sampled_from((NB, OA)))
        header = SerializationHeader.of_table(table, draw(strategies.stats), form.rows.version)
        data = b""
        for key in sorted(keys, key=lambda key: (decorated_token(key), key)):
            static = None
            if bool(table.static_columns) and draw(st.booleans()):
                static = draw(strategies.rows(table, is_static=True))
            deletion = draw(st.just(LIVE) | strategies.deletion_times)
            if deletion.marked_for_delete_at < 0 or deletion.local_deletion_time > 2**31 - 2:
                deletion = LIVE
            rows = draw(unfiltereds(table))
            data += sstable_builder.partition(key, rows, header, form, deletion=deletion, static_row=static)
        made.append(MemorySSTable(data, header, form, draw(st.sampled_from((7, 1000)))))
    return MemoryTable(table, made)


@st.composite
def unfiltereds(draw: st.DrawFn, table: TableMetadata) -> list[Row | Marker]:
    """Rows, and perhaps a range, in order."""
    clustering_key, bound_key = clustering_encoder(table.clustering), bound_encoder(table.clustering)
    found: dict[bytes, Row | Marker] = {}
    try:
        for row in draw(st.lists(strategies.rows(table), max_size=3)):
            found[clustering_key(row.clustering)] = row
        if bool(table.clustering) and draw(st.booleans()):
            start, end, deletion = draw(strategies.ranges(table))
            if bound_key(start) < bound_key(end):
                found[bound_key(start)] = Marker(None, (start, deletion))
                found[bound_key(end)] = Marker((end, deletion), None)
    except FormatError:  # a value of another length than its type's
        reject()
    return [found[key] for key in sorted(found)]


@given(any_tables(), st.integers(1_700_000_000, 2_100_000_000), st.sampled_from((0, 864_000)), st.integers(1, 300))
@settings(max_examples=200, deadline=None)
def test_any_rows_are_the_same(table: MemoryTable, now: int, gc_grace: int, size: int) -> None:
    check_same(table, Purger(now, gc_grace), batch=(size, 50_000))


def test_keys_of_all_lengths_have_their_tokens() -> None:
    """Out of order the core would not go on."""
    rng = random.Random(5)
    header = SerializationHeader.of_table(NARROW, messaging_version=OA.rows.version)
    keys = {rng.randbytes(length) for length in range(70) for _ in range(3)} | {b"\xff" * 33, b"\0" * 16}
    data = b"".join(
        sstable_builder.partition(key, [Row((), {"v": Cell(1, b"x")})], header, OA)
        for key in sorted(keys, key=lambda key: (decorated_token(key), key))
    )
    _, found = check_same(MemoryTable(NARROW, [MemorySSTable(data, header, OA)] * 2), Purger(NOW, 0))
    assert found.native == len(found.messages) == len(keys)


@pytest.mark.parametrize("form", [*sstables.FORMS_MADE, *sstables.OLD_RELEASES])
def test_recorded_sstables_are_the_same(form: str) -> None:
    vectors = sstables.load(form)
    made: dict[UUID, list[MemorySSTable]] = {}
    for file, table, _ in vectors.files():
        with SSTable(file, table) as sstable:
            data = b"".join(sstable.data.chunks())
            one = MemorySSTable(data, sstable.schema.header, file.descriptor.format, 1 << 14)
            made.setdefault(table.id, []).append(one)
    native = messages = 0
    for table_id, content in made.items():
        memory = MemoryTable(vectors.tables[table_id], content)
        for gc_grace in (0, 10**9):
            _, image = check_same(memory, Purger(NOW, gc_grace))
            native += image.native
            messages += len(image.messages)
    assert messages > 50
    assert native > messages / 3


@pytest.fixture(scope="module", params=indexed_sstables.FORMS)
def vectors(request: pytest.FixtureRequest) -> IndexedVectors:
    return indexed_sstables.load(request.param)


def test_ranges_are_the_same(vectors: IndexedVectors) -> None:
    table = TableSSTables(vectors.table, vectors.files())
    whole, found = check_same(table, table.purger(NOW), batch=(5000, 50_000))
    assert found.native == len(found.messages)
    rng = random.Random(3)
    tokens = [MINIMUM, MAXIMUM, 0, *(token(key) for key, _ in whole.messages)]
    for _ in range(5):
        ranges = [TokenRange(rng.choice(tokens), rng.choice(tokens)) for _ in range(rng.randint(1, 3))]
        _, found = check_same(table, table.purger(NOW), ranges=ranges)
        assert found.native == len(found.messages)
    for place, _ in found.places[:: max(1, len(found.places) // 5)]:
        check_same(table, table.purger(NOW), after=place)


@pytest.mark.parametrize("past", [0, 1, 2**64 - 1])
def test_an_index_that_leads_past_the_data_is_damage(vectors: IndexedVectors, past: int) -> None:
    """Index.db and Rows.db have no checksum. The first range is sound, so that it is found while the core reads."""
    table = TableSSTables(vectors.table, vectors.files())
    tokens = sorted({token(key) for key, _ in run(table, table.purger(NOW), native=False).messages})
    find = table_sstables.find_partition

    def find_past(file: SSTableFile, start: int, of: TableMetadata | None) -> IndexEntry | None:
        entry = find(file, start, of)
        with SSTable(file, of) as sstable:
            length = sstable.data.length
        return entry if entry is None or start <= tokens[2] else entry._replace(position=length + past)

    ranges = [TokenRange(MINIMUM, tokens[2]), TokenRange(tokens[len(tokens) // 2], MAXIMUM)]
    with mock.patch.object(table_sstables, "find_partition", find_past):
        expected, _ = check_same(table, table.purger(NOW), ranges=ranges)
    assert "the index leads past the data" in expected.error
    assert expected.messages
