"""The Avro engine on random schemas, values and damage, and on what is easily got wrong."""

from __future__ import annotations

import array
import hashlib
import hmac
import random
import struct
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cdc_native
from cdc_common.messages import topics
from cdc_common.messages.avro.encoding import encode_bytes, encode_long
from cdc_common.messages.avro.forms import NotNativeError, form_of
from cdc_common.messages.avro.schemas import to_tree

pytestmark = pytest.mark.skipif(not cdc_native.is_enabled(), reason="the native core is not compiled, or turned off")
if cdc_native.is_enabled():
    from cdc_native.avro.columns import Table
    from cdc_native.avro.keys import Keys, partitions
    from cdc_native.avro.messages import AvroError, Messages
    from cdc_native.avro.program import Program, skip_value
    from cdc_native.avro.rewrite import Layout, Rewrite
    from cdc_native.avro.rows import RowError, write_rows
    from cdc_native.avro.sha256 import hmac_sha256
    from tests.support.cdc_native.avro_cases import Case
    from tests.support.cdc_native.avro_checks import check_damaged, check_whole

SEEDS = st.integers(0, 2**32)


@settings(max_examples=300, deadline=None)
@given(SEEDS)
def test_any_schema(seed: int) -> None:
    check_whole(random.Random(seed))


@settings(max_examples=100, deadline=None)
@given(SEEDS)
def test_any_schema_with_unions_of_several_types(seed: int) -> None:
    check_whole(random.Random(seed), with_unions=True)


@settings(max_examples=500, deadline=None)
@given(SEEDS)
def test_damage_is_found(seed: int) -> None:
    check_damaged(random.Random(seed))


def test_some_damaged_messages_are_taken_and_some_not() -> None:
    taken = [check_damaged(random.Random(seed)) for seed in range(200)]
    assert 20 < sum(taken) < 180


# Messages.


def test_messages_of_one_buffer() -> None:
    made = Messages(b"abcdef", array.array("q", [0, 2, 2, 6]))
    assert made.to_list() == [b"ab", b"", b"cdef"]


@pytest.mark.parametrize("offsets", [[1, 0], [0, 7], [-1, 2], []])
def test_wrong_offsets(offsets: list[int]) -> None:
    with pytest.raises(ValueError, match="offsets"):
        Messages(b"abcdef", array.array("q", offsets))


def test_groups_keep_the_order() -> None:
    header = struct.Struct(">BI").pack
    values = [header(0, 9) + b"a", None, header(0, 2**32 - 1) + b"b", header(0, 9) + b"c", None, header(0, 9)]
    groups = Messages.of(values).groups()
    assert [(number, [group.index(at) for at in range(len(group))]) for number, group in groups] == [
        (9, [0, 3, 5]),
        (None, [1, 4]),
        (2**32 - 1, [2]),
    ]
    assert [group.to_list() for _, group in groups] == [[values[0], values[3], values[5]], [None, None], [values[2]]]


@pytest.mark.parametrize("data", [b"", b"\0\0\0\0", b"\1\0\0\0\0x"])
def test_no_header(data: bytes) -> None:
    with pytest.raises(AvroError) as raised:
        Messages.of([b"\0\0\0\0\1", data]).groups()
    assert (raised.value.index, raised.value.position) == (1, 0)


def test_an_error_names_the_message_of_the_batch() -> None:
    case = record({"a": "long", "b": "string"})
    whole = encode_long(5) + encode_bytes(b"tea")
    groups = Messages.of([b"\0\0\0\0\1" + whole, b"\0\0\0\0\2" + whole, b"\0\0\0\0\2" + whole[:-1]]).groups()
    for work in (Layout(case.program).extents, Table(case.program).rows, Keys(case.program, [("a",)]).apply):
        with pytest.raises(AvroError, match="message 2, byte 7: not of its schema"):
            work(groups[1][1], 5)


# Programs.


def record(fields: dict[str, Any]) -> Case:
    return Case.of({"type": "record", "name": "R", "fields": [{"name": key, "type": of} for key, of in fields.items()]})


def test_a_recursive_schema_is_not_taken() -> None:
    schema = {"type": "record", "name": "R", "fields": [{"name": "next", "type": ["null", "R"]}]}
    with pytest.raises(NotNativeError, match="contains itself"):
        form_of(*to_tree(schema))


