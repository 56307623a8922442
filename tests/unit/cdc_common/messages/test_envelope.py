from __future__ import annotations

import json
import re
import struct
from dataclasses import replace
from io import BytesIO
from typing import Any
from uuid import UUID

import pytest
from confluent_kafka.schema_registry import Schema, SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer
from confluent_kafka.serialization import MessageField, SerializationContext
from fastavro import schemaless_reader, schemaless_writer
from hypothesis import given
from hypothesis import strategies as st

from cassandra_storage.formats.errors import FormatError
from cassandra_storage.formats.schema.partition_keys import partition_key_values
from cassandra_storage.formats.schema.tables import ColumnKind, ColumnMetadata, DroppedColumn, TableMetadata
from cassandra_storage.formats.types.marshal import ListType, NativeType, SetType, TupleType
from cdc_common.messages import envelope, tables, wire
from cdc_common.messages.avro.type_forms import EXACT
from cdc_common.messages.changes import RowChange, Source
from cdc_common.messages.envelope import ChangeEncoder, key_schema, value_schema
from cdc_common.messages.errors import MessageError
from dev.local_stack.process.paths import project_root
from schematizer.converters.cql import CqlConverter

TEXT, INT, DECIMAL = map(NativeType, ("text", "int", "decimal"))
HOST = UUID(int=7)
SOURCE = Source(1_700_000_000_123_456, HOST.bytes, "CommitLog-7-1.log", 4096)


def column(name: str, cql_type: Any, kind: ColumnKind, position: int = -1) -> ColumnMetadata:  # noqa: ANN401  a CqlType
    return ColumnMetadata(name, cql_type, kind, position)


ORDERS = TableMetadata(
    "shop",
    "orders",
    UUID(int=1),
    (column("shop", TEXT, ColumnKind.PARTITION_KEY, 0), column("day", INT, ColumnKind.PARTITION_KEY, 1)),
    (column("line", INT, ColumnKind.CLUSTERING, 0),),
    regular_columns=(
        column("note", TEXT, ColumnKind.REGULAR),
        column("qty", INT, ColumnKind.REGULAR),
        column("tags", SetType(TEXT, is_multi_cell=True), ColumnKind.REGULAR),
    ),
)
WITH_STATIC = replace(ORDERS, static_columns=(column("größe", INT, ColumnKind.STATIC),))
KEY = b"\x00\x02s1\x00\x00\x04\x00\x00\x00\x05\x00"
CREATED = RowChange(
    KEY, (b"\x00\x00\x00\x01",), "c", None, {"note": b"hi", "tags": ((b"a", b""), (b"b", b""))}, 1, SOURCE
)


def encode(table: TableMetadata, change: RowChange) -> tuple[Any, Any]:
    key, value = message(ChangeEncoder(table, "cdc", 3, 4, "main", forms=EXACT), change, 1_700_000_000_999)
    assert (wire.schema_id(key), wire.schema_id(value)) == (3, 4)
    return read(key_schema(table, "cdc", EXACT), key), read(value_schema(table, "cdc", EXACT), value)


def message(encoder: ChangeEncoder, change: RowChange, ts_ms: int | None = None) -> tuple[bytes, bytes]:
    encoded = encoder.encode(change, ts_ms)
    assert encoded is not None
    return encoded.key, encoded.value


def read(schema: Any, message: bytes) -> Any:  # noqa: ANN401  any value
    stream = BytesIO(message[wire.HEADER_SIZE :])
    value = schemaless_reader(stream, schema, None)
    assert not stream.read()
    return value


def test_create() -> None:
    key, value = encode(ORDERS, CREATED)
    assert key == {"shop": "s1", "day": 5, "line": 1}
    assert value == {
        "before": None,
        "after": {"shop": "s1", "day": 5, "line": 1, "note": "hi", "qty": None, "tags": ["a", "b"]},
        "source": {
            "version": envelope.VERSION,
            "connector": "cassandra",
            "name": "cdc",
            "ts_ms": 1_700_000_000_123,
            "ts_us": 1_700_000_000_123_456,
            "snapshot": "false",
            "cluster": "main",
            "keyspace": "shop",
            "table": "orders",
            "host": str(HOST),
            "file": "CommitLog-7-1.log",
            "pos": 4096,
            "cause": "write",
            "row_sequence": 1,
            "empty": [],
            "unreadable": [],
            "incomplete": False,
            "left_out": [],
        },
        "op": "c",
        "ts_ms": 1_700_000_000_999,
    }


