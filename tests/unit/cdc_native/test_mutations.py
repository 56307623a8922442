"""The core splits mutations as the Python code does, byte for byte, and takes all that Cassandra writes."""

from __future__ import annotations

import random
import time
from dataclasses import replace
from typing import TYPE_CHECKING
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cassandra_storage.files.codecs import SegmentCodecs
from cassandra_storage.files.segments import read_segment
from cassandra_storage.formats.commitlog.segment import CommitLogEntry
from cassandra_storage.formats.primitives.vint import write_int, write_sized
from cassandra_storage.formats.rows.deletion import LivenessInfo
from cassandra_storage.formats.rows.header import EncodingStats, SerializationHeader, write_stats
from cassandra_storage.formats.rows.partition import PartitionUpdate
from cassandra_storage.formats.rows.row import Cell, Row
from cassandra_storage.formats.schema.schema_rows import in_order
from cassandra_storage.formats.schema.tables import ColumnKind, ColumnMetadata, DroppedColumn, TableMetadata
from cassandra_storage.formats.types.counter import clear_marked
from cassandra_storage.formats.types.marshal import NativeType
from cassandra_storage.formats.versions import VERSION_40, VERSION_50, VERSION_3014
from tests.support.cassandra_storage.segment_builder import entry as entry_of
from tests.support.cassandra_storage.strategies import INT
from tests.support.cassandra_storage.update_builder import Written, updates, write_update
from tests.support.publisher.split_twice import HOST, SplitTwice
from tests.support.vectors import load as whole_vectors
from tests.support.vectors.segments import keys, tables, vectors

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

batches = pytest.importorskip(
    "cdc_native.formats.batches", reason="the native core is not compiled: test_compiled says so"
)
mutations = pytest.importorskip(
    "cdc_native.formats.mutations", reason="the native core is not compiled: test_compiled says so"
)

VERSIONS = st.sampled_from((VERSION_3014, VERSION_40, VERSION_50))
POSITIONS = st.integers(0, 2**31 - 1)
BATCHES = st.lists(updates(), min_size=1, max_size=3, unique_by=lambda written: written.update.table.id)
EDITS = st.lists(
    st.tuples(st.sampled_from(("change", "insert", "remove", "cut")), st.integers(0, 10_000), st.integers(0, 255)),
    min_size=1,
    max_size=4,
)
VECTORS = vectors()


def joined(batch: list[Written]) -> bytes:
    return write_int(len(batch)) + b"".join(written.data for written in batch)


def tables_of(batch: list[Written]) -> dict[bytes, TableMetadata]:
    return {written.update.table.id.bytes: written.update.table for written in batch}


def edited(data: bytes, edits: list[tuple[str, int, int]]) -> bytes:
    """Damaged: each edit at a place, counted round and round."""
    changed = bytearray(data)
    for kind, at, value in edits:
        place = at % (len(changed) or 1)
        if kind == "insert" or not changed:
            changed.insert(place, value)
        elif kind == "change":
            changed[place] = value
        elif kind == "remove":
            del changed[place]
        else:
            del changed[place:]
    return bytes(changed)


@given(BATCHES, VERSIONS, POSITIONS)
def test_what_cassandra_writes_is_taken(batch: list[Written], version: int, position: int) -> None:
    SplitTwice(tables_of(batch), version).check_taken(joined(batch), position)


@given(BATCHES, VERSIONS, EDITS)
def test_damaged_mutations(batch: list[Written], version: int, edits: list[tuple[str, int, int]]) -> None:
    SplitTwice(tables_of(batch), version).check_any(edited(joined(batch), edits))


@given(updates(), st.data())
def test_each_byte_changed(written: Written, data: st.DataObject) -> None:
    twice = SplitTwice(tables_of([written]), VERSION_50)
    whole, value = joined([written]), data.draw(st.integers(0, 255))
    for place in range(min(len(whole), 300)):
        twice.check_any(whole[:place] + bytes((value,)) + whole[place + 1 :])


@given(updates())
def test_each_end(written: Written) -> None:
    twice, whole = SplitTwice(tables_of([written]), VERSION_50), joined([written])
    for wrong in (*(whole[:end] for end in range(min(len(whole), 300))), whole[:-1], whole + b"\x00", whole + b"\x01"):
        assert twice.core.split(wrong, 0) is None


@given(st.binary(max_size=100))
def test_arbitrary_bytes(data: bytes) -> None:
    twice = SplitTwice({TABLE.id.bytes: TABLE}, VERSION_50)
    for start in (b"", b"\x01", b"\x01" + TABLE.id.bytes, START, START + b"\x10" + write_stats(EncodingStats())):
        twice.check_any(start + data)


