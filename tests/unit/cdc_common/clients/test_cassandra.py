"""The driver's exceptions become errors with a code, also those that have no class of its own."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest
from cassandra import InvalidRequest, OperationTimedOut, Unauthorized
from cassandra.cluster import NoHostAvailable
from cassandra.connection import ConnectionShutdown
from cassandra.protocol import ErrorMessage, IsBootstrappingErrorMessage, OverloadedErrorMessage
from pydantic import SecretStr

from cdc_common.clients import cassandra
from cdc_common.clients.cassandra import CassandraClient, connect, read_node
from cdc_common.errors.codes import CdcError, Code
from cdc_common.settings import CassandraSettings
from dev.local_stack.process.processes import wait_until
from tests.support.login_server import LoginServer

if TYPE_CHECKING:
    from collections.abc import Callable


class Failing:
    """cassandra.cluster.Session, which prepares and raises."""

    cluster = SimpleNamespace(metadata=SimpleNamespace(all_hosts=list))

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


def login_to(server: LoginServer) -> CassandraSettings:
    return CassandraSettings(
        contact_points=["127.0.0.1"], port=server.port, username="cdc", password=SecretStr("secret")
    )


def code_of(ask: Callable[[], object]) -> Code | None:
    try:
        ask()
    except CdcError as error:
        return error.code
    return None


def test_a_login_that_is_refused_while_the_node_starts_is_told_and_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """The node cannot read its roles yet: it answers as to a wrong password."""
    monkeypatch.setattr(cassandra, "RECONNECT_SECONDS", 0.1)
    server = LoginServer()
    settings = login_to(server)
    with connect(settings, only="127.0.0.1") as client:

        def answers_with(code: Code | None) -> Callable[[], bool]:
            return lambda: code_of(lambda: read_node(client)) is code

        assert answers_with(None)()
        server.stop()
        wait_until(answers_with(Code.CASSANDRA_UNREACHABLE), "the node is away", 5.0)
        server.refuses_logins = True
        server.start()
        wait_until(answers_with(Code.CASSANDRA_AUTH), "the login is refused", 5.0)
        server.refuses_logins = False
        wait_until(answers_with(None), "the login succeeds", 5.0)
    server.stop()


def test_a_login_that_is_refused_at_the_start_is_told() -> None:
    server = LoginServer()
    server.refuses_logins = True
    settings = login_to(server)
    with pytest.raises(CdcError, match="refuses the login as cdc") as caught, connect(settings, only="127.0.0.1"):
        pass
    assert caught.value.code is Code.CASSANDRA_AUTH
    server.stop()
