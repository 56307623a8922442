"""Eight tables under load, and one real Spark job that materializes them: what breaks one, and how late each change is.

Writes are sent as raw messages, without Cassandra. The latency of a change is the time from its write's timestamp to
its receipt by a consumer with `read_committed`.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections import defaultdict
from contextlib import suppress
from dataclasses import replace
from io import BytesIO
from typing import TYPE_CHECKING, Any, NamedTuple
from uuid import UUID

from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, NewTopic, ResourceType
from fastavro import schemaless_reader

from cassandra_storage.formats.rows.deletion import LivenessInfo
from cassandra_storage.formats.rows.row import Cell, Row
from cdc_common.errors.codes import Code
from cdc_common.messages import wire
from cdc_common.messages.avro.type_forms import DEFAULT_FORMS
from cdc_common.messages.envelope import value_schema
from cdc_common.messages.tables import message_key, to_json
from cdc_common.settings import KafkaSettings
from dev.local_stack.process.network import free_ports
from dev.local_stack.process.processes import wait_until
from dev.local_stack.servers.programs import materializer
from materializer.records import RawPartition
from stream_runtime.kafka import FencingProducer, GroupPositions
from tests.support.http_get import get
from tests.support.materializer.failing_run import FILE, TABLE
from tests.support.materializer.raw_builder import TABLE as ORDERS
from tests.support.materializer.raw_builder import TableWriter, int_bytes, raw_record

if TYPE_CHECKING:
    from pathlib import Path

    from dev.local_stack.servers.programs import Setting

COUNT = 8
FORMS = DEFAULT_FORMS._replace(static_rows="include")
NAMES = tuple(f"t{number}" for number in range(COUNT))
LARGE, DAMAGED, FAILING = NAMES[:3]
OTHERS = NAMES[3:]
TABLES = {name: replace(ORDERS, name=name, id=UUID(int=100 + at)) for at, name in enumerate(NAMES)}
WRITES_PER_SECOND = 20  # of each table
LARGE_BYTES = 2 << 20
WAIT_SECONDS = 300.0
STOP_SECONDS = 5.0
MEGABYTES = 16 << 20
LOADED = 5  # the clustering of the row of each table that the load writes


class Received(NamedTuple):
    """A change, and the time (s since 1970) at which it was received."""

    change: dict[str, Any]
    at: float

    @property
    def latency(self) -> float:
        return self.at - float(self.change["source"]["ts_us"]) / 1e6


class EightTables:
    """Topics, load, consumer and job. `failing_file`: while it exists, folds of FAILING raise.

    location: the checkpoint location, by default a folder below `folder`.
    """

    def __init__(self, bootstrap: str, prefix: str, registry: str, folder: Path, location: str | None = None) -> None:
        self.prefix = prefix
        self.folder = folder
        self.failing_file = folder / "fail"
        self.port = free_ports(1)[0]
        self.received: defaultdict[str, list[Received]] = defaultdict(list)
        self.sent: dict[str, int] = dict.fromkeys(NAMES, 0)
        self._kafka = KafkaSettings(bootstrap_servers=bootstrap, topic_prefix=prefix)
        self._admin = AdminClient({"bootstrap.servers": bootstrap})
        self._producer = Producer({"bootstrap.servers": bootstrap, "message.max.bytes": MEGABYTES, "linger.ms": 5})
        self._over = threading.Event()
        self._lock = threading.Lock()
        self._threads: list[threading.Thread] = []
        self._backup: dict[Path, bytes] = {}
        settings: dict[str, Setting] = {
            "kafka.bootstrap_servers": bootstrap,
            "kafka.topic_prefix": prefix,
            "kafka.change_partitions": 1,
            "registry.url": registry,
            "materializer.group_id": prefix,
            "materializer.static_rows": FORMS.static_rows,
            "materializer.operations_port": self.port,
            **({"materializer.checkpoint_location": location} if location else {}),
        }
        self.job = materializer(folder, settings)
        self.job.arguments = ("-m", "tests.support.materializer.failing_job", "run")
        self.job.environment |= {TABLE: FAILING, FILE: str(self.failing_file)}

    def start(self) -> None:
        """Make the topics, start the job and the load, and wait for a change of each table."""
        large = {"max.message.bytes": str(MEGABYTES), "message.timestamp.type": "LogAppendTime"}
        topics = [NewTopic(self.raw(name).topic, 1, 1, config=large) for name in NAMES]
        for future in self._admin.create_topics([*topics, NewTopic(f"{self.prefix}.tables", 1, 1)]).values():
            future.result()
        for table in TABLES.values():
            self._producer.produce(f"{self.prefix}.tables", to_json(table), message_key(table))
        self._producer.flush()
        self.job.start()
        self._threads = [threading.Thread(target=self._load), threading.Thread(target=self._receive)]
        for thread in self._threads:
            thread.start()
        wait_until(self._has_begun, "a change of each table", WAIT_SECONDS)

    def _has_begun(self) -> bool:
        self.job.check()
        return all(self.received[name] for name in NAMES)

    def stop(self) -> None:
        self._over.set()
        self.job.kill()  # for which the consumer does not wait then
        for thread in self._threads:
            thread.join()
        self.job.discard()

    def raw(self, name: str) -> RawPartition:
        return RawPartition(f"{self.prefix}.raw.shop.{name}", 0)

    def write(self, name: str, text: str | None = None, clustering: int = LOADED) -> None:
        """One write: its number, or the text."""
        with self._lock:
            number = self.sent[name]
            self.sent[name] = number + 1
            stamp = int(time.time() * 1e6)
            row = Row((int_bytes(clustering),), {"a": Cell(stamp, (text or str(number)).encode())}, LivenessInfo(stamp))
            writer = TableWriter(TABLES[name])
            record = raw_record(int_bytes(1), "row", row, offset=number, writer=writer)
            self._producer.produce(self.raw(name).topic, record.value, record.key)
        self._producer.poll(0)

    def break_three(self) -> None:
        """A row that is too large, a state that cannot be restored, and an exception in a fold."""
        self.failing_file.touch()
        self.write(LARGE, os.urandom(LARGE_BYTES // 2).hex())
        deadline = time.monotonic() + WAIT_SECONDS
        self._damage()
        while not self._has_stopped(DAMAGED, Code.STATE_DAMAGED.text, STOP_SECONDS):
            assert time.monotonic() < deadline, "the raw partition with the damaged state has not stopped"
            self._damage()

    def _has_stopped(self, name: str, code: str, seconds: float) -> bool:
        """Whether it stops with this code within this time, or the job ends. The fenced producer stops it, too."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            with suppress(OSError):
                if not self.job.is_running or self.stopped().get(name) == code:
                    return True
            time.sleep(0.1)
        return False

    def _damage(self) -> None:
        """All that is stored of one state, and the local one. The job may store it again in between: then once more."""
        stored = self.folder / "materializer-checkpoint" / self.prefix / str(self.raw(DAMAGED))
        for file in stored.rglob("*"):
            with suppress(OSError):  # a folder, or a file that the job deletes now
                content = file.read_bytes()
                if content != b"damaged":
                    self._backup[file] = content
                    file.write_bytes(b"damaged")
        assert self._backup
        self.lose_state(DAMAGED)

    def lose_state(self, name: str) -> None:
        """The table's local state is gone, and its worker must open it again."""
        local = self.folder / "materializer-state" / self.prefix / str(self.raw(name))
        for file in local.glob("slot-*/db/*"):
            file.unlink(missing_ok=True)
        consumer = GroupPositions(self._kafka, self.prefix).consumer
        FencingProducer(self._kafka, self.prefix, str(self.raw(name)), consumer)

    def repair_three(self) -> None:
        """Remove the three causes."""
        self.failing_file.unlink()
        for file, content in self._backup.items():
            file.write_bytes(content)
        resource = ConfigResource(
            ResourceType.TOPIC,
            f"{self.prefix}.shop.{LARGE}",
            incremental_configs=[
                ConfigEntry("max.message.bytes", str(MEGABYTES), incremental_operation=AlterConfigOpType.SET)
            ],
        )
        self._admin.incremental_alter_configs([resource])[resource].result()

    def command(self, *arguments: str) -> tuple[int, str]:
        """Exit status and output of `cassandra-materializer …`."""
        command = [sys.executable, "-m", "materializer", *arguments, "--operations-port", str(self.port)]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
        return done.returncode, done.stdout

    def stopped(self) -> dict[str, str]:
        """Table → code, as /status says: the command would take the machine's time from what is measured."""
        found = json.loads(get(self.port, "/status")[1])["stopped"]
        names = {str(self.raw(name)): name for name in NAMES}
        return {names[stop["raw_partition"]]: stop["code"] for stop in found}

    def finish(self) -> None:
        """End the load and wait for all changes."""
        self._over.set()
        self._threads[0].join()
        wait_until(lambda: all(len(self.received[name]) >= self.sent[name] for name in NAMES), "all", WAIT_SECONDS)

    def _load(self) -> None:
        while not self._over.wait(1 / WRITES_PER_SECOND):
            for name in NAMES:
                self.write(name)
        self._producer.flush()

    def _receive(self) -> None:
        """Receive until all that was sent is there, or the scene ends."""
        own = {"group.id": "eight", "isolation.level": "read_committed", "auto.offset.reset": "earliest"}
        own |= {"fetch.wait.max.ms": "10", "topic.metadata.refresh.interval.ms": "1000"}
        consumer = Consumer({"bootstrap.servers": self._kafka.bootstrap_servers, **own, "enable.auto.commit": False})
        consumer.subscribe([f"^{self.prefix}\\.shop\\..*"])
        schemas = {name: value_schema(TABLES[name], self.prefix, FORMS) for name in NAMES}
        while not self._over.is_set() or any(len(self.received[name]) < self.sent[name] for name in NAMES):
            for message in consumer.consume(500, 0.1):
                value, topic = message.value(), message.topic() or ""
                if message.error() is None and value is not None:
                    name = topic.rpartition(".")[2]
                    change: Any = schemaless_reader(BytesIO(value[wire.HEADER_SIZE :]), schemas[name], None)
                    self.received[name].append(Received(change, time.time()))
            if self._over.is_set() and not self.job.is_running:
                break
        consumer.close()
