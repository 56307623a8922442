from __future__ import annotations

import json
import struct
from dataclasses import replace
from io import BytesIO
from typing import Any
from uuid import UUID

import avro.schema
import pytest
from avro.compatibility import ReaderWriterCompatibilityChecker, SchemaCompatibilityType
from fastavro import parse_schema, schemaless_reader
from hypothesis import assume, given
from hypothesis import strategies as st

from cassandra_storage.formats.schema.tables import ColumnKind, ColumnMetadata, TableMetadata
from cassandra_storage.formats.types.marshal import (
    CqlType,
    CustomType,
    ListType,
    MapType,
    NativeType,
    TupleType,
    UserType,
)
from cdc_common.messages.avro.cql_types import AvroTypes
from cdc_common.messages.avro.type_forms import EXACT
from cdc_common.messages.envelope import key_schema, value_schema
from cdc_common.messages.errors import MessageError
from tests.support.cdc_common.messages.cql_values import NATIVE, values
from tests.support.cdc_common.messages.from_avro import without_logical_types
from tests.support.cdc_common.messages.strategies import TYPES, whole_tables
from tests.support.cdc_common.messages.strategies import tables as table_metadata

TEXT, INT, DECIMAL = NativeType("text"), NativeType("int"), NativeType("decimal")
ADDRESS = UserType("shop", "address", ("street", "zip"), (TEXT, INT), is_multi_cell=True)
TABLE = TableMetadata(
    "shop",
    "orders",
    UUID(int=1),
    (ColumnMetadata("id", INT, ColumnKind.PARTITION_KEY, 0),),
    regular_columns=(
        ColumnMetadata("total", DECIMAL, ColumnKind.REGULAR),
        ColumnMetadata("address", ADDRESS, ColumnKind.REGULAR),
    ),
)


def read(schema: Any, data: bytes) -> Any:  # noqa: ANN401  any value
    stream = BytesIO(data)
    value = schemaless_reader(stream, without_logical_types(schema), None)
    assert stream.tell() == len(data)
    return value


@pytest.mark.parametrize("name", sorted(NATIVE))
@given(data=st.data())
def test_native_types_keep_every_value(name: str, data: st.DataObject) -> None:
    serialized, expected = data.draw(NATIVE[name])
    avro_type = AvroTypes("t", EXACT).column("c", NativeType(name))
    assert read(avro_type.schema, avro_type.encode(serialized)) == expected


@given(TYPES, st.data())
def test_all_types_keep_every_value(cql_type: CqlType, data: st.DataObject) -> None:
    serialized, expected = data.draw(values(cql_type))
    avro_type = _avro_type(cql_type)
    assert read(avro_type.schema, avro_type.encode(serialized)) == expected


def _avro_type(cql_type: CqlType) -> Any:  # noqa: ANN401  an AvroType, or none
    try:
        return AvroTypes("t", EXACT).column("c", cql_type)
    except MessageError as error:
        assume("two user types" not in error.reason)
        raise


@pytest.mark.parametrize(("name", "bits"), [("float", "ffc00001"), ("double", "7ff8000000000001")])
def test_a_nan_keeps_its_bits(name: str, bits: str) -> None:
    assert AvroTypes("t", EXACT).column("c", NativeType(name)).encode(bytes.fromhex(bits)) == bytes.fromhex(bits)[::-1]


@pytest.mark.parametrize(
    ("name", "number", "size"),
    [("timestamp", 253_402_300_800_000, 8), ("date", 2**32 - 1, 4), ("date", 0, 4)],
)
def test_fastavro_cannot_convert_dates_outside_pythons_years(name: str, number: int, size: int) -> None:
    """The bytes are right (the tests above): readers that convert to Python's types have to leave that out."""
    avro_type = AvroTypes("t", EXACT).column("c", NativeType(name))
    data = avro_type.encode(number.to_bytes(size, "big"))
    with pytest.raises((OverflowError, ValueError)):
        schemaless_reader(BytesIO(data), avro_type.schema, None)
    assert isinstance(read(avro_type.schema, data), int)


@whole_tables
@given(table_metadata())
def test_schemas_are_valid(table: TableMetadata) -> None:
    for make in (key_schema, value_schema):
        try:
            schema = make(table, "cdc", EXACT)
        except MessageError as error:
            assume("two user types" not in error.reason)
            raise
        parse_schema(schema)
        avro.schema.parse(json.dumps(schema))


