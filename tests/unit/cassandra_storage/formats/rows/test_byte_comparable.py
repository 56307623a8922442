"""Keys in the order and with the identity of Cassandra's comparators; dev/verify/oracle asks Cassandra itself."""

from __future__ import annotations

import contextlib
import itertools
import random
import struct
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cassandra_storage.formats.errors import FormatError
from cassandra_storage.formats.rows.byte_comparable import (
    bound_keys,
    clustering_encoder,
    clustering_key,
    path_key,
    value_encoder,
)
from cassandra_storage.formats.rows.clustering import Clustering, ClusteringBound, Kind
from cassandra_storage.formats.schema.tables import ColumnKind, ColumnMetadata
from cassandra_storage.formats.types.byte_source import escaped, variable_length_integer
from cassandra_storage.formats.types.marshal import (
    CqlType,
    CustomType,
    ListType,
    MapType,
    NativeType,
    SetType,
    TupleType,
    UserType,
)
from dev.verify.oracle.type_values import TypeValues

INT, TEXT = NativeType("int"), NativeType("text")


def column(type_: CqlType, *, is_reversed: bool = False) -> ColumnMetadata:
    return ColumnMetadata("c", type_, ColumnKind.CLUSTERING, 0, is_reversed)


def decimal(text: str) -> bytes:
    """The value with just this scale."""
    number = Decimal(text)
    sign, digits, exponent = number.as_tuple()
    unscaled = int("".join(map(str, digits))) * (-1 if sign else 1)
    assert isinstance(exponent, int)
    return (-exponent).to_bytes(4, "big", signed=True) + unscaled.to_bytes(
        unscaled.bit_length() // 8 + 1, "big", signed=True
    )


@pytest.mark.parametrize(
    ("value", "key"),
    [(b"A\0\0B", "4100feff4200"), (b"A\0B\0", "4100ff4200fe"), (b"A\0", "4100fe"), (b"AB", "414200"), (b"", "00")],
)
def test_escapes_as_byte_source_documents(value: bytes, key: str) -> None:
    assert escaped(value).hex() == key


@pytest.mark.parametrize(
    ("number", "key"),
    [
        *((0, "80"), (1, "81"), (-1, "7f"), (63, "bf"), (64, "c040"), (-64, "40"), (-65, "3fbf")),
        *((2**20 - 1, "efffff"), (2**20, "f0100000"), (-(2**20), "100000")),
        *((2**56, "ff8100000000000000"), (2**63 - 1, "ff" * 9), (-(2**63), "00" * 9)),
    ],
)
def test_integers_as_byte_source_documents(number: int, key: str) -> None:
    assert variable_length_integer(number).hex() == key


def test_clusterings_as_clustering_comparator_documents() -> None:
    columns = (column(TEXT), column(NativeType("smallint")))
    assert clustering_key(columns, (b"A", b"\x00\x05")) == bytes.fromhex("40 4100 40 8005 38")
    assert clustering_key(columns, (b"", None)) == bytes.fromhex("40 00 3e 38")
    assert clustering_key((), ()) == b"\x38"
    inclusive_end = ClusteringBound(Kind.INCL_END_BOUND, (b"B", b"\x00\x06"))
    exclusive_start = ClusteringBound(Kind.EXCL_START_BOUND, (b"A",))
    assert bound_keys(columns, exclusive_start, inclusive_end) == (
        bytes.fromhex("40 4100 60"),
        bytes.fromhex("40 4200 40 8006 60"),
    )


@given(st.lists(st.integers(-(2**63), 2**63 - 1) | st.integers(-300, 300), min_size=2, max_size=2))
def test_integers_keep_their_order(numbers: list[int]) -> None:
    for name, size in (("int", 9), ("bigint", 8), ("timestamp", 8), ("varint", 9)):
        encode = value_encoder(NativeType(name if name != "int" else "varint"))
        first, second = (encode(number.to_bytes(size, "big", signed=True)) for number in numbers)
        assert (first < second, first == second) == (numbers[0] < numbers[1], numbers[0] == numbers[1])


@given(st.lists(st.decimals(allow_nan=False, allow_infinity=False), min_size=2, max_size=2))
def test_decimals_keep_their_order(numbers: list[Decimal]) -> None:
    encode = value_encoder(NativeType("decimal"))
    first, second = (encode(decimal(str(number))) for number in numbers)
    assert (first < second, first == second) == (numbers[0] < numbers[1], numbers[0] == numbers[1])


