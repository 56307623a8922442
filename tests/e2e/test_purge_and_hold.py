"""Deletions older than gc_grace are purged; with `hold`, writes come out in timestamp order."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from uuid import UUID, uuid4

import pytest
from confluent_kafka import Producer

from cdc_common.messages.topics import watermarks_topic
from cdc_common.messages.watermarks import decode, encode
from cdc_common.settings import KafkaSettings
from dev.local_stack.clients.change_reader import ChangeReader
from dev.local_stack.clients.cql import CqlClient
from dev.local_stack.clients.history import History
from dev.verify.model.raw_log import RawLog
from stream_runtime.kafka import TopicReader

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from dev.local_stack.clients.change import Change
    from dev.local_stack.servers.addresses import Servers
    from dev.local_stack.servers.programs import Setting
    from dev.local_stack.servers.stack import Stack

pytestmark = [pytest.mark.servers, pytest.mark.exhaustive, pytest.mark.timeout(900)]

PURGED, HELD = "purged", "held"
GC_GRACE_SECONDS = 2
REORDER_SECONDS = 5.0
MOST_SECONDS = 90.0


@dataclass
class Topic:
    """The table `t (k, c, v)` of a keyspace of its own, and what comes out of it."""

    client: CqlClient
    keyspace: str
    reader: ChangeReader
    history: History = field(default_factory=History)

    def __post_init__(self) -> None:
        self.client.execute(
            f"CREATE KEYSPACE {self.keyspace} WITH replication = {{'class': 'SimpleStrategy', 'replication_factor': 1}}"
        )
        self.run(
            "CREATE TABLE $t (k int, c int, v int, PRIMARY KEY (k, c))"
            f" WITH cdc = true AND gc_grace_seconds = {GC_GRACE_SECONDS}"
        )

    def run(self, *statements: str) -> None:
        for statement in statements:
            self.client.execute(statement.replace("$t", f"{self.keyspace}.t"))

    def poll(self, seconds: float) -> None:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self.history.add(self.reader.poll(0.1))

    def of(self, k: int, c: int) -> list[Change]:
        return [change for change in self.all() if (change.key["k"], change.key["c"]) == (k, c)]

    def all(self) -> list[Change]:
        return [change for changes in self.history.changes.values() for change in changes]

    def wait_for(self, k: int, c: int, count: int) -> list[Change]:
        """The first so many changes of a row."""
        deadline = time.monotonic() + MOST_SECONDS
        while len(self.of(k, c)) < count:
            assert time.monotonic() < deadline, self.of(k, c)
            self.poll(0.1)
        return self.of(k, c)


@pytest.fixture
def topic(
    client: CqlClient, open_reader: Callable[[str], ChangeReader], request: pytest.FixtureRequest
) -> Iterator[Topic]:
    keyspace: str = request.param
    yield Topic(client, keyspace, open_reader(keyspace))
    client.execute(f"DROP KEYSPACE {keyspace}")


@pytest.fixture
def restart(stack: Stack) -> Iterator[Callable[[str, Setting], None]]:
    """Starts the materializer again with a setting; afterwards it is as it was."""
    materializer = stack.materializer
    before = dict(materializer.settings)

    def run_with(name: str, value: Setting) -> None:
        materializer.settings[f"materializer.{name}"] = value
        materializer.restart()

    yield run_with
    materializer.settings = before
    materializer.restart()


@pytest.mark.parametrize("topic", [PURGED], indirect=True)
def test_purging_waits_for_gc_grace_and_for_every_publisher(
    topic: Topic, stack: Stack, servers: Servers, restart: Callable[[str, Setting], None]
) -> None:
    t, ahead = topic, int((time.time() + 600) * 1e6)
    t.run("INSERT INTO $t (k, c, v) VALUES (2, 1, 0)", f"DELETE FROM $t USING TIMESTAMP {ahead} WHERE k = 2")
    t.run(
        "INSERT INTO $t (k, c, v) VALUES (1, 0, 0)",
        "UPDATE $t SET v = 1 WHERE k = 1 AND c = 0",
        "DELETE FROM $t WHERE k = 1",
    )
    firsts = first_numbers(t, range(1, 30), lambda number: number > 1)
    assert set(firsts) == {1, 4}  # the deleted row had three changes: new rows begin after them once it is purged
    t.run("INSERT INTO $t (k, c, v) VALUES (1, 0, 2)")
    assert [change.value["source"]["row_sequence"] for change in t.wait_for(1, 0, 4) if change.value] == [1, 2, 3, 4]

    silent = be_a_publisher_once(servers)
    t.run(*(f"UPDATE $t SET v = {v} WHERE k = 1 AND c = 0" for v in range(10, 20)), "DELETE FROM $t WHERE k = 1")
    waiting = first_numbers(t, range(30, 70), lambda _: said_silent(stack, silent))
    assert said_silent(stack, silent)
    assert set(waiting) == {4}  # long past gc_grace

    restart("forgotten_publishers", str(silent))
    assert first_numbers(t, range(70, 100), lambda number: number > 4)[-1] == 16
    t.run(
        f"INSERT INTO $t (k, c, v) VALUES (2, 1, 1) USING TIMESTAMP {ahead - 1}"
    )  # this deletion has not begun to age
    t.run("INSERT INTO $t (k, c, v) VALUES (2, 2, 1)", "INSERT INTO $t (k, c, v) VALUES (3, 1, 1)")
    t.wait_for(3, 1, 1)
    t.poll(1)
    assert [change.value and change.value["op"] for change in t.of(2, 1)] == ["c", "d"]
    assert t.of(2, 2) == []
    assert {row["k"] for row in t.client.rows(PURGED, "t")} == {1, 3}


def first_numbers(t: Topic, clusterings: range, is_enough: Callable[[int], bool]) -> list[int]:
    """The row_sequence with which new rows begin, a row a second, until one is enough."""
    found: list[int] = []
    for c in clusterings:
        t.run(f"INSERT INTO $t (k, c, v) VALUES (1, {c}, 0)")
        [change, *_] = t.wait_for(1, c, 1)
        assert change.value is not None
        found.append(change.value["source"]["row_sequence"])
        if is_enough(found[-1]):
            break
        t.poll(1.0)
    return found


def be_a_publisher_once(servers: Servers) -> UUID:
    """Send the watermark of a publisher that does not exist; its host id."""
    host, topic = uuid4(), watermarks_topic(servers.topic_prefix)
    kafka = KafkaSettings(bootstrap_servers=servers.kafka)
    (_, newest) = TopicReader(kafka, topic).read_to_end()[-1]
    producer = Producer({"bootstrap.servers": servers.kafka})
    for key, value in encode(decode(newest)._replace(host_id=host.bytes)):
        producer.produce(topic, value, key)
    assert not producer.flush(MOST_SECONDS)
    return host


def said_silent(stack: Stack, host: UUID) -> bool:
    return any("CDC-068" in line and str(host) in line for line in stack.materializer.output().splitlines())


@pytest.mark.parametrize("topic", [HELD], indirect=True)
def test_held_writes_come_out_in_order_in_quiet_partitions_and_after_a_crash(
    topic: Topic, stack: Stack, servers: Servers, restart: Callable[[str, Setting], None]
) -> None:
    t = topic
    restart("reorder_seconds", REORDER_SECONDS)
    now = int(time.time() * 1e6)
    sent = time.time()
    t.run(*(f"UPDATE $t USING TIMESTAMP {now + n} SET v = {n} WHERE k = 1 AND c = 1" for n in (3, 1, 2)))
    t.run("INSERT INTO $t (k, c, v) VALUES (1, 2, 0) USING TTL 2")  # gone before it is shown
    changes = t.wait_for(1, 1, 3)
    assert values(changes) == [(None, 1), (1, 2), (2, 3)]
    assert changes[0].seen - sent >= REORDER_SECONDS
    assert values(t.wait_for(1, 2, 2)) == [(None, 0), (0, None)]

    t.run("UPDATE $t USING TIMESTAMP 3 SET v = 3 WHERE k = 2 AND c = 1")
    await_folded(servers, k=2)
    stack.materializer.kill()
    t.run("UPDATE $t USING TIMESTAMP 2 SET v = 2 WHERE k = 2 AND c = 1")
    stack.materializer.start()
    assert values(t.wait_for(2, 1, 2)) == [(None, 2), (2, 3)]
    t.poll(2.0)
    assert len(t.of(2, 1)) == 2
    assert list(t.history.problems()) == []
    assert {(row["k"], row["c"], row["v"]) for row in t.client.rows(HELD, "t")} == {(1, 1, 3), (2, 1, 3)}


def values(changes: list[Change]) -> list[tuple[Any, Any]]:
    images = [[change.value and change.value[which] for which in ("before", "after")] for change in changes]
    return [(before and before["v"], after and after["v"]) for before, after in images]


def await_folded(servers: Servers, k: int) -> None:
    """Wait until the materializer has taken what is written to a partition."""
    raw, key = RawLog(servers, HELD, ["t"]), k.to_bytes(4, "big")
    raw.open()
    try:
        deadline = time.monotonic() + MOST_SECONDS
        while not (records := list(raw.of_key("t", key))):
            assert time.monotonic() < deadline
            raw.poll(0.1)
        [place] = [place for place, of in raw.records.items() if records[0][0] in of]
        while raw.folded()[place] <= records[-1][0].offset:
            assert time.monotonic() < deadline
            time.sleep(0.1)
    finally:
        raw.close()
