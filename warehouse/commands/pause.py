"""`cassandra-warehouse pause` and `resume`: whether tables are loaded. The warehouse keeps it, for all jobs."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import click

from warehouse.faults import state_foreign, table_busy
from warehouse.job.definitions import each_definition
from warehouse.targets.connection import LoadTakenError
from warehouse.targets.open import open_loader

if TYPE_CHECKING:
    from collections.abc import Sequence

    from warehouse.records import TableName
    from warehouse.settings import Settings
    from warehouse.targets.loader import Loader

_TRIES = 20


def pause_tables(settings: Settings, topics: Sequence[str], *, paused: bool) -> None:
    """Pause the tables of these topics, or resume them. CdcError."""
    loader = open_loader(settings.warehouse)
    try:
        for topic, made in each_definition(settings, topics).items():
            table = made.table(topic, settings.warehouse.default_schema)
            now = datetime.now(UTC).isoformat(timespec="seconds")
            mark_paused(loader, table, now if paused else "")
            click.echo(f"{table} is {'paused' if paused else 'loaded again'}")
    finally:
        loader.connection.close()


def mark_paused(loader: Loader, table: TableName, paused: str) -> None:
    """Say in the table's state since when it is paused; empty if it is not. A load that has begun changes nothing
    then. CdcError.
    """
    for _ in range(_TRIES):
        try:
            if _claim(loader, table, paused):
                return
        except LoadTakenError:  # another connection of this process
            continue
        finally:
            loader.connection.release()
    raise table_busy(table)


def _claim(loader: Loader, table: TableName, paused: str) -> bool:
    state = loader.read_state(table)
    if state is None:
        raise state_foreign(table, "is missing: it was never loaded")
    if bool(state.paused) == bool(paused):
        return True
    with loader.connection.transaction(table):
        return loader.states.claim(table, state._replace(paused=paused), state.version)
