"""What an idle materializer costs: many raw partitions that receive only heartbeats, on a real broker and Spark.

CPU of all its processes (both JVMs, Python's driver and workers) over a while after all has settled, of a minute and of
a batch; what a worker holds; and how long a real write takes that comes to one of them. It ends with an error where
batches do not end, heartbeats are not consumed, or a position falls behind.

With `--before`, an older version of this project is measured beside this one. Its native core must be compiled.
"""

from __future__ import annotations

import random
import statistics
import tempfile
import threading
import time
import uuid
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click
import psutil
from confluent_kafka import OFFSET_END, Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from bench.results import Figures, medians, report
from cassandra_storage.deletion import LivenessInfo
from cassandra_storage.rows import Cell, Row
from cdc_messages.tables import message_key, to_json
from cdc_program.settings import KafkaSettings
from local_stack.process.paths import project_root
from local_stack.servers.choice import kafka_broker
from local_stack.servers.programs import materializer
from materializer.kafka import GroupPositions, Topics
from materializer.records import RawPartition
from tests.support.materializer.raw_builder import TABLE, TableWriter, int_bytes, raw_record
from tests.support.schematizer.registry_process import Registry

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from local_stack.servers.programs import Program, Setting
    from materializer.exactly_once.position import Position

PREFIX = "cdc"
HEARTBEAT_SECONDS = 10.0  # the publishers' default
IDLE_SECONDS = 60.0  # the default of materializer.idle_commit_seconds
SLACK_SECONDS = 20.0
SETTLE_SECONDS = 420.0
CHANGE_SECONDS = 30.0
WRITES = 20


class Load(NamedTuple):
    """Raw partitions, and the heartbeats that publishers send to them."""

    tables: int
    partitions: int
    hosts: int
    heartbeat_seconds: float

    @property
    def raw(self) -> list[RawPartition]:
        return [
            RawPartition(f"{PREFIX}.raw.shop.t{table}", each)
            for table in range(self.tables)
            for each in range(self.partitions)
        ]

    @property
    def rate(self) -> float:
        """Heartbeats a second."""
        return len(self.raw) * self.hosts / self.heartbeat_seconds

    def writer(self, table: int) -> TableWriter:
        return TableWriter(replace(TABLE, name=f"t{table}", id=uuid.UUID(int=1000 + table)))


class Heartbeats(threading.Thread):
    """Sends what the publishers of so many hosts send to quiet partitions, each host at a time of its own."""

    def __init__(self, bootstrap: str, load: Load) -> None:
        super().__init__(daemon=True)
        self._load = load
        self._producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 5})
        self._writers = [load.writer(table) for table in range(load.tables)]
        self._over = threading.Event()

    def run(self) -> None:
        pause = self._load.heartbeat_seconds / self._load.hosts
        due = time.monotonic()
        host = 0
        while not self._over.wait(max(0.0, due - time.monotonic())):
            due += pause
            self.send(host := host % self._load.hosts + 1)

    def send(self, host: int) -> None:
        clock = int(time.time() * 1e6)
        values = [
            raw_record(b"", "heartbeat", None, host=host, clock=clock, writer=each).value for each in self._writers
        ]
        for partition in self._load.raw:
            table = int(partition.topic.rpartition(".t")[2])
            self._producer.produce(partition.topic, values[table], b"", partition.partition)
            self._producer.poll(0)
        self._producer.flush()

    def write(self, table: int, partition: int) -> None:
        """One row, of now."""
        now = int(time.time() * 1e6)
        row = Row((int_bytes(partition),), {"a": Cell(now, b"written")}, LivenessInfo(now))
        record = raw_record(int_bytes(now % 2**31), "row", row, offset=now, writer=self._writers[table])
        self._producer.produce(f"{PREFIX}.raw.shop.t{table}", record.value, record.key, partition)
        self._producer.flush()

    def end(self) -> None:
        self._over.set()
        self.join()


