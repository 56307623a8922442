"""A publisher as a process of its own beside the tests' real servers, and what it has sent."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pytest
from confluent_kafka import Consumer, TopicPartition

from cassandra_storage.partition_update import read_partition_update
from cdc_messages import raw, tables, topics
from publisher.cdc_raw import segments
from publisher.inflight import Mark
from publisher.position import Positions

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from cassandra.cluster import Session

    from cassandra_storage.partition import PartitionUpdate
    from local_stack.interfaces import CassandraServers, KafkaServer

ROOT = Path(__file__).resolve().parents[2]
READY_SECONDS = 120.0
SYNC_SECONDS = 1.5  # the tests' commit log syncs once a second


class Sent(NamedTuple):
    """A raw message with its update decoded by the schema that was sent for it; None for heartbeats."""

    partition: int
    key: bytes | None
    message: raw.RawMessage
    update: PartitionUpdate | None


class PublisherProcess:
    """`cassandra-publisher run` with settings of a test."""

    def __init__(self, settings: dict[str, object], folder: Path) -> None:
        self.settings = settings
        self._log = folder / "publisher.log"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self, **changed: object) -> PublisherProcess:
        """Returns once it tails the log."""
        started_at = len(self.log())
        self._process = self._launch(changed)
        deadline = time.monotonic() + READY_SECONDS
        while '"ready"' not in self.log()[started_at:]:
            assert self._process.poll() is None, self.log()
            assert time.monotonic() < deadline, self.log()
            time.sleep(0.05)
        return self

    def fail(self, **changed: object) -> tuple[int, str]:
        """Exit status and output of one that cannot start, or cannot go on."""
        started_at = len(self.log())
        status = self._launch(changed).wait(READY_SECONDS)
        return status, self.log()[started_at:]

    def wait(self) -> int:
        assert self._process is not None
        return self._process.wait(READY_SECONDS)

    def stop(self) -> int:
        assert self._process is not None
        self._process.terminate()
        return self.wait()

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def log(self) -> str:
        return self._log.read_text() if self._log.exists() else ""

    def _launch(self, changed: dict[str, object]) -> subprocess.Popen[bytes]:
        values = {**self.settings, **{name.replace("__", "."): value for name, value in changed.items()}}
        sets = [f"--set={name}={value}" for name, value in values.items()]
        command = [sys.executable, "-m", "publisher", *sets, "run"]
        with self._log.open("ab") as log:
            return subprocess.Popen(command, cwd=ROOT, stdout=log, stderr=log)


class _Registry(BaseHTTPRequestHandler):
    """As much of a registry as registering takes."""

    def do_POST(self) -> None:
        schema = json.loads(self.rfile.read(int(self.headers["content-length"])))["schema"]
        self._answer(200, {"id": 7, "version": 1, "subject": "any", "schema": schema})

    def _answer(self, status: int, body: object) -> None:
        content = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("content-type", "application/vnd.schemaregistry.v1+json")
        self.send_header("content-length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture(scope="session")
def registry_url() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Registry)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()


@pytest.fixture
def publisher(
    cassandra: CassandraServers,
    cql: Session,
    kafka: KafkaServer,
    registry_url: str,
    topic_prefix: str,
    tmp_path: Path,
) -> Iterator[PublisherProcess]:
    """Not started yet; it begins behind what other tests have written, whose tables may be dropped."""
    folder = cassandra.nodes[0].cdc_raw
    assert folder is not None
    state = tmp_path / "state"
    state.mkdir(mode=0o700)
    begin_behind_the_present(folder, state, cql)
    process = PublisherProcess(
        {
            "cassandra.contact_points": cassandra.contact_points[0],
            "cassandra.port": cassandra.port,
            "kafka.bootstrap_servers": kafka.bootstrap_servers,
            "kafka.topic_prefix": topic_prefix,
            "kafka.raw_partitions": 3,
            "registry.url": registry_url,
            "publisher.cdc_raw_directory": folder,
            "publisher.state_directory": state,
        },
        tmp_path,
    )
    yield process
    process.kill()


def begin_behind_the_present(folder: Path, state: Path, cql: Session) -> None:
    time.sleep(SYNC_SECONDS)
    positions = Positions.load(state / "position.json", cql.execute("SELECT host_id FROM system.local").one().host_id)
    for file in segments(folder):
        index = file.read_index()
        if index is not None:
            positions.move([Mark(file.id, index.offset, is_end=index.is_completed)])
    positions.save()


@pytest.fixture
def sent(kafka: KafkaServer, topic_prefix: str) -> Callable[..., list[Sent]]:
    """Waits until a table's raw topic satisfies a condition and returns all of it, in the order of each partition."""

    def wait(keyspace: str, table: str, enough: Callable[[list[Sent]], bool], seconds: float = 60.0) -> list[Sent]:
        schemas = _Schemas(kafka.bootstrap_servers, topics.tables_topic(topic_prefix))
        topic = topics.raw_topic(topic_prefix, keyspace, table)
        found: list[Sent] = []
        deadline = time.monotonic() + seconds
        consumer = _consumer(kafka.bootstrap_servers)
        try:
            while topic not in consumer.list_topics().topics:
                assert time.monotonic() < deadline, f"{topic} is not made"
                time.sleep(0.1)
            partitions = consumer.list_topics(topic).topics[topic].partitions
            consumer.assign([TopicPartition(topic, partition, 0) for partition in partitions])
            while not enough(found):
                assert time.monotonic() < deadline, f"{len(found)} messages in {topic}"
                for message in consumer.consume(1000, timeout=0.2):
                    assert message.error() is None
                    found.append(schemas.decode(message.partition(), message.key(), message.value()))
        finally:
            consumer.close()
        return found

    return wait


class _Schemas:
    def __init__(self, servers: str, topic: str) -> None:
        self._servers = servers
        self._topic = topic
        self._values: dict[bytes, bytes] = {}

    def decode(self, partition: int, key: bytes | None, value: bytes) -> Sent:
        message = raw.decode(value)
        if message.kind == "heartbeat":
            return Sent(partition, key, message, None)
        if message.table_id + message.schema_digest not in self._values:
            self._read()
        table = tables.from_json(self._values[message.table_id + message.schema_digest])
        update, end = read_partition_update(message.update, 0, message.messaging_version, {message.table_id: table})
        assert end == len(message.update)
        assert key == update.partition_key
        return Sent(partition, key, message, update)

    def _read(self) -> None:
        """The schema is acknowledged before the first message that uses it: one look must do."""
        consumer = _consumer(self._servers)
        try:
            place = TopicPartition(self._topic, 0, 0)
            _, end = consumer.get_watermark_offsets(place)
            consumer.assign([place])
            while consumer.position([place])[0].offset < end:
                for message in consumer.consume(100, timeout=0.2):
                    self._values[message.key()] = message.value()
        finally:
            consumer.close()


def _consumer(servers: str) -> Consumer:
    return Consumer({"bootstrap.servers": servers, "group.id": "tests", "enable.auto.commit": False})
