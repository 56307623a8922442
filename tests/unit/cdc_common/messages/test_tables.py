from __future__ import annotations

import contextlib
import json
from dataclasses import replace
from typing import TYPE_CHECKING
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cassandra_storage.formats.schema.tables import ColumnKind, ColumnMetadata, DroppedColumn, TableMetadata
from cassandra_storage.formats.types.marshal import ListType, MapType, NativeType, UserType
from cdc_common.messages import tables
from cdc_common.messages.errors import MessageError
from tests.support.cdc_common.messages.strategies import tables as table_metadata
from tests.support.cdc_common.messages.strategies import whole_tables

if TYPE_CHECKING:
    import random

ADDRESS = UserType("shop", "Address", ("street", "zip"), (NativeType("text"), NativeType("int")), is_multi_cell=True)
ORDERS = TableMetadata(
    keyspace="shop",
    name="orders",
    id=UUID("00000000-0000-0000-0000-000000000001"),
    partition_key=(ColumnMetadata("id", NativeType("uuid"), ColumnKind.PARTITION_KEY, 0),),
    clustering=(ColumnMetadata("at", NativeType("timestamp"), ColumnKind.CLUSTERING, 0, is_reversed=True),),
    static_columns=(ColumnMetadata("größe", NativeType("int"), ColumnKind.STATIC),),
    regular_columns=(
        ColumnMetadata("total", NativeType("decimal"), ColumnKind.REGULAR),
        ColumnMetadata("address", ADDRESS, ColumnKind.REGULAR),
        ColumnMetadata("tags", MapType(NativeType("text"), NativeType("int"), is_multi_cell=True), ColumnKind.REGULAR),
    ),
    dropped_columns={
        "old": DroppedColumn(ColumnMetadata("old", NativeType("text"), ColumnKind.REGULAR), 1_700_000_000_000_000)
    },
)


@whole_tables
@given(table_metadata())
def test_round_trip(table: TableMetadata) -> None:
    assert tables.from_json(tables.to_json(table)) == table


@whole_tables
@given(table_metadata(), st.randoms(use_true_random=False))
def test_order_in_memory_does_not_matter(table: TableMetadata, order: random.Random) -> None:
    regulars, dropped = list(table.regular_columns), list(table.dropped_columns.items())
    order.shuffle(regulars)
    order.shuffle(dropped)
    other = replace(table, regular_columns=tuple(regulars), dropped_columns=dict(dropped))
    assert tables.to_json(other) == tables.to_json(table)


def test_canonical_form() -> None:
    """Written out: a change of it changes every digest, and needs a new format version."""
    assert tables.canonical(ORDERS).decode() == (
        '{"clustering":[{"name":"at","reversed":true,"type":"timestamp"}],'
        '"dropped":{"old":{"kind":"regular","name":"old","time_us":1700000000000000,"type":"text"}},'
        '"flags":["compound"],"id":"00000000-0000-0000-0000-000000000001","keyspace":"shop","name":"orders",'
        '"partition_key":[{"name":"id","type":"uuid"}],"regular":[{"name":"total","type":"decimal"},'
        '{"name":"address","type":{"multi_cell":true,"user":["shop","Address",[["street","text"],["zip","int"]]]}},'
        '{"name":"tags","type":{"map":["text","int"],"multi_cell":true}}],"static":[{"name":"größe","type":"int"}]}'
    )
    key = tables.message_key(ORDERS)
    assert key == ORDERS.id.bytes + bytes.fromhex("3feb8c4881bff9c7b8d1012671ac3b9b")


def test_gc_grace_is_carried_but_not_in_the_key() -> None:
    other = replace(ORDERS, gc_grace_seconds=1)
    assert tables.message_key(other) == tables.message_key(ORDERS)
    assert tables.from_json(tables.to_json(other)).gc_grace_seconds == 1


def test_the_cluster_is_carried_but_not_in_the_key() -> None:
    value = tables.to_json(ORDERS, "Küche 1")
    assert tables.cluster_name(value) == "Küche 1"
    assert tables.from_json(value) == tables.from_json(tables.to_json(ORDERS)) == ORDERS


def test_what_decoding_needs_is_in_the_key() -> None:
    wider = replace(ADDRESS, field_names=("street", "plz"))
    columns = (replace(ORDERS.regular_columns[1], type=wider), *ORDERS.regular_columns[2:])
    others = [
        replace(ORDERS, regular_columns=columns),
        replace(ORDERS, dropped_columns={}),
        replace(ORDERS, clustering=(replace(ORDERS.clustering[0], is_reversed=False),)),
        replace(ORDERS, flags=frozenset()),
    ]
    keys = {tables.message_key(table) for table in (*others, ORDERS)}
    assert len(keys) == len(others) + 1


def test_what_is_inside_a_type_is_frozen_however_it_was_spelled() -> None:
    def with_inner(*, is_multi_cell: bool) -> TableMetadata:
        inner = ListType(NativeType("int"), is_multi_cell)
        column = ColumnMetadata("c", ListType(inner, is_multi_cell=False), ColumnKind.REGULAR)
        return replace(ORDERS, regular_columns=(column,))

    assert tables.canonical(with_inner(is_multi_cell=True)) == tables.canonical(with_inner(is_multi_cell=False))


def test_unknown_format_version() -> None:
    value = json.loads(tables.to_json(ORDERS))
    value["format_version"] = 2
    with pytest.raises(MessageError, match="table schema has format version 2; this build reads 1"):
        tables.from_json(json.dumps(value).encode())


@given(st.binary())
def test_arbitrary_bytes(value: bytes) -> None:
    with pytest.raises(MessageError):
        tables.from_json(value)


@given(st.data())
def test_damaged(data: st.DataObject) -> None:
    value = bytearray(tables.to_json(ORDERS))
    value[data.draw(st.integers(0, len(value) - 1))] = data.draw(st.integers(0, 255))
    with contextlib.suppress(MessageError):
        assert isinstance(tables.from_json(bytes(value)), TableMetadata)
