"""PostgreSQL with a TCP port, JVMs with Debezium's JDBC sink and with Flink, and a registry, for tests of consumers."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from dev.local_stack.process.network import free_ports
from tests.support.consumers.flink_sql import Flink
from tests.support.consumers.jdbc_sink import JdbcSinks
from tests.support.schematizer.postgresql import REQUIRED, PostgreSQL, new_folder, programs
from tests.support.schematizer.registry_process import Registry

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="session")
def postgresql() -> Iterator[PostgreSQL]:
    if programs() is None:
        if os.environ.get(REQUIRED):
            pytest.fail(f"{REQUIRED} is set, and PostgreSQL is not installed: apt-get install postgresql")
        pytest.skip("PostgreSQL is not installed: apt-get install postgresql")
    server = PostgreSQL(new_folder(), free_ports(1)[0]).start()
    yield server
    server.stop()


@pytest.fixture(scope="session")
def sinks(postgresql: PostgreSQL, tmp_path_factory: pytest.TempPathFactory) -> Iterator[JdbcSinks]:
    with JdbcSinks(tmp_path_factory.mktemp("jdbc"), "127.0.0.1", postgresql.port) as found:
        yield found


@pytest.fixture(scope="session")
def database(postgresql: PostgreSQL) -> str:
    """The name of a database that the tests of a session share: each has tables of its own."""
    return postgresql.new_database().partition("?")[0].rpartition("/")[2]


@pytest.fixture(scope="session")
def flink(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Flink]:
    with Flink(tmp_path_factory.mktemp("flink")) as running:
        yield running


@pytest.fixture(scope="session")
def shared_registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Registry]:
    running = Registry(tmp_path_factory.mktemp("registry") / "registry.db").start()
    yield running
    running.stop()