def test_a_type_that_is_used_often_is_compiled_once() -> None:
    """Otherwise there would be 2^30 types."""
    schema: Any = "int"
    for level in range(30):
        again = schema if isinstance(schema, str) else f"R{level - 1}"
        fields = [{"name": "a", "type": schema}, {"name": "b", "type": again}]
        schema = {"type": "record", "name": f"R{level}", "fields": fields}
    program = Program(form_of(*to_tree(schema)))
    assert len(program) == 1 + 2 * 30
    with pytest.raises(ValueError, match="too many columns"):
        Table(program)


def test_a_schema_that_is_nested_too_deeply() -> None:
    schema: Any = "int"
    for _ in range(65):
        schema = {"type": "array", "items": schema}
    with pytest.raises(NotNativeError, match="nested too deeply"):
        form_of(schema, {})
    form = form_of("int", {})
    for _ in range(65):
        form = form._replace(kind="array", inner=(form,))
    with pytest.raises(ValueError, match="nested too deeply"):
        Program(form)


def test_many_items_without_bytes_take_no_time() -> None:
    case = record({"a": {"type": "array", "items": "null"}})
    data = encode_long(2**62) + encode_long(0)
    assert skip_value(case.program, data, 0) == len(data)
    with pytest.raises(ValueError, match="without bytes"):
        Table(case.program)


@pytest.mark.parametrize(
    "data", [b"", b"\x80", b"\xff" * 9 + b"\2", b"\x80" * 10 + b"\0"], ids=["none", "cut", "too large", "too long"]
)
def test_wrong_longs(data: bytes) -> None:
    assert skip_value(Program(form_of("long", {})), data, 0) is None


@pytest.mark.parametrize("number", [0, 1, -1, 2**31, 2**63 - 1, -(2**63)])
def test_longs(number: int) -> None:
    case = record({"a": "long"})
    [row] = pa.record_batch(Table(case.program).rows(Messages.of([encode_long(number)]))).to_pylist()
    assert row == {"a": number}


# Columns.


@pytest.mark.parametrize(
    ("schema", "arrow"),
    [
        ({"type": "long", "logicalType": "timestamp-nanos"}, pa.timestamp("ns", "UTC")),
        ({"type": "long", "logicalType": "timestamp-millis"}, pa.timestamp("ms", "UTC")),
        ({"type": "long", "logicalType": "local-timestamp-nanos"}, pa.timestamp("ns")),
        ({"type": "long", "logicalType": "date"}, pa.int64()),
        ({"type": "long", "cqlType": "time"}, pa.int64()),
    ],
)
def test_all_bits_of_logical_types(schema: Any, arrow: Any) -> None:  # noqa: ANN401 - JSON, and pyarrow has no types
    """Times that no datetime holds keep their numbers."""
    case = record({"a": schema})
    numbers = [0, -1, 2**63 - 1, -(2**63)]
    batch = pa.record_batch(Table(case.program).rows(Messages.of(map(encode_long, numbers))))
    assert batch.schema.field("a").type == arrow
    assert batch.column("a").cast(pa.int64()).to_pylist() == numbers


@pytest.mark.parametrize(
    ("schema", "data"),
    [
        ("int", encode_long(2**31)),
        ("boolean", b"\2"),
        ("string", encode_bytes(b"\xff")),
        ("string", encode_bytes("\ud800".encode("utf-8", "surrogatepass"))),
        ({"type": "enum", "name": "E", "symbols": ["A"]}, encode_long(1)),
        ({"type": "enum", "name": "E", "symbols": ["A"]}, encode_long(-1)),
        ({"type": "bytes", "logicalType": "decimal", "precision": 2}, encode_bytes(b"\x64")),
        ({"type": "bytes", "logicalType": "decimal", "precision": 2}, encode_bytes(b"\0" + b"\x01" * 17)),
        (["null", "int"], encode_long(2)),
        (["int"], encode_long(1)),
        (["int"], encode_long(-1)),
        ({"type": "array", "items": "int"}, encode_long(-1) + encode_long(2) + b"\0" + b"\0"),
        ({"type": "array", "items": "int"}, encode_long(-(2**63)) + encode_long(0) + b"\0"),
    ],
)
def test_values_that_no_column_has(schema: Any, data: bytes) -> None:  # noqa: ANN401 - JSON
    case = record({"a": schema})
    with pytest.raises(AvroError):
        Table(case.program).rows(Messages.of([data]))


