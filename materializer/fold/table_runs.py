"""A chunk's messages split by table. A table that was dropped and created again has another id."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    from materializer.fold.arrivals import AnyArrival  # noqa: TC004 - of a NamedTuple
    from materializer.rows.catalog import TableCatalog


class TableRun(NamedTuple):
    """Consecutive messages of one table."""

    # The table's id.
    table_id: bytes
    # The messages.
    arrivals: list[AnyArrival]
    # Whether the table replaces the one before it.
    is_recreated: bool = False


def split_by_table(current: bytes | None, arrivals: Sequence[AnyArrival], catalog: TableCatalog) -> list[TableRun]:
    """The messages of the table that the state is of, then those of each table that replaced it under its name.

    A table's messages that come after the first one of its successor are left out: the drop has deleted their rows.
    """
    runs = [] if current is None else [TableRun(current, [])]
    for arrival in arrivals:
        table_id = arrival.table_id
        if not runs or table_id != runs[-1].table_id:
            catalog.newest_of(table_id)  # CdcError for an unknown table, so that its schema is waited for
            if runs and not catalog.is_newer(table_id, runs[-1].table_id):
                continue
            runs.append(TableRun(table_id, [], is_recreated=bool(runs)))
        runs[-1].arrivals.append(arrival)
    return runs
