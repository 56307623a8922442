"""cdc_raw filled to its limit on purpose: forecast in time, nothing lost, and the node accepts writes again."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any

import pytest

from cdc_program.errors import CdcError, Code
from local_stack import cql
from local_stack.cassandra import CassandraOptions
from local_stack.change_reader import ChangeReader
from local_stack.compare import compare
from local_stack.history import History
from local_stack.stack import SYNC_PERIOD_MS, Stack
from tests.http_get import get

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from local_stack.cql import CqlClient

pytestmark = [pytest.mark.servers, pytest.mark.timeout(500), pytest.mark.exhaustive]

TOTAL_MIB, SEGMENT_MIB = 40, 1
WRITE_BYTES, WRITES_PER_SECOND = 32 * 1024, 20  # 0.6 MiB/s: full in about a minute
MOST_SECONDS = 180.0
NEAR = 0.2  # of the time that is left at half full
RETRY = 0.5


@pytest.fixture(params=["5.0", "4.0", "3.11"])
def stack(request: pytest.FixtureRequest) -> Iterator[Stack]:
    options = CassandraOptions(
        commitlog_sync_period_ms=SYNC_PERIOD_MS,
        commitlog_segment_mib=SEGMENT_MIB,
        cdc_total_space_mib=TOTAL_MIB,
    )
    settings = {"publisher.cdc_total_space_mib": TOTAL_MIB, "filler.max_segment_age_seconds": 3600}
    with Stack(version=request.param, options=options, settings=settings) as running:
        yield running


def ask(stack: Stack) -> dict[str, Any]:
    """The publisher's status."""
    _, body = get(int(str(stack.publishers[0].settings["publisher.operations_port"])), "/status")
    status: dict[str, Any] = json.loads(body)
    return status


class Load:
    """Writes at a constant rate, each to a row of its own."""

    def __init__(self, client: CqlClient) -> None:
        self._client = client
        self._next = time.monotonic()
        self.written = 0

    def write(self) -> bool:
        """The next one; False if the node refuses it."""
        self._next += 1 / WRITES_PER_SECOND
        time.sleep(max(0.0, self._next - time.monotonic()))
        try:
            self._client.run(f"INSERT INTO filled.t (p, v) VALUES ({self.written}, '{'x' * WRITE_BYTES}')")
        except CdcError as error:
            if error.code is not Code.CASSANDRA_QUERY:
                raise
            return False
        self.written += 1
        return True


def test_the_forecast_at_half_full_is_when_writes_are_refused(stack: Stack) -> None:
    servers = stack.servers
    with cql.connect(servers.cassandra_hosts, servers.cassandra_port) as client:
        client.run("CREATE KEYSPACE filled WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
        client.run("CREATE TABLE filled.t (p int PRIMARY KEY, v text) WITH cdc = true")
        load = Load(client)
        while ask(stack)["messages"] < WRITES_PER_SECOND:
            assert load.write()
        stack.kafka.pause()
        forecast_at, refused_at = fill(stack, load)
        assert "CDC-046" in stack.publishers[0].log.read_text()
        said_at, seconds = forecast_at
        assert seconds == pytest.approx(refused_at - said_at, rel=NEAR)
        stack.kafka.resume()
        deadline = time.monotonic() + MOST_SECONDS
        while not load.write():
            assert time.monotonic() < deadline, "the node accepts no writes again"
            time.sleep(RETRY)
        with ChangeReader.of_keyspace(servers, "filled") as reader:
            check(client, reader, load)
    wait_for(lambda: "CDC-047" in stack.publishers[0].log.read_text())


def fill(stack: Stack, load: Load) -> tuple[tuple[float, float], float]:
    """(when it was half full, the seconds that were forecast then), and when the first write was refused."""
    half: tuple[float, float] | None = None
    deadline = time.monotonic() + MOST_SECONDS
    looked = 0
    while load.write():
        now = time.monotonic()
        assert now < deadline, f"never full: {ask(stack)}"
        if half is None and load.written - looked >= WRITES_PER_SECOND:
            looked = load.written
            status = ask(stack)
            if status["used"] >= status["full_at"] / 2 and status["seconds_to_full"] is not None:
                half = now, status["seconds_to_full"]
    assert half is not None, "refused before it was half full"
    return half, time.monotonic()


def check(client: CqlClient, reader: ChangeReader, load: Load) -> None:
    """Every row that was written comes out, and is what SELECT shows."""
    history = History()
    deadline = time.monotonic() + MOST_SECONDS
    seen: set[int] = set()
    while not seen >= set(range(load.written)):
        assert time.monotonic() < deadline, f"{load.written - len(seen)} rows are missing"
        changes = reader.poll(0.5)
        history.add(changes)
        seen |= {change.key["p"] for change in changes}
    assert list(history.problems()) == []
    result = compare(client, history, [("filled", "t")])
    assert result.differences == []
    assert result.tables["filled.t"] >= load.written


def wait_for(is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + MOST_SECONDS
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(RETRY)