def test_a_tombstone_has_no_columns() -> None:
    with pytest.raises(AvroError, match="tombstone"):
        Table(record({"a": "int"}).program).rows(Messages.of([None]))


def test_rows_are_taken_once() -> None:
    rows = Table(record({"a": "int"}).program).rows(Messages.of([b"\0"]))
    assert len(rows) == pa.record_batch(rows).num_rows == 1
    with pytest.raises(ValueError, match="taken before"):
        pa.record_batch(rows)


def test_rows_of_another_type_are_refused() -> None:
    table = Table(record({"a": "int", "b": ["null", "string"]}).program)
    b = pa.array(["x"])
    with pytest.raises(ValueError, match="a has the Arrow type l, not i"):
        write_rows(table, pa.record_batch({"a": pa.array([1]), "b": b}))
    with pytest.raises(ValueError, match="the field a is missing"):
        write_rows(table, pa.record_batch({"c": pa.array([1], pa.int32()), "b": b}))
    with pytest.raises(RowError, match="row 1: null"):
        write_rows(table, pa.record_batch({"a": pa.array([1, None], pa.int32()), "b": pa.array(["x", "y"])}))


def test_a_text_that_is_no_symbol() -> None:
    table = Table(record({"a": {"type": "enum", "name": "E", "symbols": ["A"]}}).program)
    with pytest.raises(RowError, match="row 0: text that is no symbol"):
        write_rows(table, pa.record_batch({"a": pa.array(["B"])}))


# Keys.


def key(schema: Any, data: bytes) -> bytes | None:  # noqa: ANN401 - JSON
    return Keys(record({"a": schema}).program, [("a",)]).apply(Messages.of([data]))[0]


DAY = 86_400
UUID_TEXT = b"6ba7b810-9dad-41d1-80b4-00c04fd430c8"
DECIMAL = {"type": "bytes", "logicalType": "decimal", "precision": 9}
UUID = {"type": "string", "logicalType": "uuid"}


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (("int", encode_long(7)), (["null", "long"], b"\2" + encode_long(7))),
        (("int", encode_long(7)), ("int", b"\x8e\0")),
        (("float", struct.pack("<f", -0.0)), ("double", bytes(8))),
        (("float", struct.pack("<f", float("nan"))), ("double", struct.pack("<d", -float("nan")))),
        (
            ({"type": "long", "logicalType": "timestamp-millis"}, encode_long(-1500)),
            ({"type": "long", "logicalType": "timestamp-nanos"}, encode_long(-1_500_000_000)),
        ),
        (
            ({"type": "int", "logicalType": "time-millis"}, encode_long(1500)),
            ({"type": "long", "logicalType": "time-micros"}, encode_long(1_500_000)),
        ),
        (({**DECIMAL, "scale": 1}, encode_bytes(b"\x0f")), ({**DECIMAL, "scale": 3}, encode_bytes(b"\x05\xdc"))),
        (({**DECIMAL, "scale": 1}, encode_bytes(b"\xf1")), ({**DECIMAL, "scale": 2}, encode_bytes(b"\xff\x6a"))),
        (({**DECIMAL, "scale": 1}, encode_bytes(b"\0")), (DECIMAL, encode_bytes(b""))),
        ((UUID, encode_bytes(UUID_TEXT)), (UUID, encode_bytes(UUID_TEXT.upper()))),
        (("string", encode_bytes(b"A")), ({"type": "enum", "name": "E", "symbols": ["B", "A"]}, encode_long(1))),
        (("bytes", encode_bytes(b"ab")), ({"type": "fixed", "name": "F", "size": 2}, b"ab")),
        (
            ({"type": "array", "items": "int"}, encode_long(2) + b"\2\4\0"),
            ({"type": "array", "items": ["null", "long"]}, encode_long(-1) + b"\4\2\2" + encode_long(1) + b"\2\4\0"),
        ),
    ],
)
def test_equal_keys(one: tuple[Any, bytes], other: tuple[Any, bytes]) -> None:
    assert key(*one) is not None
    assert key(*one) == key(*other)


