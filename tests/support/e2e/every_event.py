"""Every event: on one node, statements with rising timestamps come out one for one, as a model of CQL says."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from dev.local_stack.clients.compare import compare, from_avro, from_driver, key_of
from dev.local_stack.clients.history import History
from tests.support.e2e.row_model import Expected
from tests.support.e2e.workload import Workload

if TYPE_CHECKING:
    from dev.local_stack.clients.change import Change
    from dev.local_stack.clients.change_reader import ChangeReader
    from dev.local_stack.clients.cql import CqlClient, TableColumns
    from tests.support.e2e.row_model import Image, TableModel

QUIET_SECONDS = 3.0
MOST_SECONDS = 240.0


def event_problems(
    client: CqlClient, reader: ChangeReader, keyspace: str, seed: int, count: int, *, late_seconds: float = 0.0
) -> list[str]:
    """A line for each key whose changes are not the model's, and for each broken chain or row that SELECT contradicts.

    `reader` follows the keyspace, which is made here. late_seconds: as Workload's; more than 0 needs a reorder buffer.
    """
    start = int(time.time() * 1e6)
    workload = Workload(client, keyspace, seed, start, is_in_order=not late_seconds, late_seconds=late_seconds)
    return problems_of(workload, reader, count)


def problems_of(workload: Workload, reader: ChangeReader, count: int) -> list[str]:
    """Run the workload, and return what `event_problems` finds."""
    client, keyspace = workload.client, workload.keyspace
    workload.run(count)
    workload.close()
    expected = {
        (table, key): changes for table, model in workload.models().items() for key, changes in model.changes.items()
    }
    columns = {table: client.columns(*table.split(".")) for table in workload.models()}
    history = read(reader, sum(map(len, expected.values())))
    came = {key: changes for table in columns for key, changes in by_plain_key(columns[table], history, table)}
    problems = [f"{table} {key}: came, and must not" for table, key in came.keys() - expected.keys()]
    for (table, key), changes in expected.items():
        of, model = columns[table], workload.models()[table]
        told = [seen(of, model, change) for change in came.get((table, key), [])]
        if told != [modelled(of, change) for change in changes]:
            problems.append(f"{table} {key}: not every event, {len(told)} of {len(changes)}")
    result = compare(client, history, [(keyspace, table.partition(".")[2]) for table in workload.models()])
    problems += [*history.problems(), *result.differences]
    return problems + [f"{name}: no rows" for name, rows in result.tables.items() if not rows]


def read(reader: ChangeReader, count: int) -> History:
    """All that comes until nothing does for a while after `count` changes, so that a surplus is seen too."""
    history = History()
    start = last = time.monotonic()
    while history.count < count or time.monotonic() - last < QUIET_SECONDS:
        changes = reader.poll(0.2)
        history.add(changes)
        now = time.monotonic()
        last = now if changes else last
        assert now - start < MOST_SECONDS, f"{history.count} of {count} changes have come"
    return history


def by_plain_key(columns: TableColumns, history: History, table: str) -> list[tuple[tuple[str, Any], list[Change]]]:
    return [
        ((table, key_of(columns, changes[0].key, from_avro)), changes)
        for (name, _), changes in history.changes.items()
        if name == table
    ]


def seen(columns: TableColumns, model: TableModel, change: Change) -> Expected:
    """Operation and images of a message in plain form, without the key's columns."""
    assert change.value is not None

    def image(which: str) -> Image | None:
        record = change.value and change.value[which]
        return record and {name: from_avro(columns.types[name], record[name]) for name in model.columns}

    return Expected(change.value["op"], image("before"), image("after"))


def modelled(columns: TableColumns, change: Expected) -> Expected:
    def image(values: Image | None) -> Image | None:
        return values and {name: from_driver(columns.types[name], value) for name, value in values.items()}

    return Expected(change.op, image(change.before), image(change.after))