def test_numbers_of_any_size_keep_their_order() -> None:
    powers = [2**exponent for exponent in (*range(80), 400, 1024, 1025, 2047, 2048)]
    numbers = sorted({sign * (power + more) for sign in (-1, 1) for power in powers for more in (-1, 0, 1)})
    encode = value_encoder(NativeType("varint"))
    keys = [encode(number.to_bytes(300, "big", signed=True)) for number in numbers]
    assert keys == sorted(set(keys))


def test_decimals_near_each_other_keep_their_order() -> None:
    magnitudes = ["0.05", "0.051", "0.4999", "0.5", "0.5001", "0.51", "4.9", "5", "5.01", "12", "49", "50", "50.1"]
    magnitudes += ["99", "100", "101", "1E2000", "1.1E2000"]
    texts = [f"-{text}" for text in reversed(["1E-2000", *magnitudes])] + ["0", "1E-2000", *magnitudes]
    encode = value_encoder(NativeType("decimal"))
    keys = [encode(decimal(text)) for text in texts]
    assert keys == sorted(set(keys))


@pytest.mark.parametrize("texts", [("1.0", "1.00", "1", "10E-1"), ("0", "0.00", "0E5"), ("-20", "-2E1", "-20.0")])
def test_a_decimals_scale_is_not_its_identity(texts: tuple[str, ...]) -> None:
    assert len({clustering_key((column(NativeType("decimal")),), (decimal(text),)) for text in texts}) == 1


def test_a_decimal_of_more_digits_than_an_int_may_print() -> None:
    encode = value_encoder(NativeType("decimal"))
    huge = 10**150_000  # some 62 KB, near the most that a clustering holds
    keys = [encode(bytes(4) + number.to_bytes(63_000, "big")) for number in (huge - 1, huge, huge + 1)]
    assert keys == sorted(set(keys))
    assert keys[1] == encode((-150_000).to_bytes(4, "big", signed=True) + b"\x01")


@pytest.mark.parametrize("name", ["float", "double"])
def test_floating_numbers_as_java_compares_them(name: str) -> None:
    layout = ">f" if name == "float" else ">d"
    numbers = (float("-inf"), -1.5, -0.0, 0.0, 1.5, float("inf"), float("nan"))
    encode = value_encoder(NativeType(name))
    keys = [encode(struct.pack(layout, number)) for number in numbers]
    assert keys == sorted(set(keys))
    assert encode(b"\xff" * struct.calcsize(layout)) == keys[-1]


def test_time_uuids_are_ordered_by_time_and_signed_bytes() -> None:
    def time_uuid(low: int, middle: int, last: int) -> bytes:
        return low.to_bytes(4, "big") + middle.to_bytes(2, "big") + b"\x10\x00" + bytes(7) + bytes([last])

    in_time = [time_uuid(9, 1, 0x80), time_uuid(9, 1, 0), time_uuid(0, 2, 0)]
    as_time_uuid = [value_encoder(NativeType("timeuuid"))(value) for value in in_time]
    as_uuid = [value_encoder(NativeType("uuid"))(value) for value in in_time]
    assert as_time_uuid == sorted(as_time_uuid)
    assert as_uuid == [sorted(as_uuid)[index] for index in (1, 0, 2)]


@pytest.mark.parametrize("is_reversed", [False, True])
def test_null_is_below_all_and_empty_is_the_smallest_value(is_reversed: bool) -> None:  # noqa: FBT001  a parameter
    for name, value in (("int", b"\x80\x00\x00\x00"), ("text", b"\x00"), ("uuid", bytes(16))):
        encode = clustering_encoder((column(NativeType(name), is_reversed=is_reversed),))
        null, empty, smallest = (encode((component,)) for component in (None, b"", value))
        assert null < empty
        assert null < smallest
        assert (smallest < empty) is is_reversed


def test_missing_and_null_fields_are_one_and_empty_is_another() -> None:
    encode = value_encoder(TupleType((INT, INT)))
    one = b"\x00\x00\x00\x04\x00\x00\x00\x01"
    null, empty = b"\xff\xff\xff\xff", b"\x00\x00\x00\x00"
    assert encode(one) == encode(one + null)
    assert encode(one) < encode(one + empty) < encode(one + one)
    assert encode(null + one) < encode(empty + one)


