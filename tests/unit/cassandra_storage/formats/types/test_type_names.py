"""Types as Java class names."""

from __future__ import annotations

import pytest

from cassandra_storage.formats.errors import FormatError
from cassandra_storage.formats.types.marshal import (
    CustomType,
    ListType,
    MapType,
    NativeType,
    SetType,
    TupleType,
    UserType,
    VectorType,
)
from cassandra_storage.formats.types.type_names import NamedType, parse_type_name

P = "org.apache.cassandra.db.marshal."
INT, TEXT = NativeType("int"), NativeType("text")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"{P}Int32Type", NamedType(INT)),
        ("UTF8Type", NamedType(TEXT)),
        (f"{P}ReversedType({P}UTF8Type)", NamedType(TEXT, is_reversed=True)),
        (f"{P}ListType({P}Int32Type)", NamedType(ListType(INT, is_multi_cell=True))),
        (f"{P}FrozenType({P}SetType({P}Int32Type))", NamedType(SetType(INT, is_multi_cell=False))),
        (
            f"{P}MapType({P}UTF8Type,{P}FrozenType({P}ListType({P}Int32Type)))",
            NamedType(MapType(TEXT, ListType(INT, is_multi_cell=False), is_multi_cell=True)),
        ),
        (f"{P}TupleType({P}Int32Type,{P}UTF8Type)", NamedType(TupleType((INT, TEXT)))),
        (f"{P}VectorType({P}Int32Type , 3)", NamedType(VectorType(INT, 3))),
        (
            f"{P}UserType(ks,706f696e74,78:{P}Int32Type,79:{P}ListType({P}UTF8Type))",
            NamedType(
                UserType("ks", "point", ("x", "y"), (INT, ListType(TEXT, is_multi_cell=False)), is_multi_cell=True)
            ),
        ),
        (
            f"{P}DynamicCompositeType(a=>{P}AsciiType,b=>{P}BytesType)",
            NamedType(CustomType(f"{P}DynamicCompositeType(a=>{P}AsciiType,b=>{P}BytesType)")),
        ),
        (f"{P}LexicalUUIDType", NamedType(CustomType(f"{P}LexicalUUIDType"))),
        ("com.example.MyType", NamedType(CustomType("com.example.MyType"))),
    ],
)
def test_types(text: str, expected: NamedType) -> None:
    assert parse_type_name(text) == expected


def test_composite_key() -> None:
    found = parse_type_name(f"{P}CompositeType({P}Int32Type,{P}UTF8Type)")
    assert found.key_types == (INT, TEXT)
    assert parse_type_name(f"{P}Int32Type").key_types == (INT,)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "(",
        f"{P}ListType",
        f"{P}ListType({P}Int32Type",
        f"{P}ListType({P}Int32Type))",
        f"{P}MapType({P}Int32Type)",
        f"{P}UserType(ks,zz)",
        f"{P}UserType(ks,61,62)",
        f"{P}VectorType({P}Int32Type , 0)",
        f"{P}VectorType({P}Int32Type , 99999999999)",
        f"{P}DynamicCompositeType(a=>",
        "FrozenType(" * 200 + "Int32Type" + ")" * 200,
        "a b",
        "ü",
    ],
)
def test_no_types(text: str) -> None:
    with pytest.raises(FormatError):
        parse_type_name(text)
