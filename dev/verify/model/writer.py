"""Runs a workload: many statements at a time where their order does not matter.

While a table is altered nothing is written to it; statements to other tables go on.
"""

from __future__ import annotations

import threading
from collections import Counter
from typing import TYPE_CHECKING

from cassandra import InvalidRequest, OperationTimedOut, Timeout, Unavailable, WriteFailure
from cassandra.cluster import NoHostAvailable

from dev.verify.model.statement import SchemaChange, Statement

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from dev.local_stack.clients.cql import CqlClient
    from dev.verify.model.statement import Item, Pause, Resume

MOST_IN_FLIGHT = 48
RETRY_SECONDS = 0.5
PASSING = (NoHostAvailable, OperationTimedOut, Timeout, Unavailable, WriteFailure)  # of nodes that come and go


class Writer:
    """`refused` counts statements that set an element of a list that was not there; `again` those that were sent once
    more, each up to `retries` times, because a node went away.

    `change_schema` and `disturb` do what the items say that are no statements.
    """

    def __init__(
        self,
        client: CqlClient,
        keyspace: str,
        retries: int = 0,
        *,
        change_schema: Callable[[SchemaChange], None] | None = None,
        disturb: Callable[[Pause | Resume], None] | None = None,
    ) -> None:
        self.refused = 0
        self.sent = 0
        self.again = 0
        self._retries = retries
        self._client = client
        self._keyspace = keyspace
        self._change_schema = change_schema
        self._disturb = disturb
        self._room = threading.Semaphore(MOST_IN_FLIGHT)
        self._in_flight: Counter[str] = Counter()  # by table
        self._answered = threading.Condition()
        self._prepared: dict[str, object] = {}
        self._errors: list[tuple[str, Exception]] = []

    def write_statements(self, items: Iterable[Item]) -> None:
        """Returns when all are answered; raises what the first one failed with."""
        for item in items:
            if isinstance(item, Statement):
                self._write(item)
            elif isinstance(item, SchemaChange):
                self._change(item)
            else:
                assert self._disturb is not None
                self._disturb(item)
            if self._errors:
                break
        self._await_answers()

    def run_prepared(self, text: str, batches: Iterable[Iterable[Sequence[object]]]) -> None:
        """Run one prepared statement with the values of each row, in batches. `$k` in it stands for the keyspace. See
        `run`.
        """
        prepared = self._client.prepare(text.replace("$k", self._keyspace))
        for rows in batches:
            self._send(self._client.batch(prepared, rows))
            if self._errors:
                break
        self._await_answers()

    def _write(self, statement: Statement) -> None:
        sent: object = statement.cql(self._keyspace)
        if statement.is_bound:
            sent = self._client.bind(self._prepare(statement.marked(self._keyspace)), statement.data())
        answered = self._send(sent, statement)
        if statement.is_serial:  # conditional statements contend with each other: one at a time
            answered.wait()

    def _prepare(self, text: str) -> object:
        if text not in self._prepared:
            self._prepared[text] = self._client.prepare(text)
        return self._prepared[text]

    def _change(self, change: SchemaChange) -> None:
        assert self._change_schema is not None
        with self._answered:
            self._answered.wait_for(lambda: not any(self._in_flight[name] for name in change.tables()))
        if not self._errors:
            self._prepared.clear()
            self._change_schema(change)

    def _send(self, sent: object, statement: Statement | None = None) -> threading.Event:
        """Send a text, or what CqlClient gave. Returns an event that is set once it is answered."""
        answered = threading.Event()
        retries = self._retries
        tables = statement.tables() if statement else ()

        def send() -> None:
            self._client.submit(sent, (), done)

        def done(error: Exception | None) -> None:
            nonlocal retries
            if isinstance(error, PASSING) and retries:
                retries -= 1
                self.again += 1
                threading.Timer(RETRY_SECONDS, send).start()
                return
            if isinstance(error, InvalidRequest) and statement is not None and statement.may_be_refused:
                self.refused += 1
            elif error is not None:
                self._errors.append((statement.script(self._keyspace) if statement else str(sent), error))
            self._room.release()
            with self._answered:
                self._in_flight.subtract(tables)
                self._answered.notify_all()
            answered.set()

        self._room.acquire()
        with self._answered:
            self._in_flight.update(tables)
        self.sent += 1
        send()
        return answered

    def _await_answers(self) -> None:
        for _ in range(MOST_IN_FLIGHT):
            self._room.acquire()
        self._room.release(MOST_IN_FLIGHT)
        if self._errors:
            text, error = self._errors[0]
            raise RuntimeError(f"Cassandra refuses: {text}") from error
