"""Steps of the tests of schema evolution: a table of the running stack, its changes so far, and what SELECT shows."""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from dev.local_stack.clients.change import Change
from dev.local_stack.clients.change_reader import ChangeReader
from dev.local_stack.clients.compare import compare
from dev.local_stack.clients.cql import CqlClient
from dev.local_stack.clients.history import History
from dev.local_stack.servers.addresses import Servers

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from dev.local_stack.clients.change import Record
    from dev.local_stack.clients.change_reader import ColumnNames

    MakeTable = Callable[..., "Table"]
    """The fixture `table`: a table's name and its columns beside the key."""

KEYSPACE = "evolution"
PARTITIONS = range(6)  # some in each raw partition
END = 99
MOST_SECONDS = 180.0


@dataclass
class Table:
    """A table with the key (p int, c int), whose name is also its change topic's."""

    client: CqlClient
    servers: Servers
    name: str
    changes: list[Change] = field(default_factory=list)
    _reader: ChangeReader | None = None
    _marks: int = 0

    def run(self, *statements: str) -> None:
        """Statements in which `$t` is the table."""
        for statement in statements:
            self.client.execute(statement.replace("$t", f"{KEYSPACE}.{self.name}"))

    def run_on_all(self, *statements: str) -> None:
        """Run statements as `run` does. When it returns, each is in every replica's log, before whatever is written
        later.
        """
        for statement in statements:
            self.client.execute_at_all(statement.replace("$t", f"{KEYSPACE}.{self.name}"))

    def settle(self, topic: str | None = None, clustering: str = "c") -> list[Change]:
        """Write a mark to each partition and wait for all of them: the changes until then, except the marks'."""
        self._marks += 1
        for p in PARTITIONS:
            self.run(f"INSERT INTO $t (p, {clustering}) VALUES ({p}, {END + self._marks})")
        expected = {(topic or self.name, p, END + self._marks) for p in PARTITIONS}
        found = self.wait(lambda changes: expected <= {(change.table, *mark_of(change.key)) for change in changes})
        return [change for change in found if not mark_of(change.key)[1] > END]

    def wait(self, is_enough: Callable[[list[Change]], bool]) -> list[Change]:
        """The changes that come from now on until they are enough."""
        if self._reader is None:
            self._reader = self.read()
        deadline = time.monotonic() + MOST_SECONDS
        found: list[Change] = []
        while not is_enough(found):
            assert time.monotonic() < deadline, [(change.table, change.key, change.value) for change in found]
            found += self._reader.poll(0.1)
        found += self._reader.read_all()  # what came before it, in another topic
        self.changes += found
        return found

    def read(self, columns: ColumnNames | None = None) -> ChangeReader:
        """A reader of all versions of the table's change topic."""
        return ChangeReader(
            self.servers.kafka,
            self.servers.registry,
            self.servers.topic_prefix,
            lambda keyspace, table: keyspace == KEYSPACE and table.partition("-")[0] == self.name,
            columns=columns,
        )

    def check(self, topic: str | None = None) -> None:
        """Read the topic again by its newest schema: chains hold, and the latest of each key is what SELECT shows."""
        count = len(self.changes)
        history = History()
        with self.read(lambda keyspace, _: self.client.columns(keyspace, self.name).types) as reader:
            deadline = time.monotonic() + MOST_SECONDS
            while count > 0 and time.monotonic() < deadline:
                found = reader.poll(0.2)
                count -= len(found)
                history.add(
                    replace(change, table=self.name) for change in found if change.table == (topic or self.name)
                )
        assert count == 0
        problems = list(history.problems())
        assert not problems, problems
        result = compare(self.client, history, [(KEYSPACE, self.name)])
        assert not result.differences, result.differences
        assert result.tables[f"{KEYSPACE}.{self.name}"] > 0

    def close(self) -> None:
        if self._reader is not None:
            self._reader.close()


def mark_of(key: Record) -> tuple[int, int]:
    """The two columns of a key, whatever their names are; -1 where there is no clustering."""
    p, c, *_ = *key.values(), None
    return p, -1 if c is None else c


def told(changes: Iterable[Change]) -> list[tuple[str, int | None, Record | None, Record | None]]:
    """(op, c, before, after) of changes, the images without their keys and without nulls, in the order of p and c."""
    result = []
    for change in changes:
        if change.value is not None:
            images = [_without(change.value[which], change.key) for which in ("before", "after")]
            result.append((mark_of(change.key), change.value["op"], *images))
    result.sort(key=lambda entry: entry[0])
    return [(op, c, before, after) for (_, c), op, before, after in result]


def _without(image: Record | None, key: Record) -> Record | None:
    return None if image is None else {n: v for n, v in image.items() if n not in key and v is not None}
