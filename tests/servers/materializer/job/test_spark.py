"""The job in Spark, on a real broker, with the trivial fold."""

from __future__ import annotations

import itertools
import os
import signal
import subprocess
import sys
import threading
import time
from collections import defaultdict
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import psutil
import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic

from cdc_common.errors.codes import Code
from cdc_common.messages.topics import partition_for
from tests.support.materializer.counting import BAD_KEY, CHANGE_PARTITIONS, RAW_PARTITIONS
from tests.support.materializer.protocol_run import ROOT, read_topic
from tests.support.schematizer.registry_process import Registry

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from dev.local_stack.servers.kafka import KafkaBroker

pytestmark = [pytest.mark.servers, pytest.mark.timeout(600)]

PARTITIONS = 3
WAIT_SECONDS = 180.0


class Job:
    """Runs of the job over one raw topic; what they print is kept."""

    def __init__(self, bootstrap: str, registry: str, prefix: str, folder: Path) -> None:
        self.bootstrap = bootstrap
        self.raw = f"{prefix}.raw.shop.orders"
        self.changes = f"{prefix}.shop.orders"
        self.output = folder / "output-0"
        self.starts = 0
        self.sent = 0
        self._settings = {
            "kafka.bootstrap_servers": bootstrap,
            "kafka.topic_prefix": prefix,
            "registry.url": registry,
            "materializer.group_id": prefix,
            "materializer.checkpoint_location": folder / "checkpoint",
            "materializer.state_directory": folder / "state",
            "materializer.max_offsets_per_trigger": 2000,
            "materializer.operations_port": 0,
            "log.level": "debug",
        }
        self.process: subprocess.Popen[bytes] | None = None

    def start(self, **settings: object) -> None:
        given = {**self._settings, **{f"materializer.{name}": value for name, value in settings.items()}}
        flags = [part for name, value in given.items() for part in ("--set", f"{name}={value}")]
        command = [sys.executable, "-m", "tests.support.materializer.spark_run", "run", *flags]
        environment = {**os.environ, "PYTHONPATH": str(ROOT), RAW_PARTITIONS: str(PARTITIONS)}
        self.starts += 1  # a killed driver's JVM goes on writing to the former one for a while
        self.output = self.output.with_name(f"output-{self.starts}")
        with self.output.open("wb") as output:
            self.process = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=output, stderr=output)
        self.wait_for(lambda: b'"ready"' in self.output.read_bytes())

    def wait_for(self, condition: Callable[[], bool]) -> None:
        deadline = time.monotonic() + WAIT_SECONDS
        while not condition():
            assert self.process is not None
            assert self.process.poll() is None, self.output.read_text()
            assert time.monotonic() < deadline, self.output.read_text()
            time.sleep(0.2)

    def end(self, number: signal.Signals) -> int:
        assert self.process is not None
        self.process.send_signal(number)
        return self.process.wait(WAIT_SECONDS)

    def make_topics(self) -> None:
        admin = AdminClient({"bootstrap.servers": self.bootstrap})
        raw = NewTopic(self.raw, PARTITIONS, 1, config={"message.timestamp.type": "LogAppendTime"})
        for future in admin.create_topics([NewTopic(self.changes, CHANGE_PARTITIONS, 1), raw]).values():
            future.result()

    def send(self, count: int, key: bytes | None = None) -> None:
        producer = Producer({"bootstrap.servers": self.bootstrap, "partitioner": "murmur2"})
        for number in range(self.sent, self.sent + count):
            producer.produce(self.raw, b"v", key or b"k%d" % (number % 101))
        producer.flush()
        self.sent += count

    def received(self) -> int:
        return sum(1 for _ in read_topic(self.bootstrap, self.changes, CHANGE_PARTITIONS))

    def check(self) -> None:
        """Each key counts up without a gap, and nothing is missing."""
        assert self.check_chains() == self.sent

    def check_chains(self) -> int:
        """Each key counts up without a gap; the number of messages."""
        found = defaultdict(list)
        for message in read_topic(self.bootstrap, self.changes, CHANGE_PARTITIONS):
            found[message.key()].append(message.value())
        for values in found.values():
            assert values == [b"[%d, %d]" % (number, number + 1) for number in range(len(values))]
        return sum(map(len, found.values()))

    @contextmanager
    def load(self) -> Iterator[None]:
        """Messages all the time, by a producer that follows the topic's partitions."""
        over = threading.Event()

        def send() -> None:
            producer = Producer(
                {
                    "bootstrap.servers": self.bootstrap,
                    "partitioner": "murmur2",
                    "topic.metadata.refresh.interval.ms": 100,
                }
            )
            for number in itertools.count():
                if over.wait(0.0005):
                    break
                producer.produce(self.raw, b"v", b"k%d" % (number % 101))
                producer.poll(0)
            producer.flush()

        sender = threading.Thread(target=send)
        sender.start()
        try:
            yield
        finally:
            over.set()
            sender.join()


