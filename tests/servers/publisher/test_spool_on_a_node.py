"""A real 5.0 node whose cdc_raw would be full while Kafka is away: with the spool it accepts every write."""

from __future__ import annotations

import json
import logging
import shutil
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from dev.local_stack.clients import cql
from dev.local_stack.servers.cassandra_options import CassandraOptions
from dev.local_stack.servers.stack import SYNC_PERIOD_MS
from publisher.kafka.sender import QUEUE_BYTES
from publisher.upkeep.housekeeping import SAVE_SECONDS
from tests.support.publisher.publisher_process import PublisherProcess, eventually, settings_beside
from tests.support.publisher.sent import at_least

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from dev.local_stack.servers.cassandra import CassandraCluster, CassandraNode
    from dev.local_stack.servers.kafka import KafkaBroker
    from tests.support.publisher.sent import Sent

    SentBy = Callable[..., list[Sent]]

log = logging.getLogger(__name__)
pytestmark = [pytest.mark.servers, pytest.mark.exhaustive]

MIB = 1 << 20
TOTAL_MIB, SEGMENT_MIB = 24, 1
WRITE_BYTES, WRITES_PER_SECOND = 32 * 1024, 80  # 2.5 MiB/s
WRITES = 2 * TOTAL_MIB * MIB // WRITE_BYTES
KEYS = {number.to_bytes(4, "big") for number in range(WRITES)}
SECONDS = 120.0
MOST_MEMORY = 128 * MIB
QUEUED = QUEUE_BYTES // WRITE_BYTES


@pytest.fixture
def node(own_cluster: Callable[..., CassandraCluster]) -> CassandraNode:
    options = CassandraOptions(
        commitlog_sync_period_ms=SYNC_PERIOD_MS, commitlog_segment_mib=SEGMENT_MIB, cdc_total_space_mib=TOTAL_MIB
    )
    return own_cluster(options=options).nodes[0]


@pytest.fixture
def spool_directory(tmp_path: Path, *, is_same_filesystem: bool) -> Iterator[Path]:
    if is_same_filesystem:
        yield tmp_path / "spool"
        return
    folder = Path("/dev/shm") / f"spool-{time.time_ns()}"  # noqa: S108 - a filesystem of its own
    folder.mkdir()
    try:
        if folder.stat().st_dev == tmp_path.stat().st_dev:
            pytest.skip("no second filesystem here")
        yield folder
    finally:
        shutil.rmtree(folder)


def status(publisher: PublisherProcess) -> dict[str, Any]:
    value: dict[str, Any] = json.loads(publisher.get("/status")[1])
    return value


@pytest.fixture
def publisher(node: CassandraNode, kafka_parts: dict[str, object], tmp_path: Path) -> Iterator[PublisherProcess]:
    """Not started yet."""
    settings = settings_beside(node.cluster, tmp_path / "state") | kafka_parts | {"publisher.on_full": "spool"}
    process = PublisherProcess(settings, tmp_path)
    yield process
    process.kill()


