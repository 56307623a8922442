"""Broker faults while the publisher runs: a full disk, a deleted topic, a lower limit, a revoked right."""

from __future__ import annotations

import time
from random import randbytes
from typing import TYPE_CHECKING

import pytest
from confluent_kafka.admin import AdminClient, ConfigResource, NewTopic, ResourceType

from cdc_common.messages.topics import raw_topic, tables_topic
from dev.local_stack.servers.kafka import KafkaBroker
from tests.support.publisher.publisher_process import eventually
from tests.support.publisher.sent import int_value, rows
from tests.support.publisher.topic_faults import AUTHORIZER, configure, delete, give_back, take_away
from tests.support.small_disk import fill, small_disk

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from cassandra.cluster import Session

    from tests.support.publisher.publisher_process import PublisherProcess
    from tests.support.publisher.sent import Sent

    SentBy = Callable[..., list[Sent]]

pytestmark = [pytest.mark.servers, pytest.mark.exhaustive, pytest.mark.timeout(400)]

SECONDS = 120.0
DISK_MIB, LEFT_BYTES = 24, 256 * 1024
SMALL_INDEXES = {"log.index.size.max.bytes": "4096"}  # they are mapped whole, and would take the disk's room
MADE = {
    "message.timestamp.type": "LogAppendTime",
    "cleanup.policy": "delete",
    "retention.ms": str(14 * 24 * 3_600_000),
    "max.message.bytes": str(32 * 1024 * 1024),
}


@pytest.fixture
def broker_settings() -> dict[str, str]:
    return {}


@pytest.fixture
def kafka(broker_settings: dict[str, str], tmp_path: Path) -> Iterator[KafkaBroker]:
    """A broker of the test's own, in the place of the one that all share."""
    with KafkaBroker(settings=broker_settings, folder=tmp_path / "kafka") as broker:
        yield broker


@pytest.fixture
def admin(kafka: KafkaBroker) -> AdminClient:
    return AdminClient({"bootstrap.servers": kafka.bootstrap_servers})


class Table:
    """A table whose first row has been published; `write` adds the next one."""

    def __init__(self, publisher: PublisherProcess, cql: Session, keyspace: str, sent: SentBy) -> None:
        self.keyspace = keyspace
        self.topic = raw_topic(str(publisher.settings["kafka.topic_prefix"]), keyspace, "hurt")
        self.written = 0
        self._sent = sent
        self._session = cql
        cql.execute(f"CREATE TABLE {keyspace}.hurt (id int PRIMARY KEY, v blob) WITH cdc = true")
        self._insert = cql.prepare(f"INSERT INTO {keyspace}.hurt (id, v) VALUES (?, ?)")
        publisher.start()
        self.write()
        self.wait()

    def write(self, size: int = 10) -> None:
        """Bytes that cannot be compressed."""
        self._session.execute(self._insert, (self.written, randbytes(size)))
        self.written += 1

    def wait(self, first: int = 0) -> list[Sent]:
        """All rows from the `first` on are in the topic."""
        wanted = {int_value(number) for number in range(first, self.written)}
        return rows(
            self._sent(
                self.keyspace, "hurt", lambda found: {raw_message.key for raw_message in found} >= wanted, SECONDS
            )
        )


@pytest.fixture
def table(publisher: PublisherProcess, cql: Session, fresh_keyspace: str, sent: SentBy) -> Table:
    return Table(publisher, cql, fresh_keyspace, sent)


def waits_with(publisher: PublisherProcess, words: str, code: str = "CDC-021") -> None:
    """The table waits, with what the broker said, and the publisher goes on."""
    eventually(lambda: words in publisher.command("status")[1], SECONDS)
    assert code in publisher.command("status")[1]
    assert "Traceback" not in publisher.log()
    assert publisher.is_running()


def goes_on(publisher: PublisherProcess) -> None:
    """No table waits any more."""
    eventually(lambda: "table waits" not in publisher.command("status")[1], SECONDS)


class TestDisk:
    @pytest.fixture
    def broker_settings(self, tmp_path: Path) -> Iterator[dict[str, str]]:
        """Half of the partitions lie on a disk that gets full, the broker's own log does not."""
        with small_disk(tmp_path / "disk", DISK_MIB):
            folders = f"{tmp_path / 'disk' / 'data'},{tmp_path / 'kafka' / 'data'}"
            yield {"log.dirs": folders, "metadata.log.dir": str(tmp_path / "metadata"), **SMALL_INDEXES}

    def test_a_full_disk_is_waited_for(
        self, publisher: PublisherProcess, table: Table, kafka: KafkaBroker, tmp_path: Path
    ) -> None:
        ballast = fill(tmp_path / "disk", LEFT_BYTES)
        for _ in range(60):
            table.write(50_000)
        eventually(lambda: "No space left on device" in kafka.log.read_text(), SECONDS)
        eventually(lambda: "but not the oldest one" in publisher.command("status")[1], SECONDS)
        assert publisher.get("/health")[0] == 200  # its own loop is well
        ballast.unlink()
        kafka.kill()  # a broker does not take a failed folder up again while it runs
        kafka.start()
        table.wait()
        eventually(lambda: "waiting" not in publisher.command("status")[1], SECONDS)
        assert publisher.stop() == 0
        assert "Traceback" not in publisher.log()


