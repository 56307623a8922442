"""A chunk's messages by the tables that they are of: one that was made anew under its name has another id."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from cdc_messages.raw import RawMessage
from materializer.records import RawRecord

if TYPE_CHECKING:
    from collections.abc import Sequence

    from materializer.rows.catalog import TableCatalog


class TableRun(NamedTuple):
    """The messages of one table, with when each came (ms); tables that are made anew under a name have other ids."""

    table_id: bytes
    messages: list[tuple[RawRecord, RawMessage]]
    arrivals: list[int]
    is_made_anew: bool = False


def by_table(
    current: bytes | None,
    messages: Sequence[tuple[RawRecord, RawMessage]],
    arrivals: Sequence[int],
    catalog: TableCatalog,
) -> list[TableRun]:
    """The messages of the table that the state is of, then those of each that was made anew under its name.

    What still comes of a table after the first message of its successor is of rows that its drop has ended.
    """
    runs = [] if current is None else [TableRun(current, [], [])]
    for (record, message), arrival_ms in zip(messages, arrivals, strict=True):
        table_id = message.table_id
        if not runs or table_id != runs[-1].table_id:
            catalog.newest_of(table_id)  # an unknown table is waited for
            if runs and not catalog.is_newer(table_id, runs[-1].table_id):
                continue
            runs.append(TableRun(table_id, [], [], is_made_anew=bool(runs)))
        runs[-1].messages.append((record, message))
        runs[-1].arrivals.append(arrival_ms)
    return runs