@given(BATCHES)
def test_one_unknown_table_is_enough(batch: list[Written]) -> None:
    known = tables_of(batch)
    for left_out in list(known):
        rest = {table_id: table for table_id, table in known.items() if table_id != left_out}
        assert SplitTwice(rest, VERSION_50).core.split(joined(batch), 0) is None


def recorded(version: str, folder: Path) -> Iterator[tuple[int, CommitLogEntry]]:
    """(messaging version, entry) of all recorded segments of a version of Cassandra."""
    for vector in VECTORS:
        if vector.version == version:
            codecs = SegmentCodecs(keys(version))
            for event in read_segment(vector.unpack(folder), codecs):
                if isinstance(event, CommitLogEntry):
                    yield MESSAGING[version], event


MESSAGING = {"3.11": VERSION_3014, "4.0": VERSION_40, "4.1": VERSION_40, "5.0": VERSION_40, "5.0-NONE": VERSION_50}


@pytest.mark.parametrize("version", MESSAGING)
def test_recorded_mutations(version: str, tmp_path: Path) -> None:
    twice = SplitTwice(tables(version), MESSAGING[version])
    rng = random.Random(11)
    taken = refused = damaged = 0
    for _, entry in recorded(version, tmp_path):
        if twice.by_python(entry.mutation, entry.end_position) is None:
            assert twice.core.split(entry.mutation, entry.end_position) is None
            refused += 1
            continue
        twice.check_taken(entry.mutation, entry.end_position)
        taken += 1
        for _ in range(10):
            at, value = rng.randrange(len(entry.mutation)), rng.randrange(256)
            damaged += twice.check_any(
                edited(entry.mutation, [(rng.choice(("change", "insert", "remove")), at, value)])
            )
    assert taken > 50
    assert damaged > 50  # a value may be of any bytes
    assert refused < taken / 10


def test_whole_recorded_segments() -> None:
    for version in whole_vectors.VERSIONS:
        found = whole_vectors.load(version)
        twice = SplitTwice(found.tables, VERSION_40)
        entries = [entry for segment in found.segments for entry in segment.entries()]
        assert sum(len(twice.check_taken(entry.mutation, entry.end_position)) for entry in entries) > len(entries)


COUNTER, TEXT = NativeType("counter"), NativeType("text")
LIVENESS = LivenessInfo(1_700_000_000_000_000)


def table_of(*regular: ColumnMetadata, dropped: dict[str, DroppedColumn] | None = None) -> TableMetadata:
    return TableMetadata(
        "k",
        "t",
        UUID(int=5),
        (ColumnMetadata("p", INT, ColumnKind.PARTITION_KEY, 0),),
        (ColumnMetadata("c", INT, ColumnKind.CLUSTERING, 0),),
        regular_columns=in_order(regular),
        dropped_columns=dropped or {},
    )


def regular(name: str, type_: NativeType = INT) -> ColumnMetadata:
    return ColumnMetadata(name, type_, ColumnKind.REGULAR)


TABLE = table_of(regular("a"), regular("b", TEXT))
START = b"\x01" + TABLE.id.bytes + write_sized(b"key")


def mutation_of(
    table: TableMetadata, *rows: Row, key: bytes = b"key", header: SerializationHeader | None = None
) -> bytes:
    update = PartitionUpdate(table, key, rows=rows)
    return b"\x01" + write_update(update, list(rows), header or SerializationHeader.of_table(table))


@pytest.mark.parametrize(("count", "step"), [(1, 1), (2, 1), (63, 1), (64, 1), (65, 1), (200, 8)])
def test_every_size_of_a_subset(count: int, step: int) -> None:
    columns = [regular(f"r{i:03}") for i in range(count)]
    table = table_of(*columns)
    twice, rng = SplitTwice({table.id.bytes: table}, VERSION_50), random.Random(3)
    for size in range(0, count + 1, step):
        chosen = sorted(rng.sample(range(count), size))
        row = Row((bytes(4),), {columns[i].name: Cell(LIVENESS.timestamp, bytes(4)) for i in chosen}, LIVENESS)
        whole = mutation_of(table, row)
        twice.check_taken(whole)
        for place in range(whole.index(columns[-1].name.encode()), len(whole)):
            twice.check_any(whole[:place] + bytes((rng.randrange(256),)) + whole[place + 1 :])


