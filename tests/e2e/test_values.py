"""Values of every CQL type through the whole path: in bytes what SELECT gives, also where drivers and Avro differ."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from cassandra_storage.formats.types.cql_types import quoted_if_needed, type_text
from cassandra_storage.formats.types.marshal import (
    ListType,
    MapType,
    NativeType,
    SetType,
    TupleType,
    UserType,
    VectorType,
)
from dev.verify.oracle.type_values import COMPARABLE, ODD, POINT, USER_TYPES, TypeValues
from materializer.rows.shown_forms import value_form
from tests.support.cdc_common.messages.extremes import EXTREMES
from tests.support.cdc_common.messages.from_avro import serialized
from tests.support.e2e.raw_rows import ExactMessages, RawRows, raw_rows

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cassandra_storage.formats.types.marshal import CqlType
    from dev.local_stack.clients.cql import CqlClient
    from dev.local_stack.servers.addresses import Servers

pytestmark = pytest.mark.servers

KEYSPACE = "every_type"
ROWS, SEED = 150, 11
EMPTY_ELEMENT, NULL_ELEMENT = b"\0\0\0\1\0\0\0\0", b"\0\0\0\1\xff\xff\xff\xff"  # of a list
TEXT, INT, DECIMAL = NativeType("text"), NativeType("int"), NativeType("decimal")


def in_keyspace(of: UserType) -> UserType:
    """The user type, and those in it, as of the test's keyspace."""
    types = tuple(
        in_keyspace(field_type) if isinstance(field_type, UserType) else field_type for field_type in of.field_types
    )
    return replace(of, keyspace=KEYSPACE, field_types=types)


def frozen_list(of: CqlType) -> ListType:
    return ListType(of, is_multi_cell=False)


PAIR = TupleType((NativeType("date"), TEXT))
KEYS: tuple[CqlType, ...] = (
    TEXT,
    *map(NativeType, COMPARABLE),
    PAIR,
    in_keyspace(POINT),
    frozen_list(TEXT),
    VectorType(INT, 2),
)
COLUMNS: dict[str, CqlType] = {
    **{f"v_{name}": NativeType(name) for name in (*COMPARABLE, "duration")},
    "a b": TEXT,
    "größe": DECIMAL,
    "1st": INT,
    "a_b_xc868": NativeType("blob"),  # what another name is escaped to
    "v_set": SetType(NativeType("inet"), is_multi_cell=False),
    "v_map": MapType(NativeType("timestamp"), frozen_list(TEXT), is_multi_cell=False),
    "v_nested": frozen_list(MapType(DECIMAL, SetType(NativeType("varint"), is_multi_cell=False), is_multi_cell=False)),
    "v_tuple": TupleType((NativeType("date"), TEXT, NativeType("uuid"), PAIR)),
    "v_vector": VectorType(NativeType("float"), 3),
    "v_text_vector": VectorType(TEXT, 2),
    "v_odd": in_keyspace(ODD),
    "cells_point": replace(in_keyspace(POINT), is_multi_cell=True),
    "cells_list": ListType(in_keyspace(ODD), is_multi_cell=True),
    "cells_set": SetType(PAIR, is_multi_cell=True),
    **{f"keyed_{number}": MapType(of, INT, is_multi_cell=True) for number, of in enumerate(KEYS)},
}


@pytest.fixture(scope="module")
def rows(client: CqlClient, servers: Servers) -> Iterator[RawRows]:
    client.execute(
        f"CREATE KEYSPACE {KEYSPACE} WITH replication = {{'class': 'SimpleStrategy', 'replication_factor': 1}}"
    )
    for definition in USER_TYPES.values():
        fields = zip(definition.field_names, definition.field_types, strict=True)
        text = ", ".join(f"{quoted_if_needed(name)} {of}" for name, of in fields)
        client.execute(f"CREATE TYPE {KEYSPACE}.{quoted_if_needed(definition.name)} ({text})")
    with raw_rows(servers) as found:
        yield found
    client.execute(f"DROP KEYSPACE {KEYSPACE}")


class WholeValues(TypeValues):
    """Tuples with all their fields, since one that ends early comes back with nulls in the place of the rest; maps with
    each key once, which Cassandra does not look after inside of other values.
    """

    def value(self, type_: CqlType) -> bytes:
        if not isinstance(type_, MapType):
            return super().value(type_)
        entries = {self.value(type_.keys): self.value(type_.values) for _ in range(self.rng.randint(0, 2))}
        return self._collection([part for entry in entries.items() for part in entry], 2)

    def _tuple(self, types: tuple[CqlType, ...]) -> bytes:
        values = [None if self.rng.random() < 0.2 else self.value(of) for of in types]
        return b"".join(
            b"\xff\xff\xff\xff" if value is None else len(value).to_bytes(4, "big") + value for value in values
        )


def drawn() -> Iterator[dict[str, bytes]]:
    """The extremes, then random values; no boolean of a byte that Avro's does not come back to."""
    for index in range(max(map(len, EXTREMES.values()))):
        yield {f"v_{name}": found[index % len(found)] for name, found in EXTREMES.items() if f"v_{name}" in COLUMNS}
    draw = WholeValues(random.Random(SEED), is_plain=True)
    for _ in range(ROWS):
        row = {quoted_if_needed(name): draw.value(of) for name, of in COLUMNS.items()}
        yield {name: value for name, value in row.items() if name != "v_boolean" or value in (b"\0", b"\1")}


def create(rows: RawRows, table: str, key: str, columns: dict[str, CqlType]) -> None:
    described = ", ".join(f"{quoted_if_needed(name)} {type_text(of)}" for name, of in columns.items())
    rows.session.execute(f"USE {KEYSPACE}")
    rows.session.execute(f"CREATE TABLE {table} (k int, {described}, PRIMARY KEY ({key})) WITH cdc = true")


