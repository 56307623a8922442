"""Which value schemas read which, judged by the registry's rules, which are Apache avro's."""

from __future__ import annotations

import json
from itertools import product

import pytest

from cassandra_storage.formats.schema.tables import ColumnKind, ColumnMetadata, TableMetadata
from cassandra_storage.formats.types.marshal import CqlType, ListType, MapType, NativeType, SetType, TupleType, UserType
from cdc_common.messages.avro.resolution import can_read
from cdc_common.messages.avro.type_forms import EXACT
from cdc_common.messages.envelope import value_schema
from schematizer.avro_schemas.compatibility import Level, conflicts
from schematizer.avro_schemas.parsing import parse
from tests.support.materializer.raw_builder import TABLE

INT, TEXT, BLOB = NativeType("int"), NativeType("text"), NativeType("blob")
PAIR = UserType("ks", "pair", ("x", "y"), (INT, TEXT), is_multi_cell=False)
TYPES: dict[str, CqlType | None] = {
    "none": None,
    "int": INT,
    "bigint": NativeType("bigint"),
    "double": NativeType("double"),
    "text": TEXT,
    "blob": BLOB,
    "uuid": NativeType("uuid"),
    "decimal": NativeType("decimal"),
    "list of int": ListType(INT, is_multi_cell=True),
    "set of text": SetType(TEXT, is_multi_cell=False),
    "map of text": MapType(TEXT, INT, is_multi_cell=True),
    "map of int": MapType(INT, INT, is_multi_cell=True),
    "pair": PAIR,
    "wider pair": UserType(
        "ks", "pair", ("x", "y", "z"), (INT, TEXT, ListType(INT, is_multi_cell=False)), is_multi_cell=True
    ),
    "other pair": UserType("ks", "pair", ("x",), (TEXT,), is_multi_cell=False),
    "tuple": TupleType((INT, TEXT)),
}


def table(of: CqlType | None) -> TableMetadata:
    columns = () if of is None else (ColumnMetadata("v", of, ColumnKind.REGULAR),)
    return TableMetadata("ks", "t", TABLE.id, TABLE.partition_key, regular_columns=columns)


@pytest.mark.parametrize("names", list(product(TYPES, TYPES)), ids=" reads ".join)
def test_it_is_as_apache_avro_says(names: tuple[str, str]) -> None:
    reader, writer = (value_schema(table(TYPES[name]), "cdc", EXACT) for name in names)
    said = conflicts(Level.BACKWARD, parse(json.dumps(reader)), [(1, parse(json.dumps(writer)))])
    assert can_read(reader, writer) == (not said)


def test_some_read_and_some_do_not() -> None:
    schemas = {name: value_schema(table(of), "cdc", EXACT) for name, of in TYPES.items()}
    assert all(can_read(schemas[name], schemas[name]) for name in TYPES)
    assert can_read(schemas["bigint"], schemas["int"])
    assert not can_read(schemas["int"], schemas["bigint"])