class Idle:
    """A running materializer, and questions about it."""

    def __init__(self, job: Program, bootstrap: str, load: Load) -> None:
        kafka = KafkaSettings(bootstrap_servers=bootstrap)
        self.job = job
        self.load = load
        self._positions = GroupPositions(kafka, "cassandra-materializer", stable=False)
        self._topics = Topics(kafka)
        self._bootstrap = bootstrap

    def positions(self) -> dict[RawPartition, Position | None]:
        return self._positions.read(self.load.raw)

    def lag(self) -> int:
        """The largest number of messages that a partition's position is behind its end."""
        ends = self._topics.bounds(self.load.raw)
        return max(ends[each][1] - (at.offset if at else 0) for each, at in self.positions().items())

    def batches(self) -> int:
        return self.job.output().count('"event": "batch"')

    def settle(self) -> None:
        """Wait until each position has been committed, and the processes only follow."""
        deadline = time.monotonic() + SETTLE_SECONDS
        while not all(self.positions().values()):
            self.job.check()
            if time.monotonic() > deadline:
                raise click.ClickException("some partitions were never committed")
            time.sleep(1)
        time.sleep(IDLE_SECONDS / 2)

    def processes(self) -> list[psutil.Process]:
        root = psutil.Process(self.job.pid)
        return [root, *root.children(recursive=True)]

    def workers(self) -> list[psutil.Process]:
        """The Python processes that have raw partitions: the daemon's children."""
        python = [each for each in self.processes() if "pyspark.daemon" in _command(each)]
        return [each for each in python if each.ppid() in {other.pid for other in python}]

    def cpu(self) -> dict[int, float]:
        return {each.pid: sum(each.cpu_times()[:2]) for each in self.processes()}

    def latencies(self, count: int) -> list[float]:
        """Seconds from before a write is sent until its change has been read, in a partition at random each."""
        heartbeats = Heartbeats(self._bootstrap, self.load)
        return [self._latency(heartbeats, random.Random(number)) for number in range(count)]  # noqa: S311 - a bench

    def _latency(self, heartbeats: Heartbeats, rng: random.Random) -> float:
        table, partition = rng.randrange(self.load.tables), rng.randrange(self.load.partitions)
        with _consumer_at_the_end(self._bootstrap, f"{PREFIX}.shop.t{table}") as consumer:
            started = time.monotonic()
            heartbeats.write(table, partition)
            while time.monotonic() < started + CHANGE_SECONDS:
                message = consumer.poll(1.0)
                if message is not None and message.error() is None:
                    return time.monotonic() - started
        raise click.ClickException("a write did not come out")


def _command(process: psutil.Process) -> str:
    """Empty if it has ended."""
    try:
        return " ".join(process.cmdline())
    except psutil.Error:
        return ""


@contextmanager
def _consumer_at_the_end(bootstrap: str, topic: str) -> Iterator[Consumer]:
    """A consumer at the end of a change topic that has one partition."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "bench",
            "isolation.level": "read_committed",
            "fetch.wait.max.ms": 5,
        }
    )
    try:
        consumer.assign([TopicPartition(topic, 0, OFFSET_END)])
        consumer.get_watermark_offsets(TopicPartition(topic, 0), 10.0)
        consumer.poll(1.0)
        yield consumer
    finally:
        consumer.close()


@click.command()
@click.option("--shape", nargs=3, default=(50, 8, 3), help="Tables, raw partitions of each, hosts that publish.")
@click.option("--seconds", default=90.0, help="For which the CPU is measured.")
@click.option("--set", "given", multiple=True, help="materializer.NAME=VALUE")
@click.option("--before", type=click.Path(path_type=Path), help="Folder of an older version, which is measured too.")
@click.option("--rounds", default=1, show_default=True, help="The figures are medians.")
def main(shape: tuple[int, int, int], seconds: float, given: Sequence[str], before: Path | None, rounds: int) -> None:
    """Measure an idle materializer."""
    load, settings = Load(*shape, HEARTBEAT_SECONDS), dict(each.split("=", 1) for each in given)
    versions = {"now": project_root()} | ({"before": before.resolve()} if before else {})
    found: dict[str, list[Figures]] = {label: [] for label in versions}
    for _ in range(rounds):
        for label, version in versions.items():
            click.echo(f"{label}: {version}")
            found[label].append(_measure_version(version, load, settings, seconds))
    facts = {"raw_partitions": len(load.raw), "heartbeats_per_second": load.rate, "seconds": seconds, "rounds": rounds}
    rows = {label: medians(each) for label, each in found.items()}
    report("idle", f"An idle materializer, {len(load.raw)} raw partitions", rows, facts)


def _measure_version(version: Path, load: Load, settings: dict[str, str], seconds: float) -> Figures:
    """Measures the code in a folder."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="cdc-bench-idle-")))
        idle = _start(stack, folder, version, load, settings)
        idle.settle()
        figures = _measure(idle, seconds) | _resources(idle)
        found = sorted(idle.latencies(WRITES))
        return figures | {"write ms, median": 1000 * statistics.median(found), "write ms, slowest": 1000 * found[-1]}


