"""Columns of a relational table as fields of an Avro record."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from cdc_common.messages.avro.names import avro_name, avro_names, namespace
from schematizer.converters.converted import ConversionError, Converted, FieldDocumentation

NO_DEFAULT = object()


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table."""

    # Its name.
    name: str
    # Its Avro type as JSON, without null.
    avro: Any
    # Its type, as the database names it.
    sql_type: str
    # Whether it may be null.
    is_nullable: bool
    # A JSON value of its type, or NO_DEFAULT.
    default: Any = NO_DEFAULT
    # Its documentation.
    doc: str | None = None


@dataclass(frozen=True, slots=True)
class Table:
    """A table of a database."""

    # Its name.
    name: str
    # Its columns, in order.
    columns: Sequence[Column]
    # The names of the primary key's columns, in order.
    primary_key: Sequence[str]
    # Its documentation.
    doc: str | None = None


def convert_table(table: Table, catalogue_namespace: str) -> Converted:
    """A record of all columns, in their order. ConversionError if it has no columns, or a key of unknown columns."""
    if not table.columns:
        raise ConversionError(f"the table {table.name} has no columns")
    names = avro_names(column.name for column in table.columns)
    unknown = [name for name in table.primary_key if name not in names]
    if unknown:
        raise ConversionError(f"the primary key of {table.name} names {', '.join(unknown)}, which it does not have")
    record: dict[str, Any] = {
        "type": "record",
        "name": avro_name(table.name),
        "namespace": namespace(catalogue_namespace),
        **({"doc": table.doc} if table.doc else {}),
        "fields": [_field(column, names[column.name], table) for column in table.columns],
    }
    fields = {names[column.name]: FieldDocumentation(column.doc) for column in table.columns if column.doc}
    key = tuple(names[name] for name in table.primary_key)
    return Converted(table.name, json.dumps(record, ensure_ascii=False), None, key, table.doc, None, fields)


def _field(column: Column, name: str, table: Table) -> dict[str, Any]:
    """A nullable field is null for readers whose writer does not have it."""
    field: dict[str, Any] = {"name": name, "type": column.avro, "sqlType": column.sql_type}
    if column.is_nullable and column.name not in table.primary_key:
        field |= {"type": ["null", column.avro], "default": None}
    elif column.default is not NO_DEFAULT:
        field["default"] = column.default
    if column.doc:
        field["doc"] = column.doc
    if name != column.name:
        field["sqlName"] = column.name
    return field
