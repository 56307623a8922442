"""Tables from the rows of system_schema (org.apache.cassandra.schema.SchemaKeyspace)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias
from uuid import UUID

from cassandra_storage.schema import TableMetadata

SchemaRow: TypeAlias = Mapping[str, Any]


def tables_from_rows(
    tables: Iterable[SchemaRow],
    columns: Iterable[SchemaRow],
    types: Iterable[SchemaRow],
    dropped_columns: Iterable[SchemaRow],
    views: Iterable[SchemaRow] = (),
) -> dict[UUID, TableMetadata]:
    """The tables (and views) that rows of system_schema's tables of these names, of 3.11 to 5.0, describe."""
    raise NotImplementedError