def _start(stack: ExitStack, folder: Path, version: Path, load: Load, settings: dict[str, str]) -> Idle:
    broker = kafka_broker(folder=folder / "kafka")
    broker.is_optimized = True
    stack.callback(broker.close)
    broker.start()
    registry = Registry(folder / "registry.db").start()
    stack.callback(registry.stop)
    _make_topics(broker.bootstrap_servers, load)
    heartbeats = Heartbeats(broker.bootstrap_servers, load)
    heartbeats.start()
    stack.callback(heartbeats.end)
    own: dict[str, Setting] = {
        "kafka.bootstrap_servers": broker.bootstrap_servers,
        "kafka.change_partitions": 1,
        "registry.url": registry.url,
        "log.level": "debug",
    }
    job = materializer(folder, {**own, **settings})
    job.environment["PYTHONPATH"] = str(version)
    stack.callback(job.stop)
    job.start()
    return Idle(job, broker.bootstrap_servers, load)


def _make_topics(bootstrap: str, load: Load) -> None:
    stamped = {"message.timestamp.type": "LogAppendTime"}
    names = dict.fromkeys(partition.topic for partition in load.raw)
    topics = [NewTopic(name, load.partitions, 1, config=stamped) for name in names]
    admin = AdminClient({"bootstrap.servers": bootstrap})
    for future in admin.create_topics([*topics, NewTopic(f"{PREFIX}.tables", 1, 1)], operation_timeout=60).values():
        future.result()
    producer = Producer({"bootstrap.servers": bootstrap})
    for table in range(load.tables):
        found = load.writer(table).table
        producer.produce(f"{PREFIX}.tables", to_json(found), message_key(found))
    producer.flush()


def _measure(idle: Idle, seconds: float) -> Figures:
    before, batches, positions = idle.cpu(), idle.batches(), idle.positions()
    psutil.cpu_percent()
    started = time.monotonic()
    worst = max(_lags(idle, started + seconds))
    took = time.monotonic() - started
    machine = psutil.cpu_percent() / 100
    after = idle.cpu()
    if not before.keys() <= after.keys():
        raise click.ClickException("a process ended during the measurement")
    used = sum(after.values()) - sum(before.values())
    ended = idle.batches() - batches
    moved = sum(at != positions[each] for each, at in idle.positions().items())
    load = idle.load
    allowed = load.hosts * ((IDLE_SECONDS + SLACK_SECONDS) / load.heartbeat_seconds + 1)
    if ended < took / 10 or worst > allowed or (took > IDLE_SECONDS + SLACK_SECONDS and moved < len(load.raw)):
        raise click.ClickException(f"it is too slow: {ended} batches, {moved} positions moved, {worst} messages behind")
    return {
        "CPU, cores": used / took,
        "CPU s of a minute": 60 * used / took,
        "CPU s of a batch": used / ended,
        "batches of a minute": 60 * ended / took,
        "processes": len(after),
        "positions that moved": moved,
        "most messages behind": worst,
        "busy share of the machine": machine,
    }


def _lags(idle: Idle, until: float) -> Iterator[int]:
    while time.monotonic() < until:
        idle.job.check()
        yield idle.lag()
        time.sleep(5)


def _resources(idle: Idle) -> Figures:
    """The threads, open files and memory of a worker: the largest number of each."""
    workers = idle.workers()
    return {
        "threads of a worker": max(each.num_threads() for each in workers),
        "files of a worker": max(each.num_fds() for each in workers),
        "memory MB of a worker": max(each.memory_info().rss for each in workers) / 1e6,
    }


if __name__ == "__main__":
    main()