@pytest.fixture
def client(node: CassandraNode) -> Iterator[cql.CqlClient]:
    """There is the table filled.t."""
    with cql.connect([node.address], node.port) as client:
        client.execute("CREATE KEYSPACE filled WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
        client.execute("CREATE TABLE filled.t (p int PRIMARY KEY, v text) WITH cdc = true")
        yield client


@pytest.mark.parametrize("is_same_filesystem", [True, False], ids=["renamed", "copied"])
def test_writes_go_on_and_all_comes_out(
    publisher: PublisherProcess, client: cql.CqlClient, kafka: KafkaBroker, sent: SentBy, spool_directory: Path
) -> None:
    publisher.settings["publisher.spool_directory"] = spool_directory
    publisher.start()
    kafka.pause()
    try:
        most = write_all(client, publisher)
        shown = publisher.command("status")[1]
        assert "CDC-018" in publisher.log()
        assert "spool " in shown
        assert most["used"] <= most["full_at"]
        assert publisher.get("/health")[0] == 200
    finally:
        kafka.resume()
    log.info("most in cdc_raw: %.1f MiB, in the spool: %.1f MiB", most["used"] / MIB, most["spool_bytes"] / MIB)
    fastest = drain(publisher, most["spool_segments"] - 3)
    publisher.kill()
    publisher.start()
    found = sent("filled", "t", lambda messages: {message.key for message in messages} >= KEYS, SECONDS)
    check_empty(publisher, spool_directory)
    rows = [raw_message for raw_message in found if raw_message.message.kind == "row"]
    log.info("%d rows written, %d messages", WRITES, len(rows))
    since_saved = 2 * SAVE_SECONDS * fastest
    assert len(rows) <= WRITES + QUEUED + since_saved
    assert publisher.stop() == 0


def drain(publisher: PublisherProcess, until: float) -> float:
    """Wait for fewer segments in the spool; the most messages a second that were acknowledged in the meantime."""
    deadline = time.monotonic() + SECONDS
    fastest, last = 0.0, status(publisher)
    while last["spool_segments"] >= until:
        assert time.monotonic() < deadline
        time.sleep(0.2)  # it looks once a second
        now = status(publisher)
        fastest, last = max(fastest, now["deliveries"] - last["deliveries"]), now
    return fastest


def test_started_again_while_kafka_is_away(
    publisher: PublisherProcess, client: cql.CqlClient, kafka: KafkaBroker, sent: SentBy, tmp_path: Path
) -> None:
    publisher.start()
    client.execute("INSERT INTO filled.t (p, v) VALUES (-1, 'published')")
    sent("filled", "t", at_least(1))
    assert publisher.stop() == 0
    kafka.kill()
    try:
        publisher.begin()
        publisher.wait_for("CDC-020")
        most = write_all(client, publisher)
        assert "CDC-018" in publisher.log()
        assert most["used"] <= most["full_at"]
        assert publisher.get("/health")[0] == 200
        assert most["memory"] < MOST_MEMORY
        publisher.kill()
        started_at = len(publisher.log())
        publisher.begin()
        publisher.wait_for("CDC-020", started_at)
        eventually(lambda: status(publisher)["spool_segments"] >= most["spool_segments"])
        eventually(lambda: "CDC-020" in publisher.command("status")[1])  # taken once a second
        assert status(publisher)["lag_bytes"] > TOTAL_MIB * MIB
    finally:
        kafka.start()
    log.info("most in cdc_raw: %.1f MiB, in the spool: %.1f MiB", most["used"] / MIB, most["spool_bytes"] / MIB)
    publisher.wait_for('"ready"', started_at)
    found = sent("filled", "t", lambda messages: {message.key for message in messages} >= KEYS, SECONDS)
    check_empty(publisher, tmp_path / "state" / "spool")
    assert status(publisher)["waiting"] == ""
    assert len([raw_message for raw_message in found if raw_message.message.kind == "row"]) == 1 + WRITES
    assert "Traceback" not in publisher.log()
    assert publisher.stop() == 0


def check_empty(publisher: PublisherProcess, spool_directory: Path) -> None:
    """All that was in the spool is acknowledged."""
    eventually(lambda: status(publisher)["spool_segments"] == 0, SECONDS)
    [folder] = spool_directory.iterdir()
    assert list(folder.iterdir()) == []


def write_all(client: cql.CqlClient, publisher: PublisherProcess) -> dict[str, float]:
    """None of them is refused; the largest values seen at the same time."""
    most: dict[str, float] = {}
    following = time.monotonic()
    for number in range(WRITES):
        following += 1 / WRITES_PER_SECOND
        time.sleep(max(0.0, following - time.monotonic()))
        client.execute(f"INSERT INTO filled.t (p, v) VALUES ({number}, '{'x' * WRITE_BYTES}')")
        if number % WRITES_PER_SECOND == 0 or number == WRITES - 1:
            for name, value in status(publisher).items():
                if isinstance(value, int | float):
                    most[name] = max(most.get(name, value), value)
    assert most["spool_bytes"] > TOTAL_MIB * MIB / 2
    return most
