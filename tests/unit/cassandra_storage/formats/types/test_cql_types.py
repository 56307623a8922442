"""The text of types, as system_schema holds it."""

from __future__ import annotations

import contextlib
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cassandra_storage.formats.errors import FormatError
from cassandra_storage.formats.types.cql_types import UserTypeDefinition, parse_type, type_text
from cassandra_storage.formats.types.marshal import (
    CqlType,
    CustomType,
    ListType,
    MapType,
    NativeType,
    SetType,
    TupleType,
    UserType,
    VectorType,
)
from dev.verify.oracle.type_values import KEYSPACE, ODD, POINT, USER_TYPES, TypeValues

INT, TEXT, FLOAT = NativeType("int"), NativeType("text"), NativeType("float")
COMPOSITE = "org.apache.cassandra.db.marshal.DynamicCompositeType(a=>org.apache.cassandra.db.marshal.UTF8Type)"
EMPTY = "org.apache.cassandra.db.marshal.EmptyType"
OPEN_POINT = UserType(KEYSPACE, "point", POINT.field_names, POINT.field_types, is_multi_cell=True)


@pytest.mark.parametrize(
    ("text", "type_"),
    [
        ("int", INT),
        ("counter", NativeType("counter")),
        ("empty", NativeType("empty")),
        ("list<int>", ListType(INT, is_multi_cell=True)),
        ("frozen<set<text>>", SetType(TEXT, is_multi_cell=False)),
        (
            "map<text, frozen<list<int>>>",
            MapType(TEXT, ListType(INT, is_multi_cell=False), is_multi_cell=True),
        ),
        ("frozen<tuple<int, frozen<point>>>", TupleType((INT, POINT))),
        ("point", OPEN_POINT),
        ('frozen<"Odd name">', ODD),
        ("vector<float, 3>", VectorType(FLOAT, 3)),
        ("list<vector<float, 3>>", ListType(VectorType(FLOAT, 3), is_multi_cell=True)),
        (f"'{COMPOSITE}'", CustomType(COMPOSITE)),
    ],
)
def test_canonical_texts(text: str, type_: CqlType) -> None:
    assert parse_type(text, KEYSPACE, USER_TYPES) == type_
    assert type_text(type_) == text


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("varchar", "text"),
        (" LIST < Int > ", "list<int>"),
        ("tuple<int,text>", "frozen<tuple<int, text>>"),
        ("frozen<list<set<int>>>", "frozen<list<frozen<set<int>>>>"),
        ("frozen<vector<int,2>>", "vector<int, 2>"),
        ("POINT", "point"),
        ("ks.point", "point"),
        (f"'{EMPTY}'", "empty"),
    ],
)
def test_other_texts_of_a_type(text: str, canonical: str) -> None:
    assert type_text(parse_type(text, KEYSPACE, USER_TYPES)) == canonical


def test_all_within_a_frozen_type_is_frozen() -> None:
    frozen = parse_type('frozen<"Odd name">', KEYSPACE, USER_TYPES)
    assert isinstance(frozen, UserType)
    assert frozen.field_types[2] == ListType(NativeType("double"), is_multi_cell=False)  # written as list<double>


@pytest.mark.parametrize(
    "text",
    [
        *("", " ", "list", "list<>", "list<int", "list<int>>", "map<int>", "int int", "frozen<int>", "frozen<", '""'),
        *("vector<int>", "vector<int, 0>", "vector<int, x>", "other", "ks2.point", "'x", "@", "frozen<" * 3000),
    ],
)
def test_what_is_no_type(text: str) -> None:
    with pytest.raises(FormatError):
        parse_type(text, KEYSPACE, USER_TYPES)


def test_a_user_type_within_itself() -> None:
    endless = {"t": UserTypeDefinition(KEYSPACE, "t", ("f",), ("frozen<list<frozen<t>>>",))}
    with pytest.raises(FormatError, match="contains itself"):
        parse_type("t", KEYSPACE, endless)


@given(st.text("abi nt<>,.'\"1\u00e9", max_size=20))
def test_arbitrary_text_gives_a_type_or_a_format_error(text: str) -> None:
    with contextlib.suppress(FormatError):
        assert parse_type(type_text(parse_type(text, KEYSPACE, USER_TYPES)), KEYSPACE, USER_TYPES)


@given(st.integers())
def test_the_text_gives_the_type_back(seed: int) -> None:
    values = TypeValues(random.Random(seed), is_plain=True)
    for type_ in (values.type(), values.multi_cell_type()):
        assert parse_type(type_text(type_), KEYSPACE, USER_TYPES) == type_


@given(st.text(min_size=1))
def test_any_name_of_a_user_type(name: str) -> None:
    type_ = UserType(KEYSPACE, name, ("f",), (INT,), is_multi_cell=True)
    defined = {name: UserTypeDefinition(KEYSPACE, name, ("f",), ("int",))}
    assert parse_type(type_text(type_), KEYSPACE, defined) == type_
