"""One seed against the running stack: statements through the real whole path, then the invariants of the design."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

from dev.local_stack.clients.change_reader import ChangeReader
from dev.local_stack.clients.compare import from_avro, key_of
from dev.local_stack.clients.cql import CqlClient
from dev.local_stack.clients.history import History
from dev.local_stack.process.lifecycle import Restartable
from dev.local_stack.servers.addresses import Servers
from dev.verify.model.generator import Course, Generator
from dev.verify.model.outcome import Outcome
from dev.verify.model.place import Places, plain_key
from dev.verify.model.raw_log import RawLog
from dev.verify.model.settle import Settler
from dev.verify.model.shapes import schema, steady_tables, tables_of
from dev.verify.model.statement import Pause
from dev.verify.model.times import LONGEST_TTL
from dev.verify.model.writer import Writer

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import TracebackType

    from dev.local_stack.clients.change import Change
    from dev.local_stack.servers.stack import Stack
    from dev.verify.model.statement import Item, Resume, SchemaChange
    from dev.verify.model.tables import Table

SINGLE = "{'class': 'SimpleStrategy', 'replication_factor': 1}"
REPLICATED = "{'class': 'NetworkTopologyStrategy', 'main': 1, 'cdc': 2}"
EXPIRY_SECONDS = LONGEST_TTL + 1.5


@dataclass(frozen=True, slots=True)
class Run:
    """The parts of the stack that a seed's run needs."""

    # The client that writes and reads.
    client: CqlClient
    # The client of a node with CDC. One without loses a table's `cdc = true` (SchemaKeyspace).
    schema_client: CqlClient
    # The addresses of the servers.
    servers: Servers
    # Cassandra's version, such as `5.0`.
    version: str
    # The replication of the keyspace, as CQL.
    replication: str
    # The job's reorder buffer, in s.
    reorder_seconds: float = 0.0
    # Makes the nodes hand over the content of their logs, where they would otherwise wait.
    push: Callable[[], None] = lambda: None
    # Whether the schema changes while it is written to.
    evolves: bool = False
    # The time for which the programs stop, in s; 0 if none does.
    pause_seconds: float = 0.0
    # The programs that may stop (publisher, kafka), by name.
    programs: Mapping[str, Restartable[Any]] = field(default_factory=dict)
    # The number of nodes with CDC that have each row; None for all.
    replicas: int | None = None

    @property
    def has_ties(self) -> bool:
        """3.11 breaks ties of what expires and what does not by the clock, 4.0 no longer (CASSANDRA-14592)."""
        return self.version != "3.11"

    def course(self) -> Course:
        return Course(self.version, evolves=self.evolves, pause_seconds=self.pause_seconds)

    def tables(self, seed: int) -> tuple[Table, ...]:
        return tables_of(self.version, seed) if self.evolves else steady_tables(self.version, seed)


@dataclass(slots=True)
class Result:
    """The result of a seed."""

    # The seed.
    seed: int
    # The number of statements.
    statements: int = 0
    # The number of rows that were compared.
    rows: int = 0
    # The number of changes that were compared.
    changes: int = 0
    # The number of changes that no write has made.
    expiries: int = 0
    # The number of raw messages.
    raw: int = 0
    # The time that the seed took, in s.
    seconds: float = 0.0
    # A line for each broken invariant.
    problems: list[str] = field(default_factory=list)


