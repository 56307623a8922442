"""Tables that cannot be published stop none of the others: hostile names, hundreds of tables, and the bad ones beside.

The good tables are compared with SELECT before there are bad ones, with them, after the programs have started again,
and after the bad ones are dropped.
"""

from __future__ import annotations

import random
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from cdc_common.errors.codes import CdcError
from dev.local_stack.clients.change_reader import ChangeReader
from dev.local_stack.clients.compare import compare
from dev.local_stack.clients.history import History
from dev.verify.model.named_tables import bad_tables, good_tables, keyspaces, quoted
from dev.verify.model.topic_settler import TopicSettler

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from dev.local_stack.servers.stack import Stack
    from dev.verify.model.check import Run
    from dev.verify.model.named_tables import NamedTable

WRITES = 3  # of each table in each step


@dataclass(slots=True)
class NamesResult:
    """The result of a seed."""

    # The seed.
    seed: int
    # The number of good tables.
    tables: int = 0
    # The number of tables that cannot be published.
    bad: int = 0
    # The names of the tables that Cassandra itself does not make.
    refused: list[str] = field(default_factory=list)
    # The number of statements.
    statements: int = 0
    # The number of changes.
    changes: int = 0
    # The number of rows that were compared.
    rows: int = 0
    # The time that the seed took, in s.
    seconds: float = 0.0
    # A line for each problem.
    problems: list[str] = field(default_factory=list)

    @property
    def line(self) -> str:
        return (
            f"names of seed {self.seed}: {self.tables} tables, {self.bad} that cannot be published beside them "
            f"({len(self.refused)} are refused by Cassandra), {self.statements} statements, {self.changes} changes, "
            f"{self.rows} rows compared, {len(self.problems) or 'no'} problems ({self.seconds:.0f} s)"
        )


def check_names(run: Run, stack: Stack, seed: int, tables: int) -> NamesResult:
    """Run all steps, up to the first that fails; the programs run afterwards."""
    start = time.monotonic()
    check = NamesCheck(run, stack, seed, tables)
    try:
        check.run_steps()
    except (CdcError, AssertionError) as error:
        check.result.problems.append(str(error))
    check.clean_up()
    check.result.seconds = time.monotonic() - start
    return check.result


class NamesCheck:
    """The steps; `result` has what they found."""

    def __init__(self, run: Run, stack: Stack, seed: int, tables: int) -> None:
        self.result = NamesResult(seed)
        self._run = run
        self._stack = stack
        self._client = run.schema_client
        self._pick = random.Random(f"names {seed}")
        self._keyspaces = set(keyspaces(seed).values())
        self._all = list(good_tables(seed, tables))
        self._bad = list(bad_tables(seed))
        self._history = History()

    def run_steps(self) -> None:
        """Raises CdcError if a program has ended, AssertionError if nothing comes."""
        for keyspace in self._keyspaces:
            self._client.execute(f"CREATE KEYSPACE {quoted(keyspace)} WITH replication = {self._run.replication}")
        good = list(self._made(self._all))
        self.result.tables = len(good)
        with (
            TopicSettler(self._client, self._run.servers, self._run.replication, self._run.push) as settler,
            self._reader() as reader,
        ):
            self._step("at first", good, good, settler, reader)
            bad = list(self._made(self._bad))
            self.result.bad = len(bad)
            self._step("beside tables that cannot be published", [*good, *bad], good, settler, reader)
            self._restart_programs()
            self._step("after a start beside them", [*good, *bad], good, settler, reader)
            for table in bad:
                self._client.execute(f"DROP TABLE {table.full_name}")
            self._step("after they are dropped", good, good, settler, reader)
            self._restart_programs()
            self._step("after another start", good, good, settler, reader)
        self.result.problems += self._history.problems()
        self.result.changes = self._history.count

    def clean_up(self) -> None:
        """Drop the keyspaces, and start what has ended: other checks follow."""
        for keyspace in self._keyspaces:
            self._client.execute(f"DROP KEYSPACE IF EXISTS {quoted(keyspace)}")
        for program in self._stack.programs():
            if not program.is_running:
                program.start()

    def _made(self, tables: Iterable[NamedTable]) -> Iterator[NamedTable]:
        """Make the tables; yield those that Cassandra makes."""
        for table in tables:
            try:
                self._client.execute(table.create())
            except CdcError as error:
                self.result.refused.append(f"{table.full_name}: {error}")
            else:
                yield table

    def _step(
        self,
        when: str,
        written: Sequence[NamedTable],
        compared: Sequence[NamedTable],
        settler: TopicSettler,
        reader: ChangeReader,
    ) -> None:
        for table in written:
            for text in (table.first(), *(table.write(self._pick) for _ in range(WRITES))):
                self._client.execute(text)
                self.result.statements += 1
        names = [(table.keyspace, table.name) for table in compared]
        try:
            stuck = settler.wait_until_settled(names, self._stack.check)
        except (CdcError, AssertionError) as error:
            raise AssertionError(f"{when}: {error}") from error
        self.result.problems += [f"{when}: {topic}: {why}" for topic, why in stuck.items()]
        self._history.add(reader.read_all())
        result = compare(self._client, self._history, names)
        self.result.rows += result.rows
        self.result.problems += [f"{when}: {line}" for line in result.differences]

    def _restart_programs(self) -> None:
        for program in (*self._stack.publishers, self._stack.materializer):
            program.restart()

    def _reader(self) -> ChangeReader:
        servers = self._run.servers
        return ChangeReader(servers.kafka, servers.registry, servers.topic_prefix, self._is_wanted, cql_names=True)

    def _is_wanted(self, keyspace: str, _table: str) -> bool:
        return keyspace in self._keyspaces
