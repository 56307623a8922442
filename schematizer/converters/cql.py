"""The converter of a CQL table: the schemas that the materializer registers for the table's change topic, in the forms
that its settings have by default.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any
from uuid import UUID

from cassandra_storage.formats.errors import FormatError
from cassandra_storage.formats.schema.schema_rows import tables_from_rows
from cdc_common.messages.avro.type_forms import DEFAULT_FORMS
from cdc_common.messages.envelope import key_schema, schema_text, value_schema
from cdc_common.messages.errors import MessageError
from schematizer.converters.converted import ConversionError, Converted
from schematizer.converters.cql_statements import TableStatement, TypeStatement, read_statements

if TYPE_CHECKING:
    from cassandra_storage.formats.schema.tables import TableMetadata

_NAMESPACE = re.compile(r"(?P<prefix>[A-Za-z0-9_-]+)\.(?P<keyspace>\w+)")
_ID = UUID(int=0)  # a statement does not say it, and no schema has it


class CqlConverter:
    """The text has one CREATE TABLE, and before it the CREATE TYPE of each user type that the table uses. The namespace
    is `<topic prefix>.<keyspace>`.
    """

    def convert(self, text: str, namespace: str) -> Converted:
        found = _NAMESPACE.fullmatch(namespace)
        if found is None:
            raise ConversionError(f"the namespace {namespace} is not <topic prefix>.<keyspace>, as in cdc.shop")
        statements = read_statements(text)
        tables = [statement for statement in statements if isinstance(statement, TableStatement)]
        if len(tables) != 1:
            raise ConversionError(f"{len(tables)} CREATE TABLE statements, not one")
        types = [statement for statement in statements if isinstance(statement, TypeStatement)]
        for statement in statements:
            if statement.keyspace not in (None, found["keyspace"]):
                raise ConversionError(
                    f"{statement.keyspace}.{statement.name} is not in the keyspace of the namespace {namespace}"
                )
        table = _metadata(found["keyspace"], tables[0], types)
        try:
            value = schema_text(value_schema(table, found["prefix"], DEFAULT_FORMS))
            key = schema_text(key_schema(table, found["prefix"], DEFAULT_FORMS))
        except MessageError as error:
            raise ConversionError(str(error)) from error
        return Converted(tables[0].name, value, key, (), tables[0].comment or None)


def _metadata(keyspace: str, table: TableStatement, types: list[TypeStatement]) -> TableMetadata:
    texts = [*table.columns.values(), *(text for type_ in types for text in type_.fields.values())]
    if any("'" in text for text in texts):
        raise ConversionError(f"the table {table.name} has a custom type, whose full name only Cassandra knows")
    named: dict[str, Any] = {"keyspace_name": keyspace, "table_name": table.name}
    row = {**named, "id": _ID, "gc_grace_seconds": 0, "flags": ("compound",)}
    places = table.places()
    columns = [
        {
            **named,
            "column_name": name,
            "type": type_,
            "kind": places[name][0],
            "position": places[name][1],
            "clustering_order": "none",
        }
        for name, type_ in table.columns.items()
    ]
    type_rows = [
        {
            "keyspace_name": keyspace,
            "type_name": type_.name,
            "field_names": tuple(type_.fields),
            "field_types": tuple(type_.fields.values()),
        }
        for type_ in types
    ]
    try:
        return tables_from_rows([row], columns, type_rows, [])[_ID]
    except FormatError as error:
        raise ConversionError(f"the table {table.name}: {error}") from error
