"""One node, statements with rising timestamps: the messages of each key are the model's list, one for one."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import pytest

from local_stack.compare import compare, from_avro, from_driver, key_of
from local_stack.history import History
from tests.e2e.row_model import Expected
from tests.e2e.workload import KEYSPACE, Workload

if TYPE_CHECKING:
    from collections.abc import Callable

    from local_stack.change_reader import Change, ChangeReader
    from local_stack.cql import CqlClient, TableColumns
    from tests.e2e.row_model import Image, TableModel

pytestmark = pytest.mark.servers

STATEMENTS = 5000
QUIET_SECONDS = 3.0
MOST_SECONDS = 120.0


def test_every_statement_comes_out_one_for_one(client: CqlClient, follow: Callable[[str], ChangeReader]) -> None:
    workload = Workload(client, timestamp=int(time.time() * 1e6))
    workload.run(STATEMENTS)
    workload.close()
    assert workload.count >= STATEMENTS
    expected = {
        (table, key): changes for table, model in workload.models().items() for key, changes in model.changes.items()
    }
    history = read(follow(KEYSPACE), sum(map(len, expected.values())))
    came = {key: changes for table in workload.models() for key, changes in by_plain_key(client, history, table)}
    assert came.keys() == expected.keys()
    for (table, key), changes in expected.items():
        columns = client.columns(*table.split("."))
        model = workload.models()[table]
        assert [seen(columns, model, change) for change in came[table, key]] == [
            modelled(columns, change) for change in changes
        ], f"{table} {key}"
    assert list(history.problems()) == []
    result = compare(client, history, [(KEYSPACE, table.partition(".")[2]) for table in workload.models()])
    assert result.differences == []
    assert min(result.tables.values()) > 0


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


def by_plain_key(client: CqlClient, history: History, table: str) -> list[tuple[tuple[str, Any], list[Change]]]:
    columns = client.columns(*table.split("."))
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