def read(servers: Servers, table: str, count: int) -> tuple[list[dict[str, Any]], dict[str, str]]:
    """The changes of a table, and the names of its columns' fields."""
    messages = ExactMessages(servers, f"{servers.topic_prefix}.{KEYSPACE}.{table}")
    try:
        found = messages.read(lambda found: len(found) >= count)
        return found, messages.cql_names()
    finally:
        messages.close()


def as_whole(of: CqlType) -> CqlType:
    """How SELECT gives it: in one value."""
    return replace(of, is_multi_cell=False) if isinstance(of, ListType | SetType | MapType | UserType) else of


def image(columns: dict[str, CqlType], names: dict[str, str], record: dict[str, Any]) -> dict[str, bytes | None]:
    values = {name: record[names[name]] for name in columns}
    return {name: None if (of := values[name]) is None else serialized(as_whole(columns[name]), of) for name in values}


def shown(of: CqlType, value: bytes | None) -> bytes | None:
    """The one form of all values that SELECT shows alike: it gives the bytes that were written, messages this form."""
    form = value_form(as_whole(of))
    return value if value is None or form is None else form(value)


def test_what_comes_out_is_what_select_gives(rows: RawRows, servers: Servers) -> None:
    create(rows, "of_columns", "k", COLUMNS)
    inserted = list(drawn())
    for key, values in enumerate(inserted):
        rows.insert("of_columns", {"k": key.to_bytes(4, "big"), **values})
    found, names = read(servers, "of_columns", len(inserted))
    came = {message["after"]["k"]: image(COLUMNS, names, message["after"]) for message in found}
    selected = rows.select("of_columns")
    assert len(came) == len(selected) == len(found) == len(inserted)
    count = 0
    for row in selected:
        key = int.from_bytes(row["k"] or b"", "big")
        for name, of in COLUMNS.items():
            assert shown(of, came[key][name]) == shown(of, row[name]), (key, name)
            count += row[name] is not None
    assert count > ROWS * 45  # empty collections are null


def test_keys_of_every_type_come_out_as_select_gives_them(rows: RawRows, servers: Servers) -> None:
    columns: dict[str, CqlType] = {f"c_{name}": NativeType(name) for name in COMPARABLE}
    columns |= {"c tuple": PAIR, "c_point": in_keyspace(POINT), "c_vector": VectorType(INT, 2)}
    create(rows, "of_keys", ", ".join(["k", *map(quoted_if_needed, columns)]), columns)
    draw = WholeValues(random.Random(SEED), is_plain=True)
    for key in range(ROWS):
        row = {quoted_if_needed(name): draw.value(of) for name, of in columns.items()}
        row["c_boolean"] = bytes((row["c_boolean"] != b"\0",))
        rows.insert("of_keys", {"k": (key % 5).to_bytes(4, "big"), **row})
    selected = {tuple(row[name] for name in columns) for row in rows.select("of_keys")}
    found, names = read(servers, "of_keys", len(selected))
    assert {tuple(image(columns, names, message["after"]).values()) for message in found} == selected
    assert len(found) == len(selected) > ROWS * 0.9


def test_what_avro_cannot_say_is_null_and_named(rows: RawRows, servers: Servers) -> None:
    never_empty = ("tinyint", "smallint", "date", "time", "duration")
    columns: dict[str, CqlType] = {name: NativeType(name) for name in COMPARABLE if name not in never_empty}
    columns["in_list"] = frozen_list(INT)
    create(rows, "of_odd", "k", {f"v_{name}": of for name, of in columns.items()})
    empty: dict[str, bytes] = dict.fromkeys((f"v_{name}" for name in columns), b"")
    empty["v_in_list"] = EMPTY_ELEMENT
    unreadable = {"v_text": b"\xed\xa0\x80", "v_decimal": b"\0\0\0\2"}  # a surrogate, no digits
    rows.insert("of_odd", {"k": b"\0\0\0\1", **empty})
    rows.insert("of_odd", {"k": b"\0\0\0\2", **unreadable})
    rows.session.execute("INSERT INTO of_odd (k, v_in_list) VALUES (3, [blobAsInt(0x)])")
    found, _ = read(servers, "of_odd", 3)
    by_key = {message["after"]["k"]: message for message in found}
    texts: dict[str, Any] = {"v_text": "", "v_ascii": "", "v_blob": b""}
    assert by_key[1]["after"] == {"k": 1, **dict.fromkeys(empty), **texts}
    named = {f"after.{name}" for name in empty.keys() - texts.keys()} - {"after.v_in_list"}
    assert set(by_key[1]["source"]["empty"]) == named
    assert by_key[1]["source"]["unreadable"] == ["after.v_in_list"]
    assert by_key[2]["after"] == {"k": 2, **dict.fromkeys(empty)}
    assert sorted(by_key[2]["source"]["unreadable"]) == ["after.v_decimal", "after.v_text"]
    assert by_key[3]["after"] == {"k": 3, **dict.fromkeys(empty)}
    assert by_key[3]["source"]["empty"] == ["after.v_in_list"]
    selected = {row["k"]: row for row in rows.select("of_odd")}
    # A bound value is read and written again: its empty element becomes null (Lists.Value.fromSerialized).
    assert selected[b"\0\0\0\1"] == {"k": b"\0\0\0\1", **empty, "v_in_list": NULL_ELEMENT}
    assert {name: selected[b"\0\0\0\2"][name] for name in unreadable} == unreadable
    assert selected[b"\0\0\0\3"]["v_in_list"] == EMPTY_ELEMENT
