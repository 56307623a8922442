"""Find how a database's tables differ from those that the program maps."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import MetaData

from schematizer.model import search_tables, tables

if TYPE_CHECKING:
    from sqlalchemy import Connection

_INDEXES = (search_tables.SQLITE_INDEX, "ix_search_documents_words")
"""The parts of a database's own full-text search."""


def table_differences(connection: Connection) -> list[Any]:
    every = MetaData()
    for metadata in (tables.metadata, search_tables.metadata):
        for table in metadata.sorted_tables:
            table.to_metadata(every)
    context = MigrationContext.configure(connection, opts={"include_object": _is_compared})
    return list(compare_metadata(context, every))


def _is_compared(_object: object, name: str | None, *_: object) -> bool:
    return not (name or "").startswith(_INDEXES)