def test_a_snapshots_read() -> None:
    source = SOURCE._replace(snapshot=True, file="snapshot-1")
    _, value = encode(ORDERS, CREATED._replace(op="r", source=source))
    assert (value["op"], value["source"]["snapshot"], value["source"]["file"]) == ("r", "true", "snapshot-1")
    assert value["source"]["table"] == "orders"


def test_update_and_delete() -> None:
    other = SOURCE._replace(file="CommitLog-7-2.log", cause="expiry", ts_us=-1)
    updated = CREATED._replace(op="u", before=CREATED.after, after={"qty": b"\x7f\xff\xff\xff"}, source=other)
    _, value = encode(ORDERS, updated)
    assert (value["op"], value["before"]["note"], value["after"]["note"]) == ("u", "hi", None)
    assert value["after"]["qty"] == 2**31 - 1
    assert [value["source"][name] for name in ("file", "cause", "ts_us", "ts_ms")] == [
        "CommitLog-7-2.log",
        "expiry",
        -1,
        -1,
    ]
    _, value = encode(ORDERS, CREATED._replace(op="d", before=CREATED.after, after=None))
    assert (value["op"], value["after"], value["before"]["tags"]) == ("d", None, ["a", "b"])


def test_an_encoder_goes_from_file_to_file() -> None:
    encoder = ChangeEncoder(ORDERS, "cdc", 3, 4, forms=EXACT)
    for file in ("a", "b", "a"):
        change = CREATED._replace(source=SOURCE._replace(file=file))
        assert read(value_schema(ORDERS, "cdc", EXACT), message(encoder, change)[1])["source"]["file"] == file


def test_made_now_if_not_said_otherwise() -> None:
    value = message(ChangeEncoder(ORDERS, "cdc", 3, 4, forms=EXACT), CREATED)[1]
    assert read(value_schema(ORDERS, "cdc", EXACT), value)["ts_ms"] > SOURCE.ts_us // 1000


def test_the_row_of_a_partition_with_only_statics() -> None:
    change = CREATED._replace(clustering=None, after={"größe": b"\x00\x00\x00\x02"})
    key, value = encode(WITH_STATIC, change)
    assert key == {"shop": "s1", "day": 5, "line": None}
    assert value["after"]["grosse_xd353"] == 2
    (size,) = (
        field
        for field in value_schema(WITH_STATIC, "cdc", EXACT)["fields"][0]["type"][1]["fields"]
        if field.get("cqlName")
    )
    assert size == {
        "name": "grosse_xd353",
        "type": ["null", "int"],
        "default": None,
        "cqlName": "größe",
        "cqlType": "int",
        "static": True,
    }
    assert encode(WITH_STATIC, CREATED)[0] == {"shop": "s1", "day": 5, "line": 1}


def test_the_keys_are_nullable_only_where_a_row_can_be_without() -> None:
    def types(table: TableMetadata) -> list[Any]:
        return [field["type"] for field in key_schema(table, "cdc", EXACT)["fields"]]

    assert types(ORDERS) == ["string", "int", "int"]
    assert types(WITH_STATIC) == ["string", "int", ["null", "int"]]
    (static,) = WITH_STATIC.static_columns
    had_one = replace(WITH_STATIC, static_columns=(), dropped_columns={static.name: DroppedColumn(static, 1)})
    assert types(had_one) == types(WITH_STATIC)


def test_empty_values_are_null_and_named() -> None:
    change = CREATED._replace(op="u", before={"qty": b"", "note": b""}, after={"qty": b"", "note": b"x"})
    _, value = encode(ORDERS, change)
    assert (value["before"]["qty"], value["before"]["note"]) == (None, "")
    assert value["source"]["empty"] == ["before.qty", "after.qty"]