@given(st.permutations(range(6)), st.integers(0, 6))
def test_columns_in_any_order(order: list[int], count: int) -> None:
    """Only updates of dropped columns may have another order than the table's."""
    columns = [regular(f"r{i}") for i in range(6)]
    table = table_of(*columns)
    chosen = tuple(columns[i] for i in order[:count])
    header = SerializationHeader.of_table(replace(table, regular_columns=chosen))
    row = Row((bytes(4),), {column.name: Cell(1, bytes(4)) for column in chosen}, LIVENESS)
    SplitTwice({table.id.bytes: table}, VERSION_50).check_taken(mutation_of(table, row, header=header))


def test_a_dropped_column_is_known() -> None:
    written = table_of(regular("a"), regular("d", TEXT))
    table = table_of(regular("a"), dropped={"d": DroppedColumn(regular("d", TEXT), 2)})
    row = Row((bytes(4),), {"a": Cell(1, bytes(4)), "d": Cell(1, b"x")}, LIVENESS)
    assert SplitTwice({table.id.bytes: table}, VERSION_50).check_taken(mutation_of(written, row))


def test_a_column_twice_or_unknown_is_not_taken() -> None:
    twice = SplitTwice({TABLE.id.bytes: TABLE}, VERSION_50)
    for names in (b"\x02\x01a\x01a", b"\x01\x01c", b"\x01\x02ab", b"\x03\x01a\x01b\x01a", b"\xff" * 9):
        whole = START + b"\x10" + write_stats(EncodingStats()) + names + b"\x00\x01"
        assert twice.core.split(whole, 0) is None
        assert twice.by_python(whole, 0) is None


def test_counters() -> None:
    table = table_of(regular("n", COUNTER))
    twice = SplitTwice({table.id.bytes: table}, VERSION_50)
    shard = HOST + bytes(16)
    for context in (b"\x00\x01\x80\x00" + shard, b"\x00\x00", b"\x00\x00" + shard):
        twice.check_taken(mutation_of(table, Row((bytes(4),), {"n": Cell(1, context)})))
    cleared = b"\xff\xff\x00\x00" + shard
    assert clear_marked(cleared) != cleared
    for context in (cleared, b"\x00", b"\x80\x00"):
        assert twice.core.split(mutation_of(table, Row((bytes(4),), {"n": Cell(1, context)})), 0) is None
    twice.check_taken(mutation_of(table, Row((bytes(4),), {"n": Cell(1, b"", 1_700_000_000)})))


def test_an_empty_update_has_no_messages() -> None:
    assert SplitTwice({TABLE.id.bytes: TABLE}, VERSION_50).check_taken(START + b"\x01") == []


@pytest.mark.parametrize("flags", sorted(set(range(256)) - {0x01, 0x10, 0x14, 0x18, 0x1C}))
def test_flags_without_a_meaning_are_not_taken(flags: int) -> None:
    twice = SplitTwice({TABLE.id.bytes: TABLE}, VERSION_50)
    assert twice.core.split(START + bytes((flags,)), 0) is None
    whole = mutation_of(TABLE, Row((bytes(4),), {}, LIVENESS))
    at = len(START)
    assert twice.core.split(whole[:at] + bytes((flags,)) + whole[at + 1 :], 0) is None


BOUND = b"\x00\x00" + b"\x00\x00"  # no values; timestamp and deletion time of the least
OPEN, CLOSE, BOUNDARY = b"\x02\x01" + BOUND, b"\x02\x06" + BOUND, b"\x02\x02" + BOUND + b"\x00\x00"


@pytest.mark.parametrize(
    ("markers", "taken"),
    [
        ([], 0),
        ([OPEN, CLOSE], 1),
        ([OPEN, BOUNDARY, CLOSE], 2),
        ([OPEN, CLOSE, OPEN, CLOSE], 2),
        ([CLOSE], None),
        ([OPEN], None),
        ([OPEN, OPEN, CLOSE], None),
        ([OPEN, CLOSE, CLOSE], None),
        ([OPEN, b"\x02\x06\x00\x00\x00\x01"], None),  # another deletion time
        ([b"\x82\x00" + OPEN[1:], CLOSE], None),
        ([b"\x02\x03" + BOUND, CLOSE], None),
        ([b"\x02\x09" + BOUND, CLOSE], None),
        ([b"\x02\x01\x00\x02" + bytes(8), CLOSE], None),  # more values than the table has
    ],
)
def test_range_markers(markers: list[bytes], taken: int | None) -> None:
    whole = START + b"\x10" + write_stats(EncodingStats()) + b"\x00\x00" + b"".join(markers) + b"\x01"
    twice = SplitTwice({TABLE.id.bytes: TABLE}, VERSION_50)
    if taken is None:
        assert twice.core.split(whole, 0) is None
    else:
        assert len(twice.check_taken(whole)) == taken


