"""The delete made from a row's newest message has every value unchanged, whether or not Python can represent it."""

from __future__ import annotations

import struct
from io import BytesIO
from typing import Any
from uuid import UUID

import pytest
from fastavro import schemaless_reader

from cassandra_storage.formats.schema.tables import ColumnKind, ColumnMetadata, TableMetadata
from cassandra_storage.formats.types.marshal import NativeType
from cdc_common.messages import wire
from cdc_common.messages.avro.type_forms import EXACT
from cdc_common.messages.changes import Op, RowChange, RowImage, Source
from cdc_common.messages.closing_deletes import ClosingDeletes, _without_logical_types
from cdc_common.messages.envelope import ChangeEncoder, value_schema


def column(name: str, kind: ColumnKind = ColumnKind.REGULAR) -> ColumnMetadata:
    return ColumnMetadata(name, NativeType(name), kind, 0 if kind is ColumnKind.PARTITION_KEY else -1)


TABLE = TableMetadata(
    keyspace="shop",
    name="orders",
    id=UUID(int=7),
    partition_key=(column("int", ColumnKind.PARTITION_KEY),),
    clustering=(),
    static_columns=(),
    regular_columns=tuple(map(column, ("bigint", "date", "decimal", "double", "text", "timestamp", "uuid"))),
)
IMAGE = {
    "bigint": b"",  # empty: null in Avro, and named
    "date": bytes(4),  # 5.8 million years ago
    "decimal": struct.pack(">i", -400) + b"\x01",
    "double": bytes.fromhex("7ff8000000000001"),  # not a number
    "text": "é".encode(),
    "timestamp": struct.pack(">q", 2**62),  # long after the year 9999
    "uuid": UUID(int=5).bytes,
}
SCHEMA = value_schema(TABLE, "cdc", EXACT)
NOW_US = 1_700_000_000_123_456


def message(op: Op, before: RowImage | None, after: RowImage | None) -> bytes:
    source = Source(5, UUID(int=9).bytes, "CommitLog-7-1.log", 77)
    found = ChangeEncoder(TABLE, "cdc", 3, 4, "c", forms=EXACT).encode(
        RowChange(bytes(4), (), op, before, after, 41, source)
    )
    assert found is not None
    return found.value


def read(value: bytes) -> Any:  # noqa: ANN401 - what Avro holds
    return schemaless_reader(BytesIO(value[wire.HEADER_SIZE :]), _without_logical_types(SCHEMA), None)


@pytest.mark.parametrize(("op", "before"), [("c", None), ("u", {"text": b"former"})])
def test_a_row_ends_as_it_was(op: Op, before: RowImage | None) -> None:
    newest = message(op, before, IMAGE)
    ended = ClosingDeletes(SCHEMA).delete_after(newest, NOW_US)
    assert ended is not None
    assert ended.row_sequence == 42
    assert wire.schema_id(ended.value) == 4
    was, end = read(newest), read(ended.value)
    assert repr(end["before"]) == repr(was["after"])
    assert end["before"]["text"] == "é"
    assert end["after"] is None
    assert end["op"] == "d"
    source = end["source"]
    assert (source["cause"], source["row_sequence"], source["ts_us"]) == ("rebuild", 42, NOW_US)
    assert (source["file"], source["pos"]) == ("", 0)
    assert was["source"]["empty"] == ["after.bigint"]
    assert source["empty"] == ["before.bigint"]
    assert source["cluster"] == was["source"]["cluster"]
    assert ClosingDeletes(SCHEMA).delete_after(ended.value, NOW_US) is None


def test_a_row_that_is_gone_has_no_end() -> None:
    assert ClosingDeletes(SCHEMA).delete_after(message("d", IMAGE, None), NOW_US) is None