@pytest.mark.parametrize(
    ("cql_type", "value"),
    [
        (ListType(INT, is_multi_cell=True), ((UUID(int=1).bytes, b"\0\0\0\1"), (UUID(int=2).bytes, b""))),
        (ListType(INT, is_multi_cell=False), struct.pack(">iii", 1, 0, 0)[:8]),
        (TupleType((INT, TEXT)), struct.pack(">ii", 0, -1)),
        (TupleType((INT, TEXT)), b""),
    ],
)
def test_an_empty_value_inside_makes_the_whole_column_null(cql_type: Any, value: Any) -> None:  # noqa: ANN401
    table = replace(ORDERS, regular_columns=(column("c", cql_type, ColumnKind.REGULAR),))
    _, message = encode(table, CREATED._replace(after={"c": value}))
    assert message["after"]["c"] is None
    assert message["source"]["empty"] == ["after.c"]


@pytest.mark.parametrize("cql_type", [INT, DECIMAL, NativeType("ascii"), SetType(TEXT, is_multi_cell=False)])
def test_values_that_are_none_of_their_type_are_null_and_named(cql_type: Any) -> None:  # noqa: ANN401  a CqlType
    """Cassandra lets some pass: a text that no reader decodes, a decimal without digits."""
    table = replace(ORDERS, regular_columns=(column("c", cql_type, ColumnKind.REGULAR), ORDERS.regular_columns[0]))
    _, message = encode(table, CREATED._replace(after={"c": b"\xff\0\0", "note": b"hi"}))
    assert (message["after"]["c"], message["after"]["note"]) == (None, "hi")
    assert (message["source"]["unreadable"], message["source"]["empty"]) == (["after.c"], [])


@pytest.mark.parametrize(
    "change",
    [
        CREATED._replace(clustering=(b"",)),
        CREATED._replace(clustering=(None,)),
        CREATED._replace(clustering=(b"\0\0\0",)),
        CREATED._replace(partition_key=b"\x00\x01\xff\x00\x00\x04\x00\x00\x00\x05\x00"),
        CREATED._replace(partition_key=b"\x00\x02s1\x00\x00\x00\x00"),
    ],
)
@pytest.mark.parametrize("table", [ORDERS, WITH_STATIC])
def test_a_key_that_avro_cannot_say_gives_no_message(table: TableMetadata, change: RowChange) -> None:
    assert ChangeEncoder(table, "cdc", 3, 4, forms=EXACT).encode(change._replace(after={})) is None


def test_an_empty_text_in_a_key_is_a_value_like_any_other() -> None:
    key, _ = encode(ORDERS, CREATED._replace(partition_key=b"\x00\x00\x00\x00\x04\x00\x00\x00\x05\x00"))
    assert key == {"shop": "", "day": 5, "line": 1}


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (CREATED._replace(clustering=None), "null in key column line"),
        (CREATED._replace(clustering=()), "a clustering of 0 values in shop.orders"),
        (CREATED._replace(partition_key=KEY[:-1]), "shop.orders: a partition key that ends too early"),
        (CREATED._replace(after={"other": b"x"}), r"columns that shop.orders does not have: \['other'\]"),
    ],
)
def test_what_cannot_be_said_is_an_error(change: RowChange, reason: str) -> None:
    with pytest.raises(MessageError, match=reason):
        encode(ORDERS, change)


def test_a_key_keeps_its_names_whatever_column_is_added() -> None:
    quoted = replace(ORDERS, clustering=(column("a b", INT, ColumnKind.CLUSTERING, 0),))
    added = replace(quoted, regular_columns=(column("a_b_xc868", INT, ColumnKind.REGULAR),))
    assert key_schema(added, "cdc", EXACT) == key_schema(quoted, "cdc", EXACT)
    fields = value_schema(added, "cdc", EXACT)["fields"][0]["type"][1]["fields"]
    assert [(field["name"], field.get("cqlName")) for field in fields[2:]] == [
        ("a_b_xc868", "a b"),
        ("a_b_xc868_", "a_b_xc868"),
    ]


def test_schema_text_is_stable() -> None:
    assert envelope.schema_text(key_schema(ORDERS, "my-cdc", EXACT)) == (
        '{"type":"record","name":"Key","namespace":"my_cdc_x0b7c.shop.orders","fields":['
        '{"name":"shop","type":"string","cqlType":"text"},{"name":"day","type":"int","cqlType":"int"},'
        '{"name":"line","type":"int","cqlType":"int"}]}'
    )


