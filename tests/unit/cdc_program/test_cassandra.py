"""What the driver raises comes as an error with a code, also what it raises under no class of its own."""

from __future__ import annotations

from typing import Any, cast

import pytest
from cassandra import InvalidRequest, OperationTimedOut, Unauthorized
from cassandra.cluster import NoHostAvailable
from cassandra.connection import ConnectionShutdown
from cassandra.protocol import ErrorMessage, IsBootstrappingErrorMessage, OverloadedErrorMessage

from cdc_program.cassandra import CassandraClient
from cdc_program.errors import CdcError, Code


class Failing:
    """cassandra.cluster.Session, which prepares and raises."""

    def __init__(self, error: Exception) -> None:
        self._error = error

    def prepare(self, query: str) -> str:
        return query

    def execute(self, *_: object) -> None:
        raise self._error


def told(kind: type[ErrorMessage]) -> ErrorMessage:
    return kind(kind.error_code, "not now", None)


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (ConnectionShutdown("gone"), Code.CASSANDRA_UNREACHABLE),
        (OperationTimedOut({}), Code.CASSANDRA_UNREACHABLE),
        (NoHostAvailable("none", {}), Code.CASSANDRA_UNREACHABLE),
        (told(IsBootstrappingErrorMessage), Code.CASSANDRA_UNREACHABLE),
        (told(OverloadedErrorMessage), Code.CASSANDRA_UNREACHABLE),
        (Unauthorized("no"), Code.CASSANDRA_AUTH),
        (InvalidRequest("what?"), Code.CASSANDRA_QUERY),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else None,
)
def test_every_error_of_the_driver_has_a_code(error: Exception, code: Code) -> None:
    client = CassandraClient(cast("Any", Failing(error)), "127.0.0.1")
    for ask in (client.rows, client.write):
        with pytest.raises(CdcError) as caught:
            ask("SELECT * FROM system.local")
        assert caught.value.code is code
