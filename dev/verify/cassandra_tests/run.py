"""Sends the statements of cases to a stack, and drops what they made."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from cassandra import DriverException
from cassandra.cluster import NoHostAvailable
from cassandra.protocol import ErrorMessage
from cassandra.query import UNSET_VALUE

from cdc_common.errors.codes import CdcError
from dev.verify.cassandra_tests.cases import Case
from dev.verify.cassandra_tests.tester import SECOND_KEYSPACE

if TYPE_CHECKING:
    from dev.local_stack.clients.cql import CqlClient
    from dev.verify.cassandra_tests.cases import Operation

PROTOCOL = 4
TRIES = 3
REFUSALS = (CdcError, DriverException, ErrorMessage, NoHostAvailable)


@dataclass(slots=True)
class Outcome:
    """The outcome of a case."""

    # The case.
    case: Case
    # The keyspaces that it has, or had.
    keyspaces: list[str]
    # The number of statements that Cassandra took, by their kind.
    accepted: Counter[str] = field(default_factory=Counter)
    # The number of statements that Cassandra refused.
    refused: int = 0
    # The number of refusals that the test does not expect, by Cassandra's words.
    unexpected: Counter[str] = field(default_factory=Counter)
    # A line for each difference.
    problems: list[str] = field(default_factory=list)

    @property
    def has_run(self) -> bool:
        """Whether rows were written to a table with CDC."""
        return self.case.has_table and bool(self.accepted["write"])


class MisfitError(Exception):
    """A value does not fit the type of its marker."""


class Sender:
    """Sends the statements of a case, one after the other, with the client's timestamps."""

    def __init__(self, client: CqlClient, replication: str) -> None:
        self._client = client
        self._replication = replication

    def send(self, case: Case, keyspace: str) -> Outcome:
        outcome = Outcome(case, [])
        second = keyspace + SECOND_KEYSPACE
        names = [keyspace, *([second] if any(second in operation.text for operation in case.operations) else ())]
        for name in names:
            self._insist(f"CREATE KEYSPACE IF NOT EXISTS {name} WITH replication = {self._replication}")
            outcome.keyspaces.append(name)
        for operation in case.operations:
            self._send(operation, outcome)
        return outcome

    def _send(self, operation: Operation, outcome: Outcome) -> None:
        if operation.kind in {None, "read"}:
            return
        try:
            self._execute(operation)
        except MisfitError as error:
            outcome.case.skipped[str(error)] += 1
        except REFUSALS as error:
            outcome.refused += 1
            if not operation.may_fail:
                outcome.unexpected[_words(error)] += 1
        else:
            outcome.accepted[str(operation.kind)] += 1
            if operation.keyspace():
                outcome.keyspaces.append(operation.keyspace())

    def _execute(self, operation: Operation) -> None:
        text = operation.with_cdc()
        if not operation.values:
            self._client.execute(text)
            return
        prepared = self._client.prepare(text)
        markers = prepared.column_metadata
        if len(markers) != len(operation.values):
            raise MisfitError("another number of values than markers")
        values = [serialized(marker.type, value) for marker, value in zip(markers, operation.values, strict=True)]
        self._client.execute_bound(self._client.bind(prepared, values))

    def drop(self, outcome: Outcome) -> None:
        for name in outcome.keyspaces:
            self._insist(f'DROP KEYSPACE IF EXISTS "{name}"')

    def _insist(self, text: str) -> None:
        """Execute a change of the schema that can be repeated: a busy node may answer too late."""
        for tries_left in reversed(range(TRIES)):
            try:
                self._client.execute(text)
            except CdcError:
                if not tries_left:
                    raise
            else:
                return


def serialized(kind: Any, value: object) -> object:  # noqa: ANN401 - the driver's type class
    """The value's bytes; bytes for another type than a blob are taken as they are. Raises MisfitError."""
    if value is None or value is UNSET_VALUE or isinstance(value, bytes):
        return value
    try:
        data: bytes = kind.serialize(value, PROTOCOL)
    except Exception as error:  # the driver raises whatever its struct, codec or attribute raises
        raise MisfitError(f"a {type(value).__name__} for a marker of type {kind.typename}") from error
    return data


def _words(error: Exception) -> str:
    text = str(error.__cause__ or error)
    return text.partition('message="')[2].rstrip('"') or text
