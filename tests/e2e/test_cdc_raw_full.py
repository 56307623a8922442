"""cdc_raw filled to its limit on purpose: forecast in time, nothing lost, and the node accepts writes again."""

from __future__ import annotations

import json
import logging
import time
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from cdc_common.errors.codes import CdcError, Code
from dev.local_stack.clients import cql
from dev.local_stack.clients.change_reader import ChangeReader
from dev.local_stack.clients.compare import compare
from dev.local_stack.clients.history import History
from dev.local_stack.servers.cassandra import CDC_DATACENTER
from dev.local_stack.servers.cassandra_options import CassandraOptions
from dev.local_stack.servers.stack import SYNC_PERIOD_MS, Stack
from dev.verify.model.duplicates import await_hints
from dev.verify.model.push import pusher
from tests.support.e2e.publisher_status import read_status
from tests.support.filler.nodes import let_fillers_flush

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from dev.local_stack.clients.cql import CqlClient

log = logging.getLogger(__name__)
pytestmark = [pytest.mark.servers, pytest.mark.timeout(1200), pytest.mark.exhaustive]

TOTAL_MIB, SEGMENT_MIB = 40, 1
WRITE_BYTES, WRITES_PER_SECOND = 31 * 1024, 20  # 32 to a segment, 0.6 MiB/s: full in about a minute
MOST_SECONDS = 300.0
FLUSH_SECONDS = 5  # until then 3.11 hands no segment over
NEAR = 0.2  # of the time that is left at half full
RETRY = 0.5
MISSED = 60  # rows that only the other datacenter has taken
MARKS = 40  # rows after all others, in each raw partition some
SIMPLE = "{'class': 'SimpleStrategy', 'replication_factor': 1}"
REPLICATED = f"{{'class': 'NetworkTopologyStrategy', 'main': 1, '{CDC_DATACENTER}': 1}}"
WITHOUT_HINTS = "4.0"  # for what a replica refused


@pytest.fixture(params=["5.0", "4.0", "3.11"])
def stack(request: pytest.FixtureRequest) -> Iterator[Stack]:
    yield from stacks(request.param)


@pytest.fixture(params=["4.0", "5.0", "3.11"])
def two_datacenters(request: pytest.FixtureRequest) -> Iterator[Stack]:
    yield from stacks(request.param, {"main": 1, CDC_DATACENTER: 1})


def stacks(version: str, datacenters: Mapping[str, int] | None = None) -> Iterator[Stack]:
    options = CassandraOptions(
        commitlog_sync_period_ms=SYNC_PERIOD_MS,
        commitlog_segment_mib=SEGMENT_MIB,
        cdc_total_space_mib=TOTAL_MIB,
    )
    settings = {
        "node.cdc_total_space_mib": TOTAL_MIB,
        "node.commitlog_segment_mib": SEGMENT_MIB,
        "filler.max_segment_age_seconds": 3600,
        "filler.flush_seconds": FLUSH_SECONDS,
    }
    with Stack(version=version, datacenters=datacenters, options=options, settings=settings) as running:
        let_fillers_flush(running)
        yield running


class Load:
    """Writes at a constant rate and at ALL, each to a row of its own."""

    def __init__(self, client: CqlClient) -> None:
        self._client = client
        self._next = time.monotonic()
        self.written = 0

    def write(self) -> bool:
        """The next one; False if the node refuses it."""
        self._next = max(self._next + 1 / WRITES_PER_SECOND, time.monotonic())  # what was late is not made up for
        time.sleep(max(0.0, self._next - time.monotonic()))
        try:
            self._client.execute_at_all(insert(self.written))
        except CdcError as error:
            if error.code is not Code.CASSANDRA_QUERY:
                raise
            return False
        self.written += 1
        return True

    def write_where_it_can(self) -> None:
        """The next one at ONE: it is enough that another node takes it."""
        self._client.execute(insert(self.written))
        self.written += 1

    def write_again(self) -> None:
        """Write until the node accepts one."""
        deadline = time.monotonic() + MOST_SECONDS
        while not self.write():
            assert time.monotonic() < deadline, "the node accepts no writes again"
            time.sleep(RETRY)


def insert(row: int) -> str:
    return f"INSERT INTO filled.t (p, v) VALUES ({row}, '{'x' * WRITE_BYTES}')"


def test_the_forecast_at_half_full_is_when_writes_are_refused(stack: Stack) -> None:
    servers = stack.servers
    with cql.connect(servers.cassandra_hosts, servers.cassandra_port) as client:
        client.execute(f"CREATE KEYSPACE filled WITH replication = {SIMPLE}")
        client.execute("CREATE TABLE filled.t (p int PRIMARY KEY, v text) WITH cdc = true")
        load, filling = fill_while_kafka_stands_still(stack, client)
        log.info("%s", filling)
        assert "CDC-046" in stack.publishers[0].log.read_text()
        assert filling.forecast == pytest.approx(filling.lasted, rel=NEAR), filling
        stack.kafka.resume()
        load.write_again()
        hand_over(stack, client, SIMPLE)
        with ChangeReader.of_keyspace(servers, "filled") as reader:
            check(client, reader, load, History())
    the_alert(stack)


