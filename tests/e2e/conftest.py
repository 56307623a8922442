"""One whole stack for all tests of this folder; they use keyspaces of their own or go on with `shop`.

The folder is a package, so that the stack ends after its last test here: an idle one takes a third of a core.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from dev.local_stack.clients import cql
from dev.local_stack.clients.change_reader import ChangeReader
from dev.local_stack.demo import shop
from dev.local_stack.servers.cassandra_options import CassandraOptions
from dev.local_stack.servers.stack import SYNC_PERIOD_MS, Stack
from dev.verify.model.__main__ import NO_SNAPSHOTS, TTL_IS_CAPPED
from tests.support.e2e.evolution import KEYSPACE, Table
from tests.support.fix_consumers import database, flink, postgresql, sinks

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator

    from dev.local_stack.clients.cql import CqlClient
    from dev.local_stack.servers.addresses import Servers
    from dev.local_stack.servers.programs import Setting
    from tests.support.e2e.evolution import MakeTable

__all__ = ["database", "flink", "postgresql", "sinks"]

# Stack's own static_rows is `include`, for tests that compare all that SELECT shows.
_FORMS = (
    "script_static_columns.accounts static_rows=leave_out",
    "evolution.types user_types=record",
    "types.exact decimals=exact varints=bytes durations=record user_types=record maps=native collections=native",
    "types.left_out static_rows=leave_out",
    "sink.stock static_rows=leave_out",
)

# Purging is soon only where gc_grace_seconds is, too.
SETTINGS: dict[str, Setting] = {
    "publisher.heartbeat_seconds": 2,
    "materializer.purge_margin_seconds": 1,
    "materializer.stalled_publisher_seconds": 20,
    "materializer.truncate_seconds": 3,
    "materializer.type_forms": ", ".join(_FORMS),
}


_LINES = 25


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Reports the last log lines of a failed test's programs: the logs are gone once the stack is closed."""
    report = yield
    given = item.funcargs.values() if report.failed and isinstance(item, pytest.Function) else ()
    for stack in given:
        for program in stack.programs() if isinstance(stack, Stack) else ():
            lines = [line for line in program.output().splitlines() if "rdkafka" not in line]
            report.sections.append((f"{program.name}: the end of its log", "\n".join(lines[-_LINES:])))
    return report


@pytest.fixture(scope="package")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    # This worker's own stack, not another worker's nor one that somebody runs beside the tests.
    os.environ["CDC_SERVERS"] = str(tmp_path_factory.mktemp("stack") / "servers.json")
    yaml = {"materialized_views_enabled": True, **NO_SNAPSHOTS}  # views are refused by name, but there
    options = CassandraOptions(commitlog_sync_period_ms=SYNC_PERIOD_MS, yaml=yaml, jvm_options=[TTL_IS_CAPPED])
    with Stack(options=options, settings=SETTINGS) as running:
        yield running


@pytest.fixture(scope="package")
def servers(stack: Stack) -> Servers:
    return stack.servers


@pytest.fixture(scope="package")
def client(servers: Servers) -> Iterator[CqlClient]:
    with cql.connect(servers.cassandra_hosts, servers.cassandra_port) as client:
        yield client


@pytest.fixture
def open_reader(servers: Servers) -> Iterator[Callable[[str], ChangeReader]]:
    """Makes readers of all changes of a keyspace, from the first one on."""
    readers: list[ChangeReader] = []

    def make(of: str) -> ChangeReader:
        readers.append(ChangeReader.of_keyspace(servers, of))
        return readers[-1]

    yield make
    for reader in readers:
        reader.close()


@pytest.fixture
def markers(client: CqlClient, servers: Servers) -> shop.Markers:
    """Marks an end of writing in the tables of `shop`, which are there then."""
    shop.create(client)
    return shop.Markers(client, servers.kafka, servers.topic_prefix)


@pytest.fixture
def table(client: CqlClient, servers: Servers) -> Iterator[MakeTable]:
    """Makes a table with the columns given beside p and c."""
    client.execute(
        f"CREATE KEYSPACE IF NOT EXISTS {KEYSPACE}"
        " WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}"
    )
    made: list[Table] = []

    def make(name: str, columns: str) -> Table:
        made.append(Table(client, servers, name))
        made[-1].run(f"CREATE TABLE $t (p int, c int, {columns}, PRIMARY KEY (p, c)) WITH cdc = true")
        return made[-1]

    yield make
    for reader in made:
        reader.close()
