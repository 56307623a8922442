"""Runs a workload's statements: many at a time where their order does not matter."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from cassandra import InvalidRequest, OperationTimedOut, Timeout, Unavailable, WriteFailure
from cassandra.cluster import NoHostAvailable

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from local_stack.clients.cql import CqlClient
    from verify.model.generator import Statement

MOST_IN_FLIGHT = 48
RETRY_SECONDS = 0.5
PASSING = (NoHostAvailable, OperationTimedOut, Timeout, Unavailable, WriteFailure)  # of nodes that come and go


class Writer:
    """`refused` counts statements that set an element of a list that was not there; `again` those that were sent once
    more, each up to `retries` times, because a node went away.
    """

    def __init__(self, client: CqlClient, keyspace: str, retries: int = 0) -> None:
        self.refused = 0
        self.sent = 0
        self.again = 0
        self._retries = retries
        self._client = client
        self._keyspace = keyspace
        self._room = threading.Semaphore(MOST_IN_FLIGHT)
        self._errors: list[tuple[str, Exception]] = []

    def write_statements(self, statements: Iterable[Statement]) -> None:
        """Returns when all are answered; raises what the first one failed with."""
        for statement in statements:
            answered = self._send(statement.cql(self._keyspace), may_be_refused=statement.may_be_refused)
            if statement.is_serial:  # conditional statements contend with each other: one at a time
                answered.wait()
            if self._errors:
                break
        self._await_answers()

    def run_prepared(self, text: str, batches: Iterable[Iterable[Sequence[object]]]) -> None:
        """As `run`: one statement, in which `$k` stands for the keyspace, with the values of each row; in batches."""
        prepared = self._client.prepare(text.replace("$k", self._keyspace))
        for rows in batches:
            self._send(self._client.batch(prepared, rows))
            if self._errors:
                break
        self._await_answers()

    def _send(self, statement: object, *, may_be_refused: bool = False) -> threading.Event:
        """What tells that it is answered; text, or what CqlClient gave."""
        answered = threading.Event()
        retries = self._retries

        def send() -> None:
            self._client.submit(statement, (), done)

        def done(error: Exception | None) -> None:
            nonlocal retries
            if isinstance(error, PASSING) and retries:
                retries -= 1
                self.again += 1
                threading.Timer(RETRY_SECONDS, send).start()
                return
            if isinstance(error, InvalidRequest) and may_be_refused:
                self.refused += 1
            elif error is not None:
                self._errors.append((str(statement), error))
            self._room.release()
            answered.set()

        self._room.acquire()
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
