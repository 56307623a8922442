"""Eleven errors of single tables at once, beside eight tables under load: those that are not hurt go on as before, and
those that are lose nothing.
"""

from __future__ import annotations

import logging
import threading
import time
from functools import partial
from random import randbytes
from statistics import quantiles
from typing import TYPE_CHECKING, NamedTuple, Self

import pytest
from cassandra.cluster import Session
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from cdc_common.messages import raw
from cdc_common.messages.topics import raw_topic
from dev.local_stack.servers.kafka import KafkaBroker
from tests.support.publisher.flaky_registry import FlakyRegistry
from tests.support.publisher.publisher_process import eventually
from tests.support.publisher.sent import open_consumer
from tests.support.publisher.topic_faults import AUTHORIZER, configure, delete, give_back, take_away

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.support.publisher.publisher_process import PublisherProcess

pytestmark = [pytest.mark.servers, pytest.mark.exhaustive, pytest.mark.timeout(900)]

TABLES = 8
HURT = ("t0", "t1", "t2", "t3")
NEW = ("refused", "silent", "untimed")
WRITES_A_SECOND = 160
LOAD_SECONDS = 20.0
HEAL_SECONDS = 150.0
LONG = "l" * 222
DEEP = "frozen<list<" * 101 + "int" + ">>" * 101
LARGE = 300_000
BRIEF = 3
SLACK_SECONDS = 2.0


@pytest.fixture
def kafka(tmp_path: Path) -> Iterator[KafkaBroker]:
    with KafkaBroker(settings=AUTHORIZER, folder=tmp_path / "kafka") as broker:
        yield broker


@pytest.fixture
def registry() -> Iterator[FlakyRegistry]:
    with FlakyRegistry() as served:
        yield served


@pytest.fixture
def registry_url(registry: FlakyRegistry) -> str:
    return registry.url


class Load:
    """Writes rows in a thread, round robin. A row's id is the time of its write in µs."""

    def __init__(self, session: Session, keyspace: str) -> None:
        self._session = session
        self._keyspace = keyspace
        self.written: dict[str, set[int]] = {}
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        for number in range(TABLES):
            self.create(f"t{number}")

    def create(self, table: str, columns: str = "id bigint PRIMARY KEY, v blob") -> None:
        self._session.execute(f"CREATE TABLE {self._keyspace}.{table} ({columns}) WITH cdc = true")

    def write(self, table: str, size: int = 10) -> None:
        key = time.time_ns() // 1000
        self._session.execute(f"INSERT INTO {self._keyspace}.{table} (id, v) VALUES (%s, %s)", (key, randbytes(size)))
        self.written.setdefault(table, set()).add(key)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        number = 0
        while not self._stop.wait(1 / WRITES_A_SECOND):
            self.write(f"t{number % TABLES}")
            number += 1


class Reader:
    """Reads raw topics from their beginnings."""

    def __init__(self, kafka: KafkaBroker, prefix: str, keyspace: str) -> None:
        self._servers = kafka.bootstrap_servers
        self._prefix, self._keyspace = prefix, keyspace

    def read(self, table: str) -> dict[int, float]:
        """The seconds from the write of each row to its first arrival, by its id."""
        topic = raw_topic(self._prefix, self._keyspace, table)
        consumer = open_consumer(self._servers)
        found: dict[int, float] = {}
        try:
            places = [TopicPartition(topic, partition, 0) for partition in range(3)]
            left = {place.partition: consumer.get_watermark_offsets(place, timeout=30)[1] for place in places}
            consumer.assign(places)
            while any(left.values()):
                for message in consumer.consume(1000, timeout=0.2):
                    partition, offset = message.partition(), message.offset()
                    assert partition is not None
                    assert offset is not None
                    if offset + 1 >= left[partition]:
                        left[partition] = 0
                    if raw.decode(message.value() or b"").kind == "row":
                        key = int.from_bytes(message.key() or b"", "big")
                        found.setdefault(key, message.timestamp()[1] / 1000 - key / 1e6)
        finally:
            consumer.close()
        return found

    def has(self, table: str, keys: set[int]) -> bool:
        """Return whether the topic has rows with all these ids."""
        return self.read(table).keys() >= keys

    def p99(self, tables: list[str], since: float, until: float) -> float:
        """Of rows written between two times."""
        latencies = [
            seconds for table in tables for key, seconds in self.read(table).items() if since <= key / 1e6 <= until
        ]
        assert len(latencies) > 100
        return quantiles(latencies, n=100)[98]


