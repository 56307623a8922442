"""The fuzz targets on a few damaged inputs each, and hostile inputs. `make verify WHAT=fuzz` runs longer."""

from __future__ import annotations

import random
import struct
import time
import tracemalloc
from typing import TYPE_CHECKING
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cassandra_storage.formats.errors import FormatError
from cassandra_storage.formats.primitives.vint import write_sized, write_unsigned_vint
from cassandra_storage.formats.rows.byte_comparable import value_encoder
from cassandra_storage.formats.rows.mutation import read_mutation, split_mutation
from cassandra_storage.formats.rows.partition_update import read_partition_update
from cassandra_storage.formats.schema.tables import ColumnKind, ColumnMetadata, TableMetadata
from cassandra_storage.formats.types.counter import merge_contexts
from cassandra_storage.formats.types.cql_types import UserTypeDefinition, parse_type
from cassandra_storage.formats.types.marshal import ListType, MapType, NativeType, TupleType, decode
from cassandra_storage.formats.versions import VERSION_40
from dev.verify.fuzz.mutate import mutated
from dev.verify.fuzz.targets import TARGETS
from tests.support.cassandra_storage.files.coded import CODECS

if TYPE_CHECKING:
    from dev.verify.fuzz.target import Target


@pytest.fixture(scope="module", params=TARGETS)
def target(request: pytest.FixtureRequest) -> Target:
    return TARGETS[request.param]()


@given(st.integers(0, 2**64))
@settings(max_examples=300, deadline=None)
def test_damaged(target: Target, seed: int) -> None:
    rng = random.Random(seed)
    target.run(mutated(rng, rng.choice(target.seeds), target.seeds))


@given(st.binary(max_size=200))
@settings(max_examples=200, deadline=None)
def test_arbitrary(target: Target, data: bytes) -> None:
    target.run(data)


INT, TEXT = NativeType("int"), NativeType("text")


def table(*regular: ColumnMetadata) -> TableMetadata:
    return TableMetadata(
        "k",
        "t",
        UUID(int=1),
        (ColumnMetadata("p", INT, ColumnKind.PARTITION_KEY, 0),),
        (ColumnMetadata("c", TEXT, ColumnKind.CLUSTERING, 0),),
        regular_columns=regular,
    )


MAPPED = table(ColumnMetadata("m", MapType(TEXT, TEXT, is_multi_cell=True), ColumnKind.REGULAR))
START = b"\x01" + MAPPED.id.bytes  # a mutation of one update
HEAD = START + b"\x01k\x10" + bytes(3) + b"\x01\x01m" + b"\x01"  # key, flags, statistics, columns, count of rows
ROW = b"\x24\x00\x01c" + b"\x00"  # timestamp, all columns; clustering; liveness
BOUND = b"\x02\x01"  # a marker: an inclusive start


@pytest.mark.parametrize("length", [2**31 - 1, 2**31, 2**60, 2**64 - 1])
@pytest.mark.parametrize("padding", [b"", bytes(1000)])
@pytest.mark.parametrize(
    "lead",
    [
        pytest.param(b"", id="updates"),
        pytest.param(START, id="key"),
        pytest.param(START + b"\x01k\x10" + bytes(3), id="columns"),
        pytest.param(START + b"\x01k\x10" + bytes(3) + b"\x01", id="a column's name"),
        pytest.param(HEAD + b"\x24\x00", id="a clustering"),
        pytest.param(HEAD + ROW, id="cells"),
        pytest.param(HEAD + ROW + b"\x01\x08", id="a path"),
        pytest.param(HEAD + ROW + b"\x01\x08\x00", id="a value"),
        pytest.param(HEAD + BOUND + b"\x00\x01\x00", id="a bound"),
    ],
)
def test_absurd_lengths(lead: bytes, length: int, padding: bytes) -> None:
    """They are believed nowhere: it fails at once, for a reason and at a position."""
    data = lead + write_unsigned_vint(length) + padding
    for read in (read_mutation, split_mutation):
        started = time.process_time()
        with pytest.raises(FormatError) as raised:
            read(data, VERSION_40, {MAPPED.id.bytes: MAPPED})
        assert time.process_time() - started < 0.5
        assert raised.value.position is not None
        assert raised.value.reason