def test_ttls_that_wrap_below_zero_are_not_taken() -> None:
    header = SerializationHeader.of_table(TABLE, EncodingStats(min_ttl=2**31 - 1))
    row = Row((bytes(4),), {}, LivenessInfo(1, 100, 1_700_000_000))
    twice = SplitTwice({TABLE.id.bytes: TABLE}, VERSION_50)
    twice.check_taken(mutation_of(TABLE, row, header=header))
    whole = mutation_of(TABLE, row, header=header).replace(write_int(100 - (2**31 - 1)), write_int(1))
    assert twice.by_python(whole, 0) is None
    assert twice.core.split(whole, 0) is None


def test_what_would_be_too_large_is_not_taken() -> None:
    """Each of its messages has the key: together they are much larger than the mutation."""
    twice = SplitTwice({TABLE.id.bytes: TABLE}, VERSION_50)
    rows = [Row((i.to_bytes(4, "big"),), {}, LIVENESS) for i in range(70)]
    assert twice.core.split(mutation_of(TABLE, *rows, key=bytes(60_000)), 0) is None
    assert len(twice.check_taken(mutation_of(TABLE, *rows[:65], key=bytes(60_000)))) == 65
    for size, is_taken in ((4_000_000, True), (4_200_000, False)):
        large = mutation_of(TABLE, Row((bytes(4),), {"b": Cell(1, bytes(size))}, LIVENESS))
        assert twice.check_any(large) is is_taken


def test_what_is_not_sent_is_not_copied() -> None:
    """The key of each of its parts would be copied: of 20,000 rows, 1.2 GB."""
    rows = [Row((i.to_bytes(4, "big"),), {}, LIVENESS) for i in range(20_000)]
    prepared = SplitTwice({TABLE.id.bytes: TABLE}, VERSION_50).prepared
    seconds = []
    for key_size in (3, 60_000):
        data = entry_of(mutation_of(TABLE, *rows, key=bytes(key_size)))
        splitter, batch = mutations.MutationSplitter([], silent=prepared), batches.Batch()
        began = time.process_time()
        for _ in range(5):
            assert splitter.walk(batch, data, 0, len(data), len(data), 0) == len(data)
        seconds.append(time.process_time() - began)
        assert (batch.mutations, len(batch)) == (1, 0)
    assert seconds[1] < 5 * seconds[0] + 0.05


def test_tables_without_columns_or_keys() -> None:
    bare = replace(TABLE, id=UUID(int=6), clustering=(), regular_columns=())
    twice = SplitTwice({TABLE.id.bytes: TABLE, bare.id.bytes: bare}, VERSION_50)
    both = b"\x02" + mutation_of(bare, Row((), {}, LIVENESS))[1:] + mutation_of(TABLE, Row((None,), {}, LIVENESS))[1:]
    assert [place for place, _, _ in twice.check_taken(both)] == [1, 0]


NO_TABLE = (bytes(16), (), (), (), b"", b"")


@pytest.mark.parametrize(
    ("place", "value"),
    [
        (0, bytes(15)),
        (0, "text"),
        (1, None),
        (1, (2**63,)),
        (2, ((b"", 4, False, False),)),
        (3, ((None, 4, False, False),)),
        (3, ((b"\x01a", 4, False),)),
        (3, ((b"\x01a", "4", False, False),)),
        (4, None),
        (5, "text"),
    ],
)
def test_what_is_no_prepared_table_is_refused(place: int, value: object) -> None:
    table = (*NO_TABLE[:place], value, *NO_TABLE[place + 1 :])
    with pytest.raises((TypeError, ValueError, OverflowError)):
        mutations.MutationSplitter([table])


def test_only_bytes_and_offsets_are_taken() -> None:
    splitter, batch = mutations.MutationSplitter([NO_TABLE]), batches.Batch()
    wrong = ((None, b"", 0, 0), (batch, None, 0, 0), (batch, bytearray(20), 0, 0), (batch, b"", 2**63, 0))
    for arguments in (*wrong, (batch, b"", "0", 0), (batch, b"", -1, 0)):
        with pytest.raises((TypeError, OverflowError, ValueError)):
            splitter.walk(*arguments, 100, 0)
    with pytest.raises(TypeError):
        splitter.begin_segment(None)
    with pytest.raises(IndexError):
        batch.message(0)