class Scene(NamedTuple):
    """Eight tables under load, and what can be done to them."""

    load: Load
    admin: AdminClient
    registry: FlakyRegistry
    session: Session
    keyspace: str
    prefix: str

    def topic(self, table: str) -> str:
        return raw_topic(self.prefix, self.keyspace, table)

    def hurt(self) -> int:
        """Eleven errors; the time (µs) at which t1's topic was deleted."""
        take_away(self.admin, self.topic("t0"), "WRITE")  # 1: a right that is revoked
        configure(self.admin, self.topic("t2"), "max.message.bytes", "20000")  # 2: a message that is too large
        self.load.write("t2", LARGE)
        configure(self.admin, self.topic("t3"), "cleanup.policy", "compact")  # 3: settings that are altered
        self.registry.refused.add("refused")  # 4: an incompatible subject
        self.registry.silent.add("silent")  # 5: a registry that does not answer
        untimed = self.topic("untimed")
        self.admin.create_topics([NewTopic(untimed, 3, 1)])[untimed].result(30)  # 6: with the producers' time
        for table in NEW:
            self.load.create(table)
            self.load.write(table)
        self.load.create(LONG)  # 7: a name that is too long
        self.load.write(LONG)
        self.load.create("deep", f"id bigint PRIMARY KEY, v blob, d {DEEP}")  # 8: a type that cannot be read
        self.load.write("deep")
        self.session.execute(f"CREATE TABLE {self.keyspace}.plain (id int PRIMARY KEY, d {DEEP})")  # 9: without cdc
        delete(self.admin, self.topic("t1"))  # 10: a topic that is deleted
        deleted_at = time.time_ns() // 1000
        for number in range(BRIEF):  # 11: tables that are gone at once
            self.load.create(f"brief{number}")
            self.load.write(f"brief{number}")
            self.session.execute(f"DROP TABLE {self.keyspace}.brief{number}")
        return deleted_at

    def heal(self) -> None:
        give_back(self.admin, self.topic("t0"), "WRITE")
        configure(self.admin, self.topic("t2"), "max.message.bytes", str(32 << 20))
        configure(self.admin, self.topic("t3"), "cleanup.policy", "delete")
        self.registry.refused.clear()
        self.registry.released.set()
        configure(self.admin, self.topic("untimed"), "message.timestamp.type", "LogAppendTime")
        self.session.execute(f"ALTER TABLE {self.keyspace}.{LONG} WITH cdc = false")
        self.session.execute(f"DROP TABLE {self.keyspace}.deep")


def test_the_others_go_on_and_nothing_is_lost(
    publisher: PublisherProcess,
    cql: Session,
    fresh_keyspace: str,
    kafka: KafkaBroker,
    registry: FlakyRegistry,
    topic_prefix: str,
) -> None:
    well = [f"t{number}" for number in range(TABLES) if f"t{number}" not in HURT]
    reader = Reader(kafka, topic_prefix, fresh_keyspace)
    with Load(cql, fresh_keyspace) as load:
        admin = AdminClient({"bootstrap.servers": kafka.bootstrap_servers})
        scene = Scene(load, admin, registry, cql, fresh_keyspace, topic_prefix)
        publisher.start()
        time.sleep(10)
        begun = time.time()
        time.sleep(LOAD_SECONDS)
        hurt_at = time.time()
        deleted_at = scene.hurt()
        wait_for(publisher, {"t0", "t2", "t3", *NEW, LONG, "deep"})
        time.sleep(LOAD_SECONDS)
        healed_at = time.time()
        assert publisher.is_running()
        assert not waiting(publisher) & {*well, "plain"}
        scene.heal()
        eventually(lambda: not waiting(publisher), HEAL_SECONDS)
    for table in (*well, "t0", "t2", "t3", *NEW):
        eventually(partial(reader.has, table, load.written[table]), HEAL_SECONDS)
    eventually(partial(reader.has, "t1", {key for key in load.written["t1"] if key > deleted_at}), HEAL_SECONDS)
    before, during = reader.p99(well, begun, hurt_at), reader.p99(well, hurt_at, healed_at)
    logging.getLogger(__name__).warning("p99 of the others: %.3f s before, %.3f s during", before, during)
    assert during <= 2 * before + SLACK_SECONDS
    status = publisher.status()
    assert f"{fresh_keyspace}.t1" in status["need_snapshot"]  # what the job had not read of its topic is gone
    assert status["quarantined"] == 0
    assert publisher.stop() == 0
    assert "Traceback" not in publisher.log()


def wait_for(publisher: PublisherProcess, tables: set[str]) -> None:
    """Until these tables wait."""
    deadline = time.monotonic() + HEAL_SECONDS
    while missing := tables - waiting(publisher):
        assert time.monotonic() < deadline, missing
        time.sleep(0.5)


def waiting(publisher: PublisherProcess) -> set[str]:
    """The names of the tables that wait, without the keyspace."""
    return {name.partition(".")[2] for name, _, _ in publisher.status()["waiting_tables"]}