def test_rows_of_ever_other_columns_in_linear_time() -> None:
    of = table(*(ColumnMetadata(f"c{i:02}", TEXT, ColumnKind.REGULAR) for i in range(60)))
    names = write_unsigned_vint(60) + b"".join(write_sized(column.name.encode()) for column in of.regular_columns)
    head = b"\x01" + of.id.bytes + b"\x01k\x10" + bytes(3) + names + b"\x01"
    everything = (1 << 60) - 1
    rows = [
        b"\x00\x00\x01c"
        + write_unsigned_vint(everything ^ (1 << n % 60 | 1 << n // 60))
        + b"\x04\x00" * (1 + (n % 61 > 0))
        for n in range(3600)
    ]
    started = time.process_time()
    ((_, parts),) = split_mutation(head + b"".join(rows) + b"\x01", VERSION_40, {of.id.bytes: of})
    for part in parts:
        read_partition_update(part.update, 0, VERSION_40, {of.id.bytes: of})
    assert len(parts) == 3600
    assert time.process_time() - started < 5


def test_types_that_stand_for_more_than_they_say() -> None:
    """User types of two fields of the next, or each within the other, and texts that are nested deep."""
    doubling = {
        f"u{n}": UserTypeDefinition("k", f"u{n}", ("a", "b"), (f"u{n + 1}",) * 2 if n < 60 else ("int",) * 2)
        for n in range(61)
    }
    chain = {f"u{n}": UserTypeDefinition("k", f"u{n}", ("a",), (f"u{n + 1}",)) for n in range(2000)}
    deep = "list<" * 5000 + "int" + ">" * 5000
    for text, user_types in (("u0", doubling), ("u0", chain), (deep, {}), ("vector<int, 1" + "0" * 5000 + ">", {})):
        started = time.process_time()
        with pytest.raises(FormatError):
            parse_type(text, "k", user_types)
        assert time.process_time() - started < 5
    wide = "tuple<" + ", ".join(["list<int>"] * 500) + ">"
    assert parse_type(wide, "k", {}) == TupleType((ListType(INT, is_multi_cell=False),) * 500)


@pytest.mark.parametrize("count", [2**31 - 1, 2**31, 2**32 - 1])
def test_collections_of_absurd_sizes(count: int) -> None:
    for type_ in (ListType(INT, is_multi_cell=False), MapType(INT, INT, is_multi_cell=False)):
        for value in (count.to_bytes(4, "big"), count.to_bytes(4, "big") + bytes(400)):
            for read in (lambda data, of=type_: decode(of, data), value_encoder(type_)):
                with pytest.raises(FormatError):
                    read(value)


def test_large_numbers_in_bounded_time() -> None:
    """The largest value that a clustering or an element's path can have."""
    for name in ("varint", "decimal"):
        started = time.process_time()
        value_encoder(NativeType(name))(b"\x00" * 4 + b"\x5a" * 65_531)
        decode(NativeType(name), b"\x00" * 4 + b"\x5a" * 65_531)
        assert time.process_time() - started < 5


@pytest.mark.parametrize("context", [b"\xff", b"\xff\xff", b"\x80\x00", b"\xff\xff\x00\x00" + bytes(31)])
def test_what_is_no_counter_is_neither_read_nor_split(context: bytes) -> None:
    """Cassandra looks into counters when it reads them: local shards may have to become remote ones."""
    of = table(ColumnMetadata("m", NativeType("counter"), ColumnKind.REGULAR))
    data = HEAD + b"\x20\x00\x01c" + b"\x00\x00" + write_sized(context) + b"\x01"
    for read in (read_mutation, split_mutation):
        with pytest.raises(FormatError, match="counter"):
            read(data, VERSION_40, {of.id.bytes: of})


def test_counters_of_more_shards_than_a_header_counts() -> None:
    """The places in a header are of 15 bits; Cassandra's own would overflow."""
    left, right = (
        struct.pack(f">h{20_000}h", 20_000, *range(-(2**15), 20_000 - 2**15))
        + b"".join(struct.pack(">16sqq", struct.pack(">QQ", first, n), 1, 1) for n in range(20_000))
        for first in (1, 2)
    )
    with pytest.raises(FormatError):
        merge_contexts(left, right)


@pytest.mark.parametrize("name", ["LZ4", "Snappy", "Deflate", "Zstd"])
@pytest.mark.parametrize("data", [b"", b"\xff\xff\xff\x07", b"\xff\xff\xff\x07" + bytes(16)])
def test_a_compressed_section_takes_no_memory_for_what_it_claims(name: str, data: bytes) -> None:
    tracemalloc.start()
    try:
        with pytest.raises(FormatError):
            CODECS.decompressor(f"{name}Compressor")(data, 128 << 20)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 1 << 20