@pytest.fixture
def job(kafka: KafkaBroker, topic_prefix: str, tmp_path: Path) -> Iterator[Job]:
    registry = Registry(tmp_path / "registry.db").start()
    made = Job(kafka.bootstrap_servers, registry.url, topic_prefix, tmp_path)
    yield made
    if made.process is not None and made.process.poll() is None:
        made.process.kill()
    registry.stop()


@pytest.mark.exhaustive
def test_killed_and_started_again_it_counts_each_message_once(job: Job) -> None:
    job.start(spark_master="local-cluster[1,1,1024]")  # before there is a raw topic
    job.make_topics()
    job.send(5_000)
    job.wait_for(lambda: job.received() > 0)
    job.end(signal.SIGKILL)
    job.send(5_000)
    job.start(spark_master="local[2,4]")
    job.wait_for(lambda: job.received() == job.sent)
    job.check()
    job.send(1, BAD_KEY)
    job.wait_for(lambda: b"raw partition stopped" in job.output.read_bytes())
    job.sent -= 1
    others = [b"k%d" % number for number in range(101) if not is_beside(BAD_KEY, b"k%d" % number)]
    assert others
    for key in others:
        job.send(10, key)
    job.wait_for(lambda: job.received() == job.sent)
    job.check()
    said = job.output.read_text()
    assert "A bad message was met." in said
    assert Code.RAW_MESSAGE_UNREADABLE.text in said
    assert "Traceback" not in said
    assert job.end(signal.SIGTERM) == 0


def is_beside(key: bytes, other: bytes) -> bool:
    """Whether both keys belong to one raw partition."""
    return partition_for(key, PARTITIONS) == partition_for(other, PARTITIONS)


@pytest.mark.exhaustive
def test_partitions_added_under_load_stop_their_topic_before_a_moved_key_is_counted(job: Job) -> None:
    job.make_topics()
    job.start(spark_master="local[2,4]", max_offsets_per_trigger=200)
    with job.load():
        job.wait_for(lambda: job.received() > 500)
        admin = AdminClient({"bootstrap.servers": job.bootstrap})
        admin.create_partitions([NewPartitions(job.raw, PARTITIONS + 1)])[job.raw].result()
        job.wait_for(lambda: Code.RAW_PARTITIONS_CHANGED.text in job.output.read_text())
    assert job.end(signal.SIGTERM) == 0
    counted = job.check_chains()
    assert counted > 500
    job.start(spark_master="local[2,4]")  # nor does it go on then
    job.wait_for(lambda: Code.RAW_PARTITIONS_CHANGED.text in job.output.read_text())
    assert job.end(signal.SIGTERM) == 0
    assert job.check_chains() == counted


@pytest.mark.parametrize(
    ("number", "master"),
    [
        (signal.SIGTERM, "local-cluster[1,1,1024]"),
        pytest.param(signal.SIGINT, "local[1]", marks=pytest.mark.exhaustive),
    ],
)
def test_it_stops_cleanly(job: Job, number: signal.Signals, master: str) -> None:
    """An executor's working folder is deleted too."""
    job.make_topics()
    job.send(500)
    job.start(spark_master=master)
    folders = work_folders(job)
    assert [folder.is_dir() for folder in folders] == [True] * master.startswith("local-cluster")
    assert job.end(number) == 0
    output = job.output.read_text()
    assert "Exception" not in output
    assert "Error" not in output
    assert not any(folder.exists() for folder in folders)


def work_folders(job: Job) -> set[Path]:
    """The work folders of the job's application. It has none if its Spark starts no executors."""
    assert job.process is not None
    if "local-cluster" not in " ".join(psutil.Process(job.process.pid).cmdline()):
        return set()
    found: set[Path] = set()

    def has_executor() -> bool:
        for process in psutil.Process(job.process.pid if job.process else 0).children(recursive=True):
            with suppress(psutil.NoSuchProcess):
                line = process.cmdline()
                if "--app-id" in line:
                    found.add(Path(process.cwd()).parent)
        return bool(found)

    job.wait_for(has_executor)
    return found


@pytest.mark.exhaustive
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_jvm_that_ends_ends_it_with_one_error(job: Job, number: signal.Signals) -> None:
    job.make_topics()
    job.start(spark_master="local[1]")
    job.send(500)
    job.wait_for(lambda: job.received() > 0)
    assert job.process is not None
    for child in psutil.Process(job.process.pid).children():
        if child.name() == "java":
            child.send_signal(number)
    assert job.process.wait(WAIT_SECONDS) == Code.SPARK_FAILED.exit_status
    output = job.output.read_text()
    assert output.count(f"error {Code.SPARK_FAILED.text}: Spark has ended") == 1
    assert "Traceback" not in output
    job.start(spark_master="local[1]")
    job.wait_for(lambda: job.received() == job.sent)
    job.check()