def test_a_record_used_twice_is_defined_once() -> None:
    types = AvroTypes("t", EXACT)
    first, second = types.column("a", ADDRESS), types.column("b", ListType(ADDRESS, is_multi_cell=True))
    assert isinstance(first.schema, dict)
    assert first.schema["namespace"] == "t.types"
    assert second.schema == {"type": "array", "items": "t.types.address"}
    assert isinstance(types.column("c", DECIMAL).schema, dict)
    assert types.column("d", DECIMAL).schema == "cassandra_cdc.Decimal"


def test_names_come_from_the_place() -> None:
    pair = TupleType((INT, MapType(INT, TupleType((TEXT,)), is_multi_cell=False)))
    schema = AvroTypes("cdc.shop.orders", EXACT).column("pairs", ListType(pair, is_multi_cell=True)).schema
    assert isinstance(schema, dict)
    of = schema["items"]
    entry = of["fields"][1]["type"][1]["items"]
    assert (of["namespace"], of["name"]) == ("cdc.shop.orders.columns.pairs.element", "Tuple")
    assert (entry["namespace"], entry["name"]) == ("cdc.shop.orders.columns.pairs.element.f1", "Entry")
    assert entry["fields"][1]["type"]["namespace"] == "cdc.shop.orders.columns.pairs.element.f1.value"


def test_user_types_of_one_name_that_differ() -> None:
    types = AvroTypes("t", EXACT)
    types.column("a", ADDRESS)
    with pytest.raises(MessageError, match="two user types address"):
        types.column("b", replace(ADDRESS, field_types=(TEXT, TEXT)))


def test_fields_of_a_user_type_that_this_schema_does_not_have() -> None:
    with pytest.raises(MessageError, match="field 2 of a user type that has 2"):
        AvroTypes("t", EXACT).column("a", ADDRESS).encode(((struct.pack(">H", 2), b"x"),))


def test_custom_types_are_bytes() -> None:
    avro_type = AvroTypes("t", EXACT).column("a", CustomType("org.example.X"))
    assert avro_type.schema == {"type": "bytes", "cqlType": "'org.example.X'"}


def test_an_unknown_native_type() -> None:
    with pytest.raises(MessageError, match="CQL type money"):
        AvroTypes("t", EXACT).column("a", NativeType("money"))


def _reads(reader: TableMetadata, writer: TableMetadata) -> SchemaCompatibilityType:
    checker: Any = ReaderWriterCompatibilityChecker  # its annotations do not fit its own use
    schemas = [avro.schema.parse(json.dumps(value_schema(table, "cdc", EXACT))) for table in (reader, writer)]
    compatibility: SchemaCompatibilityType = checker().get_compatibility(*schemas).compatibility
    return compatibility


@given(TYPES, st.sampled_from(["aaa", "zzz", "größe"]), st.booleans())
def test_adding_a_column_is_backward_compatible(cql_type: CqlType, name: str, is_static: bool) -> None:  # noqa: FBT001
    kind = ColumnKind.STATIC if is_static else ColumnKind.REGULAR
    _avro_type(cql_type)
    column = ColumnMetadata(name, cql_type, kind)
    clustered = replace(TABLE, clustering=(ColumnMetadata("at", INT, ColumnKind.CLUSTERING, 0),))
    older = replace(clustered, static_columns=(ColumnMetadata("s", INT, ColumnKind.STATIC),))
    if is_static:
        newer = replace(older, static_columns=(*older.static_columns, column))
    else:
        newer = replace(older, regular_columns=(column, *older.regular_columns))
    assert _reads(newer, older) is SchemaCompatibilityType.compatible
    assert _reads(older, newer) is SchemaCompatibilityType.compatible
    assert key_schema(newer, "cdc", EXACT) == key_schema(older, "cdc", EXACT)


def test_adding_a_field_to_a_user_type_is_backward_compatible() -> None:
    wider = replace(ADDRESS, field_names=(*ADDRESS.field_names, "city"), field_types=(*ADDRESS.field_types, TEXT))
    newer = replace(TABLE, regular_columns=(TABLE.regular_columns[0], replace(TABLE.regular_columns[1], type=wider)))
    assert _reads(newer, TABLE) is SchemaCompatibilityType.compatible


def test_another_type_is_not_compatible() -> None:
    """The judge can say no."""
    other = replace(TABLE, regular_columns=(replace(TABLE.regular_columns[0], type=TEXT), TABLE.regular_columns[1]))
    assert _reads(other, TABLE) is SchemaCompatibilityType.incompatible
