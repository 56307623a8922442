"""Gives the place of a table to one that was loaded beside it, in one transaction."""

from __future__ import annotations

from typing import TYPE_CHECKING

from warehouse.targets.connection import LoadTakenError
from warehouse.targets.statements import drop_tables, swap_tables

if TYPE_CHECKING:
    from warehouse.records import State, TableName
    from warehouse.targets.loader import Loader


def beside(table: TableName) -> TableName:
    """The table that is loaded beside another one."""
    return table._replace(table=f"{table.table}__new")


def is_behind(known: State | None, made: State) -> bool:
    """Whether the table has messages of the same topic that the one beside it has not."""
    if known is None or known.topic_id != made.topic_id:
        return False
    return any(made.offsets.get(number, 0) < offset for number, offset in known.offsets.items())


def swap(loader: Loader, table: TableName) -> bool:
    """Swap the tables; False if the one beside is behind, or a load was faster. CdcError."""
    made, known = loader.read_state(beside(table)), loader.read_state(table)
    if made is None or is_behind(known, made):
        return False
    try:
        with loader.connection.transaction(table):
            _move_state(loader, table, known, made)
            grants = loader.connection.grants(table)
            for statement in (*swap_tables(table, beside(table), loader.form), *grants):
                loader.connection.run(statement)
    except LoadTakenError:
        return False
    return True


def drop(loader: Loader, table: TableName) -> None:
    """Drop a table with its state. CdcError. LoadTakenError."""
    with loader.connection.transaction(table):
        state = loader.read_state(table)
        if state is not None and not loader.states.delete(table, state.version):
            raise LoadTakenError(str(table))
        for statement in drop_tables(table):
            loader.connection.run(statement)


def _move_state(loader: Loader, table: TableName, known: State | None, made: State) -> None:
    """Claim both states. LoadTakenError."""
    paused = "" if known is None else known.paused
    states, after = loader.states, made._replace(paused=paused)
    is_mine = states.insert(table, after) if known is None else states.claim(table, after, known.version)
    if not is_mine or not states.delete(beside(table), made.version):
        raise LoadTakenError(str(table))
