"""Finds errors in the changes of a seed: against SELECT, and in themselves.

A table whose key changed goes on in a new version of its change topic: the newest one must agree with SELECT, and in
the older ones all keys have ended.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from typing import TYPE_CHECKING

from dev.local_stack.clients.compare import compare, from_avro, key_of
from dev.local_stack.clients.history import History, chain_problems, readable

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from dev.local_stack.clients.change import Change
    from dev.local_stack.clients.cql import CqlClient, TableColumns
    from dev.verify.model.tables import Table


class Outcome:
    """`history` is read by the newest schema of each topic."""

    def __init__(self, client: CqlClient, keyspace: str, tables: Iterable[Table], history: History) -> None:
        self._client = client
        self._keyspace = keyspace
        self._tables = [table for table in tables if table.is_cdc]
        self._history = history
        self._newest = newest_topics(history)
        self.rows = 0

    def problems(self) -> list[str]:
        """A line for each broken invariant; `rows` is then the number of rows compared."""
        result = compare(self._client, self._current(), [(self._keyspace, table.name) for table in self._tables])
        self.rows = result.rows
        found = [*result.differences, *self._former_keys(), *self._chains(), *counted(self._history)]
        return found + [f"{name}: no rows to compare" for name, count in result.tables.items() if not count]

    def _current(self) -> History:
        """The changes of the newest topic of each table, under the table's name."""
        current = History()
        for (topic, _), changes in self._history.changes.items():
            if topic == self._newest[base_of(topic)]:
                current.add(replace(change, table=base_of(change.table)) for change in changes)
        return current

    def _former_keys(self) -> Iterator[str]:
        for topic in self._history.tables() - set(self._newest.values()):
            for key, _ in self._history.latest(topic):
                yield f"{topic} {readable(key)}: not deleted in a former version of the topic"

    def _chains(self) -> Iterator[str]:
        columns = {table.name: self._client.columns(self._keyspace, table.name) for table in self._tables}
        purged = {table.name for table in self._tables if table.gc_grace is not None}
        topics = {changes[0].table for changes in self._history.changes.values()}
        purged |= {base_of(topic) for topic in topics if topic != base_of(topic)}  # they have had other keys
        for (topic, _), changes in self._history.changes.items():
            name = base_of(changes[0].table)
            for problem in chain_problems(changes, may_be_purged=name in purged):
                is_current = topic == self._newest[base_of(topic)]
                key = key_text(columns[name], changes[0]) if is_current else readable(changes[0].key)
                yield f"{base_of(topic) if is_current else topic} {key}: {problem}"


def key_text(columns: TableColumns, change: Change) -> str:
    return str(key_of(columns, change.key, from_avro))


def base_of(topic: str) -> str:
    """The table of a change topic of whatever version: `again-v2` is of `again`."""
    return topic.partition("-")[0]


def newest_topics(history: History) -> dict[str, str]:
    """Return, by table, the topic with the newest message."""
    latest: dict[str, int] = defaultdict(int)
    for (topic, _), changes in history.changes.items():
        latest[topic] = max(latest[topic], *(change.value["ts_ms"] for change in changes if change.value))
    found: dict[str, str] = {}
    for topic in sorted(latest, key=lambda name: latest[name]):
        found[base_of(topic)] = topic
    return found


def counted(history: History) -> list[str]:
    """A delete is followed by one tombstone, and every kind of change has come."""
    values = [change.value for changes in history.changes.values() for change in changes if change.value]
    deletes = sum(value["op"] == "d" for value in values)
    found = [] if deletes == history.tombstones else [f"{deletes} deletes, but {history.tombstones} tombstones"]
    if not {"c", "u", "d"} <= {value["op"] for value in values}:
        found.append("not every operation has come")
    return found
