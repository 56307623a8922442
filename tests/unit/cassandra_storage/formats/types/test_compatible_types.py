"""Which types a table's type reads, as AbstractType.isValueCompatibleWith has it, and which ALTER TYPE makes of it."""

from __future__ import annotations

import pytest

from cassandra_storage.formats.types.compatible_types import is_extension, reads
from cassandra_storage.formats.types.cql_types import UserTypeDefinition, parse_type

TYPES = {
    "one": UserTypeDefinition("ks", "one", ("a",), ("int",)),
    "two": UserTypeDefinition("ks", "two", ("a", "b"), ("int", "text")),
    "renamed": UserTypeDefinition("ks", "renamed", ("z", "b"), ("int", "text")),
    "within": UserTypeDefinition("ks", "within", ("o",), ("frozen<one>",)),
    "within_two": UserTypeDefinition("ks", "within_two", ("o",), ("frozen<two>",)),
}


def is_read(type_: str, written: str) -> bool:
    return reads(parse_type(type_, "ks", TYPES), parse_type(written, "ks", TYPES))


@pytest.mark.parametrize(
    ("type_", "written"),
    [
        ("int", "int"),
        ("blob", "int"),
        ("blob", "list<int>"),
        ("text", "ascii"),
        ("varint", "bigint"),
        ("uuid", "timeuuid"),
        ("list<text>", "list<ascii>"),
        ("map<int, blob>", "map<int, frozen<one>>"),
        ("frozen<list<int>>", "list<int>"),
        ("one", "two"),
        ("two", "one"),
        ("frozen<tuple<int, text>>", "two"),
        ("vector<float, 3>", "vector<float, 3>"),
        ("'some.other.Type'", "int"),
    ],
)
def test_reads(type_: str, written: str) -> None:
    assert is_read(type_, written)


@pytest.mark.parametrize(
    ("type_", "written"),
    [
        ("int", "text"),
        ("int", "blob"),
        ("int", "bigint"),
        ("ascii", "text"),
        ("timeuuid", "uuid"),
        ("int", "list<int>"),
        ("list<int>", "set<int>"),
        ("list<int>", "list<text>"),
        ("map<int, int>", "map<text, int>"),
        ("map<int, int>", "map<int, text>"),
        ("frozen<tuple<text>>", "one"),
        ("vector<float, 3>", "vector<float, 4>"),
        ("counter", "bigint"),
    ],
)
def test_does_not_read(type_: str, written: str) -> None:
    assert not is_read(type_, written)


@pytest.mark.parametrize(
    ("type_", "earlier"),
    [
        ("int", "int"),
        ("one", "one"),
        ("two", "one"),
        ("renamed", "two"),
        ("renamed", "one"),
        ("within_two", "within"),
        ("frozen<two>", "frozen<one>"),
        ("list<frozen<two>>", "list<frozen<one>>"),
        ("map<frozen<two>, int>", "map<frozen<one>, int>"),
        ("frozen<tuple<frozen<two>, int>>", "frozen<tuple<frozen<one>, int>>"),
        ("vector<float, 3>", "vector<float, 3>"),
        ("'some.other.Type'", "'some.other.Type'"),
    ],
)
def test_is_an_extension(type_: str, earlier: str) -> None:
    assert is_extension(parse_type(type_, "ks", TYPES), parse_type(earlier, "ks", TYPES))


@pytest.mark.parametrize(
    ("type_", "earlier"),
    [
        ("text", "ascii"),
        ("blob", "int"),
        ("one", "two"),
        ("within", "within_two"),
        ("two", "frozen<one>"),
        ("frozen<list<int>>", "list<int>"),
        ("list<int>", "set<int>"),
        ("frozen<tuple<int, text>>", "frozen<one>"),
        ("'some.other.Type'", "int"),
    ],
)
def test_is_no_extension(type_: str, earlier: str) -> None:
    assert not is_extension(parse_type(type_, "ks", TYPES), parse_type(earlier, "ks", TYPES))