class TestTopic:
    @pytest.fixture
    def broker_settings(self) -> dict[str, str]:
        """Return Kafka's defaults: the broker creates what a client asks for, with its own settings."""
        return {"auto.create.topics.enable": "true", "num.partitions": "1"}

    @pytest.fixture
    def until_it_waits(self, publisher: PublisherProcess, table: Table) -> Callable[[], None]:
        """Writes on."""

        def write() -> None:
            deadline = time.monotonic() + SECONDS
            while "a table waits" not in publisher.log():
                assert time.monotonic() < deadline, publisher.log()
                table.write()
                time.sleep(0.2)

        return write

    def test_a_deleted_one_is_made_anew_as_it_must_be(
        self, publisher: PublisherProcess, table: Table, admin: AdminClient, until_it_waits: Callable[[], None]
    ) -> None:
        """If the broker has made it with its own settings, an operator deletes it again."""
        delete(admin, table.topic)
        first = table.written
        until_it_waits()
        if "CreateTime" in publisher.command("status")[1]:
            delete(admin, table.topic)
        table.write()
        goes_on(publisher)
        assert len({raw_message.partition for raw_message in table.wait(first)}) == 3
        assert configuration(admin, table.topic).items() >= MADE.items()
        tables = tables_topic(str(publisher.settings["kafka.topic_prefix"]))
        assert configuration(admin, tables)["cleanup.policy"] == "compact"
        assert publisher.stop() == 0

    def test_one_that_somebody_else_makes_anew_is_refused(
        self, publisher: PublisherProcess, table: Table, admin: AdminClient, until_it_waits: Callable[[], None]
    ) -> None:
        delete(admin, table.topic)
        admin.create_topics([NewTopic(table.topic, 3, 1)])[table.topic].result(SECONDS)
        until_it_waits()
        waits_with(publisher, "has message.timestamp.type=CreateTime", "CDC-022")
        configure(admin, table.topic, "message.timestamp.type", "LogAppendTime")
        first = table.written
        table.write()
        goes_on(publisher)
        table.wait(first)
        assert publisher.stop() == 0


def configuration(admin: AdminClient, topic: str) -> dict[str, str]:
    resource = ConfigResource(ResourceType.TOPIC, topic)
    entries = admin.describe_configs([resource])[resource].result(SECONDS)
    return {name: entry.value for name, entry in entries.items()}


def test_a_message_that_is_too_large_waits_until_the_topic_takes_it(
    publisher: PublisherProcess, table: Table, admin: AdminClient
) -> None:
    configure(admin, table.topic, "max.message.bytes", "20000")
    table.write(30_000)
    waits_with(publisher, "MSG_SIZE_TOO_LARGE")
    table.write()
    publisher.kill()
    publisher.start()
    waits_with(publisher, "MSG_SIZE_TOO_LARGE")
    configure(admin, table.topic, "max.message.bytes", "40000")
    goes_on(publisher)
    table.wait()
    assert publisher.stop() == 0


class TestRights:
    @pytest.fixture
    def broker_settings(self) -> dict[str, str]:
        return AUTHORIZER

    def test_a_right_that_is_taken_away_is_waited_for(
        self, publisher: PublisherProcess, table: Table, admin: AdminClient
    ) -> None:
        assert "ok    kafka" in publisher.command("check")[1]
        take_away(admin, table.topic, "WRITE")
        table.write()
        waits_with(publisher, "TOPIC_AUTHORIZATION_FAILED")
        table.write()
        status, output = publisher.command("check")
        assert status == 3
        assert f"This user lacks rights on the topic {table.topic}: WRITE" in output
        give_back(admin, table.topic, "WRITE")
        goes_on(publisher)
        table.wait()
        assert publisher.stop() == 0

    def test_a_topic_whose_settings_may_not_be_read_any_more_is_logged_and_does_not_stop_it(
        self, publisher: PublisherProcess, table: Table, admin: AdminClient
    ) -> None:
        take_away(admin, table.topic, "DESCRIBE_CONFIGS")
        eventually(lambda: "cannot check a raw topic" in publisher.log(), SECONDS)
        assert "TOPIC_AUTHORIZATION_FAILED" in publisher.log()
        table.write()
        table.wait()
        assert publisher.stop() == 0
