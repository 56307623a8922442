"""Some cases at a time through a running stack: written, compared, dropped, and compared again."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from cdc_common.messages.topics import raw_topic
from dev.local_stack.clients.change_reader import ChangeReader
from dev.local_stack.clients.cql import CqlClient
from dev.local_stack.servers.addresses import Servers
from dev.verify.cassandra_tests.judge import by_keyspace, chains, differences, history_of, left_after_drop
from dev.verify.cassandra_tests.run import REFUSALS, Sender
from dev.verify.model.topic_settler import TopicSettler

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dev.local_stack.clients.change import Change
    from dev.verify.cassandra_tests.cases import Case
    from dev.verify.cassandra_tests.run import Outcome

AT_A_TIME = 4  # cases that are written
DROP_SECONDS = 300.0  # longer than publisher.drop_seconds
LOOKS = 3  # at rows that differ: what expires may do so between SELECT and the change
EXPIRY_SECONDS = 6.0  # the longest TTL that tests wait for


class Tools(NamedTuple):
    """The parts of the stack that a batch needs."""

    # The CQL client.
    client: CqlClient
    # The addresses of the servers.
    servers: Servers
    # Sends the statements.
    sender: Sender
    # Waits until all changes are there.
    settler: TopicSettler
    # Raises CdcError if a program has ended.
    check: Callable[[], None]


class Batch:
    """The cases, each with the keyspace that its statements are of."""

    def __init__(self, tools: Tools, cases: Sequence[tuple[Case, str]]) -> None:
        self._tools = tools
        self._cases = cases
        self._outcomes: list[Outcome] = []
        self._keyspaces: set[str] = set()
        self._changes: list[Change] = []
        self._last_columns: dict[tuple[str, str], set[str]] = {}
        self.rows = 0

    @property
    def changes(self) -> int:
        """How many changes have come out."""
        return sum(change.value is not None for change in self._changes)

    def run(self) -> list[Outcome]:
        """Return what became of each case. Raises CdcError if a program has ended, AssertionError if nothing comes."""
        with ChangeReader(
            self._tools.servers.kafka,
            self._tools.servers.registry,
            self._tools.servers.topic_prefix,
            lambda keyspace, _: keyspace in self._keyspaces,
            columns=self._columns,
            cql_names=True,
        ) as reader:
            with ThreadPoolExecutor(AT_A_TIME) as pool:
                self._outcomes += pool.map(self._send, self._cases)
            self._keyspaces |= {name for outcome in self._outcomes for name in outcome.keyspaces}
            self._compare(reader)
            with ThreadPoolExecutor(AT_A_TIME) as pool:
                list(pool.map(self._tools.sender.drop, self._outcomes))
            self._await_ends(reader)
        changes = by_keyspace(self._changes)
        for outcome in self._outcomes:
            history = history_of(change for name in outcome.keyspaces for change in changes[name])
            text = "\n".join(operation.text for operation in outcome.case.operations)
            outcome.problems += [*chains(history, text), *left_after_drop(history)]
        return self._outcomes

    def _send(self, case: tuple[Case, str]) -> Outcome:
        return self._tools.sender.send(*case)

    def _take(self, changes: list[Change]) -> None:
        self._changes += changes

    def _columns(self, keyspace: str, table: str) -> set[str]:
        """The columns of a table by which its messages are read. One that is gone keeps its last ones. If these are not
        known, its newest schema reads.
        """
        name = (keyspace, table.partition("-")[0])
        with suppress(*REFUSALS):
            self._last_columns[name] = set(self._tools.client.columns(*name).types)
        return self._last_columns.get(name, set())

    def _compare(self, reader: ChangeReader) -> None:
        found: dict[str, list[str]] = {}
        stuck: dict[str, str] = {}
        tables: list[tuple[str, str]] = []
        for look in range(LOOKS):
            if look:
                time.sleep(EXPIRY_SECONDS)
            tables = [cdc_table for cdc_table in self._tools.client.cdc_tables() if cdc_table[0] in self._keyspaces]
            stuck = self._tools.settler.wait_until_settled(tables, self._tools.check)
            self._take(reader.read_all())
            settled = [table for table in tables if self._raw_topic(table) not in stuck]
            found = self._differences(settled)
            if not any(found.values()):
                break
        for keyspace, table in tables:
            if why := stuck.get(self._raw_topic((keyspace, table))):
                owner = next(outcome for outcome in self._outcomes if keyspace in outcome.keyspaces)
                owner.problems.append(f"{keyspace}.{table}: {why}")
        for outcome in self._outcomes:
            outcome.problems += found[outcome.case.name]

    def _raw_topic(self, table: tuple[str, str]) -> str:
        return raw_topic(self._tools.servers.topic_prefix, *table)

    def _differences(self, tables: Sequence[tuple[str, str]]) -> dict[str, list[str]]:
        changes = by_keyspace(self._changes)
        found, self.rows = {}, 0
        for outcome in self._outcomes:
            history = history_of(change for name in outcome.keyspaces for change in changes[name])
            of = [table for table in tables if table[0] in outcome.keyspaces]
            lines, rows = differences(self._tools.client, history, of)
            found[outcome.case.name] = lines
            self.rows += rows
        return found

    def _await_ends(self, reader: ChangeReader) -> None:
        """Wait until no row of the dropped tables is left."""
        deadline = time.monotonic() + DROP_SECONDS
        while left_after_drop(history_of(self._changes)) and time.monotonic() < deadline:
            self._tools.check()
            time.sleep(1.0)
            self._take(reader.read_all())
