"""Computes a value of each table, once for each of its states: of a thousand tables, one changes at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

    from cassandra_storage.formats.schema.tables import TableMetadata

T = TypeVar("T")


class PerTable(Generic[T]):
    """Remembers the result for the last object of each table. An unchanged table keeps its object (NodeSchema)."""

    def __init__(self, compute: Callable[[TableMetadata], T]) -> None:
        self._compute = compute
        self._known: dict[bytes, tuple[TableMetadata, T]] = {}

    def of(self, table: TableMetadata) -> T:
        """The result for this state of the table."""
        table_id = table.id.bytes
        known = self._known.get(table_id)
        if known is None or known[0] is not table:
            known = self._known[table_id] = (table, self._compute(table))
        return known[1]