def test_a_key_stays_when_its_user_type_gains_a_field() -> None:
    one = b"\x00\x00\x00\x04\x00\x00\x00\x01"
    assert value_encoder(TupleType((INT,)))(one) == value_encoder(TupleType((INT, INT)))(one)


def test_paths_of_complex_columns() -> None:
    decimals = SetType(NativeType("decimal"), is_multi_cell=True)
    assert path_key(decimals, decimal("1.0")) == path_key(decimals, decimal("1.00"))
    ints = MapType(INT, TEXT, is_multi_cell=True)
    assert path_key(ints, b"") < path_key(ints, b"\xff\xff\xff\xff") < path_key(ints, b"\x00\x00\x00\x00")
    user_type = UserType("ks", "t", ("a", "b"), (INT, INT), is_multi_cell=True)
    assert path_key(user_type, b"\x00\x00") < path_key(user_type, b"\x00\x01")
    assert len(path_key(ListType(INT, is_multi_cell=True), bytes(16))) == 16
    with pytest.raises(FormatError):
        path_key(INT, b"")


@pytest.mark.parametrize("type_", [NativeType("counter"), CustomType("com.example.Unknown")])
def test_types_without_an_order(type_: CqlType) -> None:
    """They are refused value by value, so that a table which has one can still be opened."""
    encode = clustering_encoder((column(type_),))
    for value in (b"", bytes(16)):
        with pytest.raises(FormatError, match="no order is known"):
            encode((value,))


@pytest.mark.parametrize("values", [(), (bytes(4), bytes(4))])
def test_a_clustering_of_another_table(values: Clustering) -> None:
    with pytest.raises(FormatError):
        clustering_key((column(INT),), values)


SMALL = st.integers(0, 2).map(lambda number: number.to_bytes(4, "big"))
STARTS, ENDS = (Kind.INCL_START_BOUND, Kind.EXCL_START_BOUND), (Kind.INCL_END_BOUND, Kind.EXCL_END_BOUND)


@given(
    st.tuples(st.booleans(), st.booleans()),
    st.tuples(SMALL, SMALL),
    st.sampled_from(STARTS),
    st.lists(SMALL, max_size=2),
    st.sampled_from(ENDS),
    st.lists(SMALL, max_size=2),
)
def test_a_clustering_is_within_a_range_by_its_keys(
    is_reversed: tuple[bool, bool], row: Clustering, start: Kind, first: list[bytes], end: Kind, last: list[bytes]
) -> None:
    columns = tuple(column(INT, is_reversed=one) for one in is_reversed)

    def order(values: Clustering | list[bytes]) -> list[int]:
        """Small numbers whose order is the columns'."""
        return [
            -(value or b"")[-1] if turned else (value or b"")[-1]
            for value, turned in zip(values, is_reversed, strict=False)
        ]

    from_start, to_end = order(row)[: len(first)], order(row)[: len(last)]
    after_start = from_start > order(first) or (from_start == order(first) and start is Kind.INCL_START_BOUND)
    before_end = to_end < order(last) or (to_end == order(last) and end is Kind.INCL_END_BOUND)
    low, high = bound_keys(columns, ClusteringBound(start, tuple(first)), ClusteringBound(end, tuple(last)))
    assert (low <= clustering_key(columns, row) < high) is (after_start and before_end)


@given(st.integers(), st.binary(max_size=40))
def test_arbitrary_bytes_give_a_key_or_a_format_error(seed: int, value: bytes) -> None:
    type_ = TypeValues(random.Random(seed), is_plain=False).type()
    with contextlib.suppress(FormatError):
        clustering_key((column(type_),), (value,))


@given(st.integers())
def test_no_key_begins_another(seed: int) -> None:
    values = TypeValues(random.Random(seed), is_plain=False)
    columns = tuple(column(values.type(), is_reversed=values.rng.random() < 0.5) for _ in range(2))
    encode = clustering_encoder(columns)
    keys = sorted({encode(tuple(values.value(one.type) for one in columns)) for _ in range(20)})
    assert not any(following.startswith(key) for key, following in itertools.pairwise(keys))