def test_keys_that_differ() -> None:
    values: list[tuple[Any, bytes]] = [
        ("int", encode_long(7)),
        ({"type": "int", "logicalType": "date"}, encode_long(7)),
        ({"type": "long", "logicalType": "timestamp-millis"}, encode_long(7)),
        ({"type": "long", "logicalType": "local-timestamp-millis"}, encode_long(7)),
        ("string", encode_bytes(b"7")),
        ("bytes", encode_bytes(b"7")),
        ("boolean", b"\1"),
        ("double", struct.pack("<d", 7)),
        (UUID, encode_bytes(b"7" * 36)),
        ({"type": "array", "items": ["null", "int"]}, encode_long(1) + b"\0\0"),
        ({"type": "array", "items": ["null", "int"]}, b"\0"),
    ]
    keys = [key(*value) for value in values]
    assert None not in keys
    assert len(set(keys)) == len(keys)


def test_a_key_of_nested_fields_in_any_order() -> None:
    row = {"type": "record", "name": "Row", "fields": [{"name": name, "type": "int"} for name in "xyz"]}
    case = record({"before": ["null", row], "after": [row["name"], "null"], "op": "string"})
    keys = Keys(case.program, [("after", "z"), ("op",), ("after", "x")])
    after = b"\0" + encode_long(1) + encode_long(2) + encode_long(3)
    op = encode_bytes(b"c")
    made = keys.apply(Messages.of([b"\0" + after + op, b"\0" + b"\2" + op, None]))
    assert made.to_list() == [b"i\6" + b"s\2c" + b"i\2", None, None]


@pytest.mark.parametrize("paths", [[], [()], [("no",)], [("a", "b")], [("m",)]])
def test_no_key(paths: list[tuple[str, ...]]) -> None:
    with pytest.raises(ValueError, match=r"field|map"):
        Keys(record({"a": "int", "m": {"type": "map", "values": "int"}}).program, paths)


@given(st.lists(st.none() | st.binary(max_size=40)), st.integers(1, 2**31 - 1))
def test_partitions_are_kafkas(values: list[bytes | None], count: int) -> None:
    made = array.array("i", partitions(Messages.of(values), count))
    assert made.tolist() == [-1 if value is None else topics.partition_for(value, count) for value in values]


# Conversions.


@given(st.binary(max_size=200), st.binary(max_size=300))
def test_hmac(salt: bytes, data: bytes) -> None:
    assert hmac_sha256(salt, data) == hmac.new(salt, data, hashlib.sha256).digest()


def test_operations_that_do_not_fit() -> None:
    case = record(
        {"a": "int", "r": ["null", {"type": "record", "name": "S", "fields": [{"name": "x", "type": "int"}]}]}
    )
    layout = Layout(case.program, [("r",)])
    with pytest.raises(ValueError, match="not opened"):
        Rewrite(layout, [("present", ("a",), [], [])])
    with pytest.raises(ValueError, match="only a record"):
        Layout(case.program, [("a",)])
    with pytest.raises(KeyError):
        Rewrite(layout, [("copy", ("no",), ("no",))])
    with pytest.raises(ValueError, match="1 batches are to be given"):
        Rewrite(layout, [("given", 0)]).apply(Messages.of([]))
    with pytest.raises(AvroError, match="a record that is copied from is null"):
        Rewrite(layout, [("copy", ("r", "x"), ("r", "x"))]).apply(Messages.of([b"\0\0"]))


def test_threads_share_a_program_and_messages() -> None:
    case = record({"a": "long", "b": ["null", "string"]})
    data = [encode_long(number) + b"\2" + encode_bytes(b"tea") for number in range(20_000)]
    messages = Messages.of(data)
    layout, table = Layout(case.program), Table(case.program)
    swap = Rewrite(layout, [("copy", ("b",), ("b",)), ("copy", ("a",), ("a",))])
    with ThreadPoolExecutor(4) as pool:
        swapped = list(pool.map(lambda _: swap.apply(messages).to_list(), range(8)))
        columns = list(pool.map(lambda _: pa.record_batch(table.rows(messages)), range(8)))
    assert swapped == [[message[-5:] + message[:-5] for message in data]] * 8
    assert all(batch.column("a").to_pylist() == list(range(20_000)) for batch in columns)
