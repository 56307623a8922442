"""Fields of user types and tuples as columns of their own (materializer.user_types = columns)."""

from __future__ import annotations

from dataclasses import replace
from io import BytesIO
from typing import Any

import pytest
from fastavro import schemaless_reader

from cassandra_storage.formats.schema.tables import ColumnKind, ColumnMetadata, TableMetadata
from cassandra_storage.formats.types.marshal import ListType, MapType, NativeType, TupleType, UserType
from cdc_common.messages import wire
from cdc_common.messages.avro.renames import is_misread
from cdc_common.messages.avro.type_forms import DEFAULT_FORMS
from cdc_common.messages.changes import ColumnImage, RowChange, Source
from cdc_common.messages.envelope import ChangeEncoder, value_schema
from tests.support.consumers.typed_values import number, sized
from tests.support.materializer.raw_builder import TABLE

FORMS = DEFAULT_FORMS._replace(user_types="columns")
TEXT, INT, DECIMAL = map(NativeType, ("text", "int", "decimal"))
POINT = TupleType((INT, INT))
ADDRESS = UserType(
    "ks",
    "address",
    ("street", "worth", "at", "tags"),
    (TEXT, DECIMAL, POINT, MapType(TEXT, INT, is_multi_cell=False)),
    is_multi_cell=False,
)
FREE = replace(ADDRESS, is_multi_cell=True)
HOME = (b"Elm 1", number(2, 4) + b"\x0b\xb5", sized(number(1, 4)) + sized(number(2, 4)), number(0, 4))


def table(*columns: tuple[str, Any], kind: ColumnKind = ColumnKind.REGULAR) -> TableMetadata:
    found = tuple(ColumnMetadata(name, of, kind) for name, of in columns)
    return replace(
        TABLE,
        static_columns=found if kind is ColumnKind.STATIC else (),
        regular_columns=() if kind is ColumnKind.STATIC else found,
    )


def fields(of: TableMetadata) -> dict[str, dict[str, Any]]:
    row = value_schema(of, "cdc", FORMS)["fields"][0]["type"][1]["fields"]
    return {field["name"]: field for field in row}


def after(of: TableMetadata, image: dict[str, ColumnImage]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The row, and `source`."""
    clustering = tuple(number(1, 4) for _ in of.clustering)
    change = RowChange(number(1, 4), clustering, "c", None, image, 1, Source(5, bytes(16), "CommitLog-7-1.log", 7))
    encoder = ChangeEncoder(of, "cdc", 3, 4, forms=FORMS)
    assert encoder.layout is None  # the core leaves the messages to the Python code
    message = encoder.encode(change)
    assert message is not None
    read: Any = schemaless_reader(BytesIO(message.value[wire.HEADER_SIZE :]), value_schema(of, "cdc", FORMS), None)
    assert message.unreadable == len(read["source"]["unreadable"])
    return read["after"], read["source"]


IMAGES: dict[str, tuple[UserType, ColumnImage]] = {
    "frozen": (ADDRESS, b"".join(map(sized, HOME))),
    "cells": (FREE, tuple((number(place, 2), value) for place, value in enumerate(HOME))),
}


@pytest.mark.parametrize("kind", IMAGES)
def test_each_field_has_its_own_form(kind: str) -> None:
    of, image = IMAGES[kind]
    row, _ = after(table(("home", of), ("note", TEXT)), {"home": image, "note": b"x"})
    found = {name: value for name, value in row.items() if name.startswith("home_")}
    assert found == {"home_street": "Elm 1", "home_worth": "29.97", "home_at": "[1,2]", "home_tags": "{}"}
    assert row["note"] == "x"
    assert "home" not in row


def test_the_fields_say_where_they_are_from() -> None:
    found = fields(table(("home", ADDRESS), kind=ColumnKind.STATIC))["home_street"]
    assert found == {
        "name": "home_street",
        "type": ["null", "string"],
        "default": None,
        "cqlType": "text",
        "cqlName": "home.street",
        "cqlColumn": "home",
        "static": True,
    }


def test_what_is_missing_is_null() -> None:
    of = table(("home", ADDRESS), ("free", FREE), ("pair", POINT))
    short = sized(b"Elm 1") + number(-1, 4)  # of before ALTER TYPE … ADD
    row, source = after(
        of, {"home": short, "free": ((number(1, 2), HOME[1]),), "pair": number(-1, 4) + sized(number(7, 4))}
    )
    assert (row["home_street"], row["home_worth"], row["home_at"]) == ("Elm 1", None, None)
    assert (row["free_street"], row["free_worth"]) == (None, "29.97")
    assert (row["pair_f0"], row["pair_f1"]) == (None, 7)
    assert (source["empty"], source["unreadable"]) == ([], [])


def test_an_empty_value_and_one_that_is_none_of_the_type_are_named() -> None:
    _, source = after(table(("pair", POINT)), {"pair": b""})
    assert source["empty"] == ["after.pair_f0", "after.pair_f1"]
    _, source = after(table(("pair", POINT)), {"pair": b"\0"})
    assert source["unreadable"] == ["after.pair_f0", "after.pair_f1"]


def test_columns_keep_their_names() -> None:
    of = table(("home", ADDRESS), ("home_street", INT), ("homes", ListType(ADDRESS, is_multi_cell=False)))
    found = fields(of)
    assert found["home_street"]["cqlType"] == "int"
    assert found["home_street_"]["cqlName"] == "home.street"
    assert found["homes"]["type"][1]["connect.name"] == "io.debezium.data.Json"


def test_a_renamed_field_is_misread() -> None:
    def schema(*names: str) -> dict[str, Any]:
        of = UserType("ks", "pair", names, (INT,) * len(names), is_multi_cell=False)
        return value_schema(table(("u", of)), "cdc", FORMS)

    assert not is_misread(schema("a", "b", "c"), schema("a", "b"))
    assert is_misread(schema("a", "c"), schema("a", "b"))
    assert is_misread(schema("b", "a"), schema("a", "b"))
