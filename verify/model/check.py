"""One seed against the running stack: statements through the real whole path, then the invariants of the design."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Self

from local_stack.clients.change_reader import ChangeReader
from local_stack.clients.compare import compare
from local_stack.clients.cql import CqlClient
from local_stack.clients.history import History
from local_stack.servers.addresses import Servers
from verify.model.generator import LONGEST_TTL, Generator
from verify.model.raw_log import RawLog
from verify.model.settle import Settler
from verify.model.tables import schema, tables_of
from verify.model.writer import Writer

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import TracebackType

    from verify.model.generator import Statement
    from verify.model.tables import Table

SINGLE = "{'class': 'SimpleStrategy', 'replication_factor': 1}"
REPLICATED = "{'class': 'NetworkTopologyStrategy', 'main': 1, 'cdc': 2}"
EXPIRY_SECONDS = LONGEST_TTL + 1.5


@dataclass(frozen=True, slots=True)
class Run:
    """What a seed's run needs of the stack that serves it; `push` as Settler's.

    `schema_client` speaks to a node with CDC: one without loses a table's `cdc = true` (SchemaKeyspace).
    """

    client: CqlClient
    schema_client: CqlClient
    servers: Servers
    version: str
    replication: str
    reorder_seconds: float = 0.0
    push: Callable[[], None] = lambda: None

    @property
    def has_ties(self) -> bool:
        """3.11 breaks ties of what expires and what does not by the clock, 4.0 no longer (CASSANDRA-14592)."""
        return self.version != "3.11"


@dataclass(slots=True)
class Result:
    """`problems`: a line for each broken invariant; `rows` and `changes`: how much was compared."""

    seed: int
    statements: int = 0
    rows: int = 0
    changes: int = 0
    expiries: int = 0
    raw: int = 0
    seconds: float = 0.0
    problems: list[str] = field(default_factory=list)


class Seed:
    """The keyspace of one seed; a context manager, which makes it and drops it afterwards."""

    def __init__(self, run: Run, seed: int, keyspace: str, tables: Sequence[Table] | None = None) -> None:
        self.run = run
        self.seed = seed
        self.keyspace = keyspace
        self.tables = tuple(tables or tables_of(run.version))
        self.history = History()
        self.raw = RawLog(run.servers, keyspace, [table.name for table in self.tables if table.is_cdc])
        self._reader = ChangeReader.of_keyspace(run.servers, keyspace)
        hosts = len(run.servers.cassandra_hosts)
        self.settler = Settler(run.client, keyspace, self.tables, self.raw, hosts, run.push)

    def __enter__(self) -> Self:
        for statement in schema(self.tables, self.run.replication):
            self.run.schema_client.execute(statement.replace("$k", self.keyspace))
        self.raw.open()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.raw.close()
        self._reader.close()
        if kind is None:
            self.run.schema_client.execute(f"DROP KEYSPACE {self.keyspace}")

    def write(self, count: int) -> int:
        """How many statements were sent."""
        generator = Generator(self.seed, self.tables, int(time.time() * 1e6), has_ties=self.run.has_ties)
        writer = Writer(self.run.client, self.keyspace)
        writer.write_statements(generator.statements(count))
        self.settler.wait_until_settled(time.time())
        writer.write_statements(generator.late_statements())
        writer.write_statements(generator.last_statements())
        return writer.sent

    def execute(self, statements: Sequence[Statement]) -> None:
        Writer(self.run.client, self.keyspace).write_statements(statements)

    def read_all_rows(self) -> None:
        """At consistency ALL, which repairs."""
        for table in self.tables:
            for _ in self.run.client.rows(self.keyspace, table.name):
                pass

    def catch_up(self, quiet_after: float | None = None) -> None:
        """Everything written has come out, and everything that expires soon has expired; `history` has it all."""
        after = time.time() + EXPIRY_SECONDS if quiet_after is None else quiet_after
        self.settler.wait_until_settled(after + self.run.reorder_seconds)
        self.history.add(self._reader.read_all())

    def expiries(self) -> int:
        """How many changes no write has made."""
        return sum(
            change.value["source"]["cause"] == "expiry"
            for changes in self.history.changes.values()
            for change in changes
            if change.value
        )

    def problems(self) -> tuple[list[str], int]:
        """A line for each broken invariant, and the number of rows compared."""
        names = [(self.keyspace, table.name) for table in self.tables if table.is_cdc]
        result = compare(self.run.client, self.history, names)
        problems = [*result.differences, *self.history.problems(), *counted(self.history)]
        problems += [f"{name}: no rows to compare" for name, count in result.tables.items() if not count]
        return problems, result.rows


def counted(history: History) -> list[str]:
    """A delete is followed by one tombstone, and every kind of change has come."""
    values = [change.value for changes in history.changes.values() for change in changes if change.value]
    deletes = sum(value["op"] == "d" for value in values)
    found = [] if deletes == history.tombstones else [f"{deletes} deletes, but {history.tombstones} tombstones"]
    if {"c", "u", "d"} != {value["op"] for value in values}:
        found.append("not every operation has come")
    return found


def check(
    run: Run,
    seed: int,
    statements: int,
    keyspace: str | None = None,
    afterwards: Callable[[Seed], list[str]] = lambda _: [],
) -> Result:
    """Run a seed and compare; `afterwards` may go on with it and tell more problems."""
    start = time.monotonic()
    result = Result(seed)
    with Seed(run, seed, keyspace or f"model_{seed}") as one:
        result.statements = one.write(statements)
        one.read_all_rows()
        one.catch_up()
        result.problems, result.rows = one.problems()
        result.problems += afterwards(one)
        result.changes = one.history.count
        result.expiries = one.expiries()
        result.raw = sum(map(len, one.raw.records.values()))
    result.seconds = time.monotonic() - start
    return result