class Seed:
    """The keyspace of one seed; a context manager, which makes it and drops it afterwards."""

    def __init__(self, run: Run, seed: int, keyspace: str, tables: Sequence[Table] | None = None) -> None:
        self.run = run
        self.seed = seed
        self.keyspace = keyspace
        self.history = History()
        self.first_tables = tuple(tables or run.tables(seed))
        self._tables = {table.name: table for table in self.first_tables}  # as they are now
        self._stopped_at = 0.0
        self.raw = RawLog(run.servers, keyspace, [table.name for table in self.tables if table.is_cdc])
        self._reader = self._new_reader()
        hosts = run.replicas or len(run.servers.cassandra_hosts)
        self.settler = Settler(run.client, keyspace, self._tables, self.raw, hosts, run.push)

    def __enter__(self) -> Self:
        for statement in schema(self.tables, self.run.replication):
            self.run.schema_client.execute(statement.replace("$k", self.keyspace))
        self.raw.open()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for program in self.run.programs.values():
            program.resume()
        self.raw.close()
        self._reader.close()
        if kind is None:
            self.run.schema_client.execute(f"DROP KEYSPACE {self.keyspace}")

    @property
    def tables(self) -> tuple[Table, ...]:
        """Return the tables as they are now."""
        return tuple(self._tables.values())

    def generator(self, start_us: int | None = None) -> Generator:
        return generator_of(self.run, self.seed, self.first_tables, start_us)

    def writer(self, retries: int = 0) -> Writer:
        return Writer(self.run.client, self.keyspace, retries, change_schema=self._change_schema, disturb=self._disturb)

    def write(self, count: int, parts: int = 1, after_part: Callable[[], None] = lambda: None) -> int:
        """Write at least `count` statements, in so many parts; return how many were sent."""
        generator, writer = self.generator(), self.writer()
        for _ in range(parts):
            writer.write_statements(generator.statements(count // parts))
            after_part()
        writer.write_statements(generator.end_of_changes())
        self.settler.wait_until_settled(time.time())
        writer.write_statements(generator.late_statements())
        writer.write_statements(generator.last_statements())
        return writer.sent

    def execute(self, items: Sequence[Item]) -> None:
        self.writer().write_statements(items)

    def _change_schema(self, change: SchemaChange) -> None:
        for text in change.texts:
            self.run.schema_client.execute(text.replace("$k", self.keyspace))
        self._tables |= {table.name: table for table in change.after}

    def _disturb(self, item: Pause | Resume) -> None:
        program = self.run.programs[item.program]
        if isinstance(item, Pause):
            program.pause()
            self._stopped_at = time.monotonic()
            return
        time.sleep(max(0.0, self._stopped_at + item.seconds - time.monotonic()))
        program.resume()

    def follow_new_tables(self) -> None:
        """Compare those too whose `cdc` was switched on since the beginning."""
        self.raw.open_tables(table.name for table in self.tables if table.is_cdc)

    def read_all_rows(self) -> None:
        """Read all rows at consistency ALL, which repairs them."""
        for table in self.tables:
            for _ in self.run.client.rows(self.keyspace, table.name):
                pass

    def catch_up(self, quiet_after: float | None = None) -> None:
        """Everything written has come out, and everything that expires soon has expired; `history` has it all."""
        after = time.time() + EXPIRY_SECONDS if quiet_after is None else quiet_after
        self.settler.wait_until_settled(after + self.run.reorder_seconds)
        self.history.add(self._reader.read_all())

    def read_again(self) -> None:
        """Forget the changes: `catch_up` then reads all of them by the schemas of now, as chains need it."""
        self._reader.close()
        self._reader = self._new_reader()
        self.history = History()

    def _new_reader(self) -> ChangeReader:
        client = self.run.client
        return ChangeReader.of_keyspace(
            self.run.servers, self.keyspace, lambda _, name: client.columns(self.keyspace, name.partition("-")[0]).types
        )

    def places(self, partitions: int = 0) -> Places:
        client = self.run.client
        return Places(
            self.keyspace,
            [(table, client.columns(self.keyspace, table.name)) for table in self.tables if table.is_cdc],
            partitions,
        )

    def is_marker(self, change: Change) -> bool:
        """Whether the change is of a row by which the settler sees that all is out."""
        table = self._tables[change.table]
        columns = self.run.client.columns(self.keyspace, table.name)
        key = key_of(columns, change.key, from_avro)
        marked = (plain_key(table, columns, number) for number in self.settler.marked[table.name])
        return any(key[: len(start)] == start for start in marked)

    def expiries(self) -> int:
        """Return how many changes no write has made."""
        return sum(
            change.value["source"]["cause"] == "expiry"
            for changes in self.history.changes.values()
            for change in changes
            if change.value
        )

    def problems(self) -> tuple[list[str], int]:
        """A line for each broken invariant, and the number of rows compared."""
        outcome = Outcome(self.run.client, self.keyspace, self.tables, self.history)
        gaps = [f"{topic}-{at} {record.offset}: a mutation in quarantine" for (topic, at), record in self.raw.gaps()]
        return gaps + outcome.problems(), outcome.rows


def programs_of(stack: Stack) -> dict[str, Restartable[Any]]:
    """The programs that stop for a while in a run on one node."""
    return {"publisher": stack.publishers[0], "kafka": stack.kafka}


def generator_of(run: Run, seed: int, tables: Sequence[Table], start_us: int | None = None) -> Generator:
    start = int(time.time() * 1e6) if start_us is None else start_us
    return Generator(seed, tables, start, has_ties=run.has_ties, course=run.course())


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