def test_what_only_other_replicas_took_comes_by_hints_or_repair(two_datacenters: Stack) -> None:
    """The design's reason for CDC-047: 4.0 writes no hint for what a full node refused."""
    stack, servers = two_datacenters, two_datacenters.servers
    [main] = [node for node in stack.cassandra.nodes if node.datacenter == "main"]
    [full] = stack.cassandra.cdc_nodes
    with (
        cql.connect([main.address], servers.cassandra_port) as client,
        cql.connect([full.address], servers.cassandra_port) as schema_client,  # the other loses `cdc = true`
    ):
        schema_client.execute(f"CREATE KEYSPACE filled WITH replication = {REPLICATED}")
        schema_client.execute("CREATE TABLE filled.t (p int PRIMARY KEY, v text) WITH cdc = true")
        load, _ = fill_while_kafka_stands_still(stack, client)
        missed = range(load.written, load.written + MISSED)
        for _ in missed:
            load.write_where_it_can()
        assert not load.write(), "the node was not full all the while"
        stack.kafka.resume()
        load.write_again()
        alert = the_alert(stack)
        assert alert["tables"] == ["filled.t"]
        assert alert["since"] < alert["until"]
        with ChangeReader.of_keyspace(servers, "filled") as reader:
            history = History()
            if servers.cassandra.startswith(WITHOUT_HINTS):
                marks = range(load.written, load.written + MARKS)
                assert all(load.write() for _ in marks)
                seen = read(reader, history, set(marks))
                assert not seen & set(missed), "they came without a repair"
                assert "nodetool repair" in alert["fix"]
                full.nodetool("repair", *alert["tables"][0].split("."))
            else:
                await_hints(stack)
            hand_over(stack, client, REPLICATED)
            check(client, reader, load, history)


def hand_over(stack: Stack, client: CqlClient, replication: str) -> None:
    """3.11 keeps a segment that is not full."""
    if stack.servers.cassandra.startswith("3."):
        pusher(client, stack.cassandra.cdc_nodes, replication)()


def the_alert(stack: Stack) -> dict[str, Any]:
    """CDC-047, once it is logged."""
    log = stack.publishers[0].log
    wait_for(lambda: "CDC-047" in log.read_text())
    [alert] = [json.loads(line) for line in log.read_text().splitlines() if "CDC-047" in line]
    found: dict[str, Any] = alert
    return found


class Filling(NamedTuple):
    """The figures at half full: the seconds that were forecast, those that it took, and writes per second before and
    after.
    """

    forecast: float
    lasted: float
    before: float
    after: float


def fill_while_kafka_stands_still(stack: Stack, client: CqlClient) -> tuple[Load, Filling]:
    """Once some of it is published."""
    load = Load(client)
    while read_status(stack)["messages"] < WRITES_PER_SECOND:
        assert load.write()
    stack.kafka.pause()
    return load, fill(stack, load)


def fill(stack: Stack, load: Load) -> Filling:
    """Write until a write is refused."""
    half: tuple[float, float, int] | None = None
    began, first = time.monotonic(), load.written
    looked = 0
    while load.write():
        now = time.monotonic()
        assert now < began + MOST_SECONDS, f"never full: {read_status(stack)}"
        if half is None and load.written - looked >= WRITES_PER_SECOND:
            looked = load.written
            status = read_status(stack)
            if status["used"] >= status["full_at"] / 2 and status["seconds_to_full"] is not None:
                half = now, status["seconds_to_full"], load.written
    assert half is not None, "refused before it was half full"
    now, (at, forecast, written) = time.monotonic(), half
    return Filling(forecast, now - at, (written - first) / (at - began), (load.written - written) / (now - at))


def check(client: CqlClient, reader: ChangeReader, load: Load, history: History) -> None:
    """Every row that was written comes out, and is what SELECT shows."""
    read(reader, history, set(range(load.written)))
    assert list(history.problems()) == []
    result = compare(client, history, [("filled", "t")])
    assert result.differences == []
    assert result.tables["filled.t"] >= load.written


def read(reader: ChangeReader, history: History, wanted: set[int]) -> set[int]:
    """The keys of all that has come, until these are among them."""
    deadline = time.monotonic() + MOST_SECONDS
    seen: set[int] = {changes[0].key["p"] for changes in history.changes.values()}
    while not seen >= wanted:
        assert time.monotonic() < deadline, f"{len(wanted - seen)} rows are missing"
        changes = reader.poll(0.5)
        history.add(changes)
        seen |= {change.key["p"] for change in changes}
    return seen


def wait_for(is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + MOST_SECONDS
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(RETRY)
