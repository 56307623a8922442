"""SQLAlchemy models as descriptions: their tables, with docs and owners, and which of these are missing."""

from __future__ import annotations

import importlib
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from sqlalchemy import MetaData
from sqlalchemy import Table as SqlTable
from sqlalchemy.dialects import mysql, postgresql
from sqlalchemy.schema import CreateTable

from cdc_common.messages.avro.names import avro_names
from schematizer.converters.columns import convert_table
from schematizer.converters.converted import ConversionError, Converted, FieldDocumentation
from schematizer.converters.sql import SqlConverter

if TYPE_CHECKING:
    from collections.abc import Iterator

_DIALECTS = {"mysql": (mysql.dialect, "mysql"), "postgresql": (postgresql.dialect, "postgres")}


def load_metadata(place: str) -> MetaData:
    """The MetaData, or that of the declarative base, at `package.module:name`. Runs that module. ConversionError."""
    module, _, name = place.partition(":")
    try:
        found = getattr(importlib.import_module(module), name or "metadata")
    except (ImportError, AttributeError) as error:
        raise ConversionError(f"{place} cannot be imported: {error}") from error
    metadata = getattr(found, "metadata", found)
    if not isinstance(metadata, MetaData):
        raise ConversionError(f"{place} is neither a MetaData nor a declarative base")
    return metadata


def convert_model(table: SqlTable, dialect: str, namespace: str) -> Converted:
    """The table as the database has it, by its CREATE TABLE in that dialect. Its doc is its comment; its owner
    `info["owner"]`; a column's doc its comment or its `doc`, its owner and flag `info["owner"]`, `info["pii"]`.
    """
    make, parsed_by = _DIALECTS[dialect]
    text = str(CreateTable(table).compile(dialect=make()))
    described = SqlConverter(parsed_by).read(text)
    docs = {column.name: column_doc(column) for column in table.columns}
    columns = [replace(column, doc=docs[column.name]) for column in described.columns]
    converted = convert_table(replace(described, columns=columns, doc=table.comment), namespace)
    names = avro_names(column.name for column in table.columns)
    fields = {
        names[column.name]: FieldDocumentation(
            docs[column.name], column.info.get("owner"), bool(column.info.get("pii", False))
        )
        for column in table.columns
    }
    return replace(converted, owner=table.info.get("owner"), fields=fields)


def missing_documentation(metadata: MetaData) -> Iterator[str]:
    """A line for each table without a doc or an owner, and each column without a doc."""
    for table in metadata.sorted_tables:
        if not table.comment:
            yield f"{table.fullname}: the table has no comment"
        if not table.info.get("owner"):
            yield f"{table.fullname}: the table has no info['owner']"
        for column in table.columns:
            if not column_doc(column):
                yield f"{table.fullname}.{column.name}: the column has neither a comment nor a doc"


def column_doc(column: Any) -> str | None:  # noqa: ANN401 - a Column of any type
    doc: str | None = column.comment or column.doc
    return doc
