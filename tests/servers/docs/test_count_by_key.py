"""The example of a job on the stream runtime: on a real broker and in Spark, it counts each message once."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from typing import TYPE_CHECKING

import pytest

from cdc_common.settings import KafkaSettings
from dev.local_stack.process.paths import project_root
from dev.local_stack.servers.programs import spark_environment
from stream_runtime.kafka import Topics, read_partition, send_all
from stream_runtime.records import Message

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from dev.local_stack.servers.kafka import KafkaBroker

pytestmark = [pytest.mark.servers, pytest.mark.timeout(600)]

KEYS = [b"ann", b"bob", b"cid", b"dee", b"eve"]
PARTITIONS = 2
WAIT_SECONDS = 300.0


class Scene:
    def __init__(self, servers: str, prefix: str, folder: Path) -> None:
        self.kafka = KafkaSettings(bootstrap_servers=servers, replication_factor=1)
        self.folder = folder
        self.source, self.target = f"{prefix}.orders", f"{prefix}.counts"
        self.output = folder / "output"
        self.sent: Counter[bytes] = Counter()
        for topic in (self.source, self.target):
            Topics(self.kafka).make_change_topic(topic, PARTITIONS, is_keyed=False)

    def send(self, count: int) -> None:
        """Send messages, with each key in a partition of its own."""
        keys = [KEYS[number % len(KEYS)] for number in range(count)]
        self.sent.update(keys)
        send_all(self.kafka, (Message(self.source, KEYS.index(key) % PARTITIONS, key, b"an order") for key in keys))

    def start(self, fault: str = "") -> subprocess.Popen[bytes]:
        command = [sys.executable, "docs/examples/count_by_key.py", self.kafka.bootstrap_servers, self.source]
        environment = {**os.environ, "PYTHONPATH": str(project_root()), **spark_environment(self.folder)}
        if fault:
            environment |= {"CDC_FAULT": fault, "CDC_FAULT_ONCE": str(self.folder / "fault")}
        with self.output.open("ab") as output:
            return subprocess.Popen(
                [*command, self.target, str(self.folder)],
                cwd=project_root(),
                env=environment,
                stdout=output,
                stderr=output,
            )

    def counted(self) -> Iterator[tuple[bytes, int]]:
        """The committed messages of the target."""
        for partition in range(PARTITIONS):
            for key, value in read_partition(self.kafka, self.target, partition):
                assert value is not None
                yield key, int(value)

    def wait_until_counted(self, job: subprocess.Popen[bytes]) -> None:
        """Wait until as many messages have come out as were sent. Then each count of each key is there once."""
        deadline = time.monotonic() + WAIT_SECONDS
        while sum(1 for _ in self.counted()) < self.sent.total():
            assert job.poll() is None, self.output.read_text()
            assert time.monotonic() < deadline, self.output.read_text()
            time.sleep(0.5)
        counts: dict[bytes, list[int]] = {}
        for key, count in self.counted():
            counts.setdefault(key, []).append(count)
        assert counts == {key: list(range(1, count + 1)) for key, count in self.sent.items()}

    def stop(self, job: subprocess.Popen[bytes]) -> None:
        job.send_signal(signal.SIGTERM)
        assert job.wait(WAIT_SECONDS) == 0, self.output.read_text()


@pytest.fixture
def scene(kafka: KafkaBroker, topic_prefix: str, tmp_path: Path) -> Scene:
    return Scene(kafka.bootstrap_servers, topic_prefix, tmp_path)


def test_each_message_is_counted_once_through_a_crash_and_a_restart(scene: Scene) -> None:
    scene.send(300)
    job = scene.start(fault="after_produce:1")  # a worker is killed in its first transaction, before it commits
    scene.wait_until_counted(job)
    assert (scene.folder / "fault").exists()
    scene.stop(job)
    scene.send(105)
    job = scene.start()
    scene.wait_until_counted(job)
    scene.stop(job)