def test_partition_key_of_one_column_is_the_value() -> None:
    assert partition_key_values(replace(ORDERS, partition_key=ORDERS.partition_key[:1]), KEY) == [KEY]


@given(st.binary(max_size=300), st.binary(max_size=300))
def test_partition_key_of_several_columns(first: bytes, second: bytes) -> None:
    key = b"".join(struct.pack(">H", len(value)) + value + b"\0" for value in (first, second))
    assert partition_key_values(ORDERS, key) == [first, second]
    for damaged in (key[:-1], key + b"\0", b""):
        with pytest.raises(FormatError):
            partition_key_values(ORDERS, damaged)


def test_confluents_own_deserializer_reads_both() -> None:
    registry = SchemaRegistryClient.new_client({"url": "mock://"})
    key_id, value_id = (
        registry.register_schema(
            f"orders-{which}", Schema(envelope.schema_text(make(WITH_STATIC, "cdc", EXACT)), "AVRO")
        )
        for which, make in (("key", key_schema), ("value", value_schema))
    )
    key, value = message(ChangeEncoder(WITH_STATIC, "cdc", key_id, value_id, forms=EXACT), CREATED)
    deserialize = AvroDeserializer(registry)
    context = SerializationContext("cdc.shop.orders", MessageField.VALUE)
    assert deserialize(key, context) == {"shop": "s1", "day": 5, "line": 1}
    assert deserialize(value, context)["after"]["tags"] == ["a", "b"]


def test_the_documentations_message_is_of_this_format() -> None:
    page = (project_root() / "docs" / "reference" / "change-events.md").read_text()
    key, change = (json.loads(match) for match in re.findall(r"```json\n(.*?)```", page, re.DOTALL))
    (create,) = re.findall(r"CREATE TABLE shop\.orders.*;", page)
    schemas = CqlConverter().convert(create, "cdc.shop")
    assert schemas.key is not None
    assert _written_and_read(json.loads(schemas.key), key) == key
    read_change = _written_and_read(json.loads(schemas.value), change)
    assert read_change == change
    assert json.dumps(read_change["source"]) == json.dumps(change["source"])  # in the schema's order
    table = page.partition("\n| source | meaning |\n")[2].partition("\n\n")[0]
    described = [line.strip("| ").partition(" |")[0] for line in table.splitlines()[1:]]
    assert {name for row in described for name in row.split(", ")} == change["source"].keys()


def test_the_documentations_table_schema_is_of_this_format() -> None:
    page = (project_root() / "docs" / "reference" / "raw-topics.md").read_text()
    (schema,) = re.findall(r"```json\n(.*?)```", page.partition("## Table schemas")[2], re.DOTALL)
    assert tables.from_json(schema.encode()).qualified_name == "shop.orders"


def _written_and_read(schema: Any, value: Any) -> Any:  # noqa: ANN401  any value
    stream = BytesIO()
    schemaless_writer(stream, schema, value)
    stream.seek(0)
    return schemaless_reader(stream, schema, None)


def test_columns_may_have_the_names_of_the_envelopes_fields_and_of_each_other_but_for_a_character() -> None:
    names = (
        "before",
        "after",
        "source",
        "op",
        "ts_ms",
        "Key",
        "Value",
        "null",
        "a-b",
        "a_b",
        "a b",
        "a_b_xd443",
        "1",
        "ж",
    )
    table = replace(ORDERS, regular_columns=tuple(column(name, INT, ColumnKind.REGULAR) for name in names))
    image = {name: struct.pack(">i", number) for number, name in enumerate(names)}
    _, value = encode(table, CREATED._replace(after=image))
    fields = {row_field.get("cqlName", row_field["name"]): row_field["name"] for row_field in row_fields(table)}
    assert {name: value["after"][fields[name]] for name in names} == {name: n for n, name in enumerate(names)}
    assert len(set(fields.values())) == len(fields)


def row_fields(table: TableMetadata) -> list[dict[str, Any]]:
    fields: list[dict[str, Any]] = value_schema(table, "cdc", EXACT)["fields"][0]["type"][1]["fields"]
    return fields
