"""Two nodes with CDC that hold everything twice: each change comes out once, in order, whatever comes again or late."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

from dev.local_stack.clients import cql
from dev.local_stack.clients.change_reader import ChangeReader
from dev.local_stack.servers.cassandra import CDC_DATACENTER
from dev.local_stack.servers.cassandra_options import CassandraOptions
from dev.local_stack.servers.stack import SYNC_PERIOD_MS, Stack
from dev.verify.model import duplicates
from dev.verify.model.check import Run, Seed
from dev.verify.model.statement import Statement
from tests.support.e2e.every_event import problems_of
from tests.support.e2e.evolution import KEYSPACE, Table
from tests.support.e2e.workload import Workload

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from dev.local_stack.servers.programs import Setting
    from dev.verify.model.statement import Item

pytestmark = [
    pytest.mark.servers,
    pytest.mark.timeout(400),
    pytest.mark.exhaustive,
]

REORDER_SECONDS = 3.0
STATEMENTS = 1200
LEAST_AGAIN = 20  # raw messages
REPLICATION = f"{{'class': 'NetworkTopologyStrategy', '{CDC_DATACENTER}': 2}}"
SETTINGS: dict[str, Setting] = {
    "publisher.heartbeat_seconds": 1,
    "publisher.processed_segments": "keep",
    "kafka.raw_partitions": 1,
    "materializer.reorder_seconds": REORDER_SECONDS,
}


@pytest.fixture(scope="module")
def pair() -> Iterator[tuple[Stack, Run]]:
    yaml = {"hints_flush_period_in_ms": duplicates.HINTS_FLUSH_SECONDS * 1000}
    options = CassandraOptions(commitlog_sync_period_ms=SYNC_PERIOD_MS, yaml=yaml)
    with Stack(datacenters={CDC_DATACENTER: 2}, options=options, settings=SETTINGS) as stack:
        servers = stack.servers
        with cql.connect(servers.cassandra_hosts[:1], servers.cassandra_port) as client:
            yield stack, Run(client, client, servers, "5.0", REPLICATION, reorder_seconds=REORDER_SECONDS)


def test_every_statement_comes_out_one_for_one_from_two_logs_in_other_orders(pair: tuple[Stack, Run]) -> None:
    _, run = pair
    keyspace = "every_event_twice"
    workload = Workload(run.client, keyspace, 6, int(time.time() * 1e6), replicas=2, is_in_order=False)
    with ChangeReader.of_keyspace(run.servers, keyspace) as reader:
        assert problems_of(workload, reader, STATEMENTS) == []
    run.client.execute(f"DROP KEYSPACE {keyspace}")


def test_what_comes_again_makes_no_message(pair: tuple[Stack, Run]) -> None:
    """Writes come again by hints, a read that repairs, a repair, and a publisher that has forgotten where it stood."""
    stack, run = pair
    first, second = stack.cassandra.nodes
    with Seed(run, 7, "again") as one:
        generator, writer = one.generator(), one.writer()
        writer.write_statements(generator.statements(STATEMENTS // 3))
        second.stop()
        writer.write_statements(for_one_node(generator.statements(STATEMENTS // 3)))
        first.nodetool("disablehandoff")
        writer.write_statements(for_one_node(generator.statements(STATEMENTS // 3)))  # no hints of these
        second.start()
        first.nodetool("enablehandoff")
        writer.write_statements(generator.last_statements())
        duplicates.await_hints(stack)
        one.catch_up()
        names = [table.name for table in one.tables]
        halves = names[: len(names) // 2], names[len(names) // 2 :]
        for name, again in {
            "a read at ALL": lambda: [list(run.client.rows(one.keyspace, table)) for table in halves[0]],
            "a repair": lambda: first.nodetool("repair", "--full", one.keyspace, *halves[1]),
            "a publisher without its files": lambda: duplicates.publish_anew(stack, 1),
        }.items():
            before = one.raw.count()
            assert duplicates.unexpected(one, again) == [], name
            markers = len(one.raw.places()) * len(stack.cassandra.nodes)
            assert one.raw.count() - before > markers + LEAST_AGAIN, name
        problems, compared = one.problems()
        assert problems == []
        assert compared > 100


def for_one_node(items: Iterable[Item]) -> Iterator[Statement]:
    """Those for which one of the two is enough: no conditional ones, and no batches with a batch log."""
    return (item for item in items if isinstance(item, Statement) and not item.is_serial and item.batch != "")


def test_nodes_and_publishers_learn_of_a_changed_table_at_different_moments(pair: tuple[Stack, Run]) -> None:
    stack, run = pair
    _, second = stack.cassandra.nodes
    run.client.execute(f"CREATE KEYSPACE {KEYSPACE} WITH replication = {REPLICATION}")
    t = Table(run.client, run.servers, "moments")
    t.run("CREATE TABLE $t (p int, c int, v text, w text, PRIMARY KEY (p, c)) WITH cdc = true")
    t.run_on_all(*(f"INSERT INTO $t (p, c, v, w) VALUES ({p}, 1, 'v', 'w')" for p in range(5)))
    t.settle()
    stack.publishers[1].pause()
    t.run_on_all("UPDATE $t SET v = 'V' WHERE p = 1 AND c = 1")
    t.run("ALTER TABLE $t DROP v", "ALTER TABLE $t ADD x int")
    t.run_on_all("UPDATE $t SET x = 1 WHERE p = 1 AND c = 1")
    t.settle()
    stack.publishers[1].resume()
    second.stop()
    t.run("ALTER TABLE $t DROP w", "ALTER TABLE $t ADD v text", "INSERT INTO $t (p, c, v, x) VALUES (2, 2, 'new', 2)")
    t.settle()
    second.start()
    t.run_on_all("UPDATE $t SET v = 'newer' WHERE p = 1 AND c = 1")
    duplicates.await_hints(stack)
    t.settle()
    t.check()
    t.close()
    stack.check()
