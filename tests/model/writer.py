"""Runs a workload's statements: many at a time where their order does not matter."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from cassandra import InvalidRequest

if TYPE_CHECKING:
    from collections.abc import Iterable

    from local_stack.cql import CqlClient
    from tests.model.generator import Statement

MOST_IN_FLIGHT = 48


class Writer:
    """`refused` counts statements that set an element of a list that was not there."""

    def __init__(self, client: CqlClient, keyspace: str) -> None:
        self.refused = 0
        self.sent = 0
        self._client = client
        self._keyspace = keyspace
        self._room = threading.Semaphore(MOST_IN_FLIGHT)
        self._errors: list[tuple[str, Exception]] = []

    def run(self, statements: Iterable[Statement]) -> None:
        """Returns when all are answered; raises what the first one failed with."""
        for statement in statements:
            self._run(statement)
            if self._errors:
                break
        for _ in range(MOST_IN_FLIGHT):
            self._room.acquire()
        self._room.release(MOST_IN_FLIGHT)
        if self._errors:
            text, error = self._errors[0]
            raise RuntimeError(f"Cassandra refuses: {text}") from error

    def _run(self, statement: Statement) -> None:
        """Conditional statements contend with each other: one at a time."""
        text = statement.cql(self._keyspace)
        answered = threading.Event()

        def done(error: Exception | None) -> None:
            if isinstance(error, InvalidRequest) and statement.may_be_refused:
                self.refused += 1
            elif error is not None:
                self._errors.append((text, error))
            self._room.release()
            answered.set()

        self._room.acquire()
        self.sent += 1
        self._client.submit(text, (), done)
        if statement.is_serial:
            answered.wait()
