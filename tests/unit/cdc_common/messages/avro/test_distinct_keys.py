"""Two Cassandra partitions never share a change message's key."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cassandra_storage.formats.errors import FormatError
from cassandra_storage.formats.schema.tables import ColumnKind, ColumnMetadata
from cassandra_storage.formats.types.marshal import (
    CqlType,
    ListType,
    MapType,
    NativeType,
    SetType,
    TupleType,
    UserType,
    VectorType,
)
from cdc_common.messages.avro.distinct_keys import distinct_check
from cdc_common.messages.avro.type_forms import EXACT
from cdc_common.messages.changes import RowChange, Source
from cdc_common.messages.envelope import ChangeEncoder
from tests.support.materializer.raw_builder import TABLE, int_bytes

if TYPE_CHECKING:
    from collections.abc import Sequence

INT, TEXT, BOOLEAN = NativeType("int"), NativeType("text"), NativeType("boolean")
PAIR = TupleType((INT, BOOLEAN))
USER_TYPE = UserType("ks", "t", ("x", "y"), (INT, INT), is_multi_cell=False)
NULL = b"\xff\xff\xff\xff"
ONE = b"\0\0\0\4\0\0\0\1"


def sized(*values: bytes) -> bytes:
    return b"".join(len(value).to_bytes(4, "big") + value for value in values)


def listed(*values: bytes) -> bytes:
    return int_bytes(len(values)) + sized(*values)


def entry(key: bytes, value: bytes) -> bytes:
    return int_bytes(1) + sized(key, value)


# Of each type: the bytes of partition keys that Cassandra tells apart and shows alike, the one with a key first.
FORMS: list[tuple[CqlType, Sequence[bytes]]] = [
    (BOOLEAN, [b"\x01", b"\x02", b"\xff"]),
    (TupleType((INT, INT)), [ONE + NULL, ONE, ONE + b"\xff\xff\xff\xfe"]),
    (USER_TYPE, [ONE + NULL, ONE]),
    (PAIR, [ONE + sized(b"\x01"), ONE + sized(b"\x02")]),
    (ListType(BOOLEAN, is_multi_cell=False), [listed(b"\x01"), listed(b"\x07")]),
    (SetType(USER_TYPE, is_multi_cell=False), [listed(ONE + NULL), listed(ONE)]),
    (MapType(INT, BOOLEAN, is_multi_cell=False), [entry(int_bytes(1), b"\x01"), entry(int_bytes(1), b"\x03")]),
    (MapType(BOOLEAN, INT, is_multi_cell=False), [entry(b"\x01", int_bytes(1)), entry(b"\x03", int_bytes(1))]),
    (VectorType(BOOLEAN, 2), [b"\0\x01", b"\0\x02"]),
    (VectorType(TEXT, 1), [b"\x01\x01", b"\x80\x01"]),
]


def key_of(cql_type: CqlType, value: bytes, kind: ColumnKind = ColumnKind.PARTITION_KEY) -> bytes | None:
    column = ColumnMetadata("c", cql_type, kind, 0)
    table = replace(TABLE, static_columns=(), regular_columns=())
    if kind is ColumnKind.PARTITION_KEY:
        table, keys = replace(table, partition_key=(column,)), (value, (int_bytes(1),))
    else:
        table, keys = replace(table, clustering=(column,)), (int_bytes(1), (value,))
    encoded = ChangeEncoder(table, "cdc", 1, 2, forms=EXACT).encode(
        RowChange(*keys, "c", None, {}, 1, Source(1, b"h" * 16, "CommitLog-7-1.log", 1))
    )
    return None if encoded is None else encoded[0]


@pytest.mark.parametrize(("cql_type", "forms"), FORMS)
def test_one_form_of_a_partition_key_has_a_message_key(cql_type: CqlType, forms: Sequence[bytes]) -> None:
    keys = [key_of(cql_type, form) for form in forms]
    assert keys[0] is not None
    assert keys[1:] == [None] * (len(forms) - 1)


def test_all_forms_of_a_clustering_are_one_row() -> None:
    assert key_of(BOOLEAN, b"\x01", ColumnKind.CLUSTERING) == key_of(BOOLEAN, b"\x02", ColumnKind.CLUSTERING)


@pytest.mark.parametrize(
    "cql_type",
    [NativeType("decimal"), NativeType("varint"), NativeType("inet"), NativeType("float"), NativeType("blob"), TEXT],
)
def test_other_types_need_no_check(cql_type: CqlType) -> None:
    assert distinct_check(cql_type, EXACT) is None
    assert distinct_check(ListType(cql_type, is_multi_cell=False), EXACT) is None


DISTINCT = {
    "decimal": [b"\0\0\0\1\5", b"\0\0\0\1\0\5", b"\0\0\0\2\x32"],
    "varint": [b"\5", b"\0\5", b"\0\0\5"],
    "inet": [b"\1\2\3\4", bytes(10) + b"\xff\xff\1\2\3\4"],
    "double": [bytes(8), b"\x80" + bytes(7), b"\x7f\xf8" + bytes(6), b"\x7f\xf8" + bytes(5) + b"\1"],
}


@pytest.mark.parametrize("name", DISTINCT)
def test_equal_numbers_of_different_bytes_have_different_keys(name: str) -> None:
    keys = [key_of(NativeType(name), value) for value in DISTINCT[name]]
    assert None not in keys
    assert len(set(keys)) == len(keys)


@given(st.sampled_from([cql_type for cql_type, _ in FORMS]), st.lists(st.binary(max_size=24), max_size=20))
def test_different_bytes_never_have_one_key(cql_type: CqlType, values: list[bytes]) -> None:
    found: dict[bytes, bytes] = {}
    for value in (*values, *(form for form_type, forms in FORMS if form_type == cql_type for form in forms)):
        try:
            key = key_of(cql_type, value)
        except FormatError:
            continue
        if key is not None:
            assert found.setdefault(key, value) == value
