"""Measures the cost of many tables to the materializer: idle, at a restart, and when a few of them are active. Real
broker and Spark.

Publishers are played: they write raw messages and watermarks straight to Kafka. With `--before`, an older version of
this project is measured, whose publishers send a heartbeat to each raw partition. Its native core must be compiled.

A round: start; write to some tables until their changes come; measure the idle job; measure the time from a write to
its change in the active tables; stop the job and start it again, and measure how long the first change of each active
table takes from the start of the program.
"""

from __future__ import annotations

import random
import statistics
import tempfile
import threading
import time
import uuid
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click
import psutil
from confluent_kafka import OFFSET_END, Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from cassandra_storage.formats.rows.deletion import LivenessInfo
from cassandra_storage.formats.rows.row import Cell, Row
from cdc_common.messages import watermarks
from cdc_common.messages.tables import message_key, to_json
from cdc_common.messages.watermarks import TableWatermark, Watermark
from dev.bench.results import Figures, report
from dev.local_stack.process.paths import project_root
from dev.local_stack.process.processes import ChildProcess
from dev.local_stack.servers.choice import kafka_broker
from dev.local_stack.servers.programs import materializer
from tests.support.materializer.raw_builder import TABLE, TableWriter, int_bytes, raw_record
from tests.support.schematizer.registry_process import Registry

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from dev.local_stack.servers.kafka import KafkaBroker
    from dev.local_stack.servers.programs import Program, Setting

PREFIX = "cdc"
PARTITIONS, HOSTS = 4, 3
HEARTBEAT_SECONDS = 10.0  # the publishers' default
SETTLE_SECONDS = 20.0
CHANGE_SECONDS = 900.0
TOPICS_AT_ONCE = 100


class Load(NamedTuple):
    """The tables of a run, and the writes to them."""

    # The number of tables.
    tables: int
    # The number of tables that are written to.
    active: int
    # The number of writes per second to all active tables together.
    rate: float

    def writer(self, table: int) -> TableWriter:
        return TableWriter(replace(TABLE, name=f"t{table}", id=uuid.UUID(int=1000 + table)))

    @property
    def actives(self) -> range:
        """The active tables, which are spread over all."""
        return range(0, self.tables, max(1, self.tables // self.active))[: self.active]


class Publishers(threading.Thread):
    """Says what the publishers of the hosts say, each host at a time of its own."""

    def __init__(self, bootstrap: str, load: Load, *, with_watermarks: bool) -> None:
        super().__init__(daemon=True)
        self._producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 5})
        self._writers = [load.writer(table) for table in range(load.tables)]
        self._with_watermarks = with_watermarks
        self._over = threading.Event()

    def run(self) -> None:
        pause = HEARTBEAT_SECONDS / HOSTS
        due = time.monotonic()
        host = 0
        while not self._over.wait(max(0.0, due - time.monotonic())):
            due += pause
            host = host % HOSTS + 1
            for topic, partition, key, value in self._messages(host, int(time.time() * 1e6)):
                self._producer.produce(topic, value, key, partition)
                self._producer.poll(0)
            self._producer.flush()

    def end(self) -> None:
        self._over.set()
        self.join()

    def _messages(self, host: int, clock: int) -> Iterator[tuple[str, int, bytes, bytes]]:
        if self._with_watermarks:
            tables = {writer.table.id.bytes: TableWatermark(writer.digest, clock) for writer in self._writers}
            for key, value in watermarks.encode(Watermark(bytes([host]) * 16, clock, 1, 1, tables)):
                yield f"{PREFIX}.watermarks", 0, key, value
            return
        for number, writer in enumerate(self._writers):
            value = raw_record(b"", "heartbeat", None, host=host, clock=clock, writer=writer).value
            for partition in range(PARTITIONS):
                yield f"{PREFIX}.raw.shop.t{number}", partition, b"", value


class Probe:
    """Writes rows into the active tables, and reads their changes: the seconds that each took."""

    def __init__(self, bootstrap: str, load: Load) -> None:
        self._load = load
        self._producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 0})
        self._writers = {table: load.writer(table) for table in load.actives}
        self._consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": "bench",
                "isolation.level": "read_committed",
                "fetch.wait.max.ms": 5,
                "topic.metadata.refresh.interval.ms": 1000,
            }
        )
        self._rng = random.Random(1)  # noqa: S311 - a bench
        self._written = 0

    def assign(self) -> None:
        """Read the change topics, which exist by now, from their ends on."""
        places = [TopicPartition(f"{PREFIX}.shop.t{table}", 0, OFFSET_END) for table in self._load.actives]
        self._consumer.assign(places)
        for place in places:
            self._consumer.get_watermark_offsets(place, 10.0)
        self._consumer.poll(1.0)

    def pause(self) -> None:
        """Read nothing: fetches are most of what an idle broker does."""
        self._consumer.unassign()

    def write(self, table: int) -> int:
        """Write one row into a raw partition at random: the number in its key."""
        self._written += 1
        now = int(time.time() * 1e6)
        row = Row((int_bytes(1),), {"a": Cell(now, b"written")}, LivenessInfo(now))
        record = raw_record(int_bytes(self._written), "row", row, offset=now, writer=self._writers[table])
        partition = self._rng.randrange(PARTITIONS)
        self._producer.produce(f"{PREFIX}.raw.shop.t{table}", record.value, record.key, partition)
        self._producer.poll(0)
        return self._written

    def measure(self, seconds: float) -> list[float]:
        """Write at the load's rate for a while, and wait for all changes."""
        sent: dict[int, float] = {}
        found: list[float] = []
        end, due = time.monotonic() + seconds, time.monotonic()
        actives = list(self._load.actives)
        while time.monotonic() < end or sent:
            if time.monotonic() > end + CHANGE_SECONDS:
                raise click.ClickException(f"{len(sent)} writes have not come out")
            if due <= time.monotonic() < end:
                sent[self.write(self._rng.choice(actives))] = time.monotonic()
                due += 1 / self._load.rate
            came = self._came(max(0.0, min(0.02, due - time.monotonic())))
            found += [time.monotonic() - sent.pop(number) for number in came if number in sent]
        return found

    def first_changes(self, started: float) -> float:
        """Write into each active table: seconds from `started` until the last of them has come out."""
        awaited = {self.write(table) for table in self._load.actives}
        while awaited:
            if time.monotonic() > started + CHANGE_SECONDS:
                raise click.ClickException(f"{len(awaited)} of the first writes have not come out")
            awaited -= self._came(0.1)
        return time.monotonic() - started

    def _came(self, seconds: float) -> set[int]:
        """The numbers in the keys of changes."""
        messages = self._consumer.consume(100, seconds)
        return {_key_of(message.key()) for message in messages if message.error() is None}

    def close(self) -> None:
        self._consumer.close()


def _key_of(key: bytes | None) -> int:
    """The first field of an Avro record after the registry's five bytes, an int; 0 without a key."""
    value = shift = 0
    for byte in (key or b"")[5:]:
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            break
    return (value >> 1) ^ -(value & 1)


class Tree:
    """A program and its children."""

    def __init__(self, pid: int) -> None:
        root = psutil.Process(pid)
        self.processes = [root, *root.children(recursive=True)]

    def cpu(self) -> float:
        return sum(sum(process.cpu_times()[:2]) for process in self.processes)

    def figures(self, of: str) -> Figures:
        """Memory, open files and threads, largest of one process or all together."""
        return {
            f"{of} memory MB": sum(process.memory_full_info().pss for process in self.processes) / 1e6,
            f"{of} files": float(sum(process.num_fds() for process in self.processes)),
            f"{of} threads": float(sum(process.num_threads() for process in self.processes)),
        }


@click.command()
@click.option(
    "--tables", "counts", default="25,250,1000", show_default=True, help="How many; four raw partitions each."
)
@click.option("--active", default=20, show_default=True, help="Tables that get writes; ten if there are only ten.")
@click.option("--rate", default=20.0, show_default=True, help="Writes a second into the active tables together.")
@click.option("--seconds", default=60.0, show_default=True, help="For which the idle job is measured, and the latency.")
@click.option("--set", "given", multiple=True, help="materializer.NAME=VALUE")
@click.option("--before", type=click.Path(path_type=Path), help="Folder of an older version, which is measured too.")
def main(  # noqa: PLR0913, PLR0917 - options
    counts: str, active: int, rate: float, seconds: float, given: Sequence[str], before: Path | None
) -> None:
    """Measure the materializer with many tables."""
    settings = dict(argument.split("=", 1) for argument in given)
    versions = {"now": project_root()} | ({"before": before.resolve()} if before else {})
    rows: dict[str, Figures] = {}
    for count in map(int, counts.split(",")):
        for label, version in versions.items():
            click.echo(f"{label}: {version}, {count} tables")
            load = Load(count, min(active, count), rate)
            rows[f"{label}, {count * PARTITIONS:,}"] = found = _measure(version, load, settings, seconds)
            click.echo(str({name: round(value, 3) for name, value in found.items()}))
    facts = {"active_tables": active, "writes_per_second": rate, "seconds": seconds, "hosts": HOSTS}
    report("tables", "The materializer with so many raw partitions", rows, facts)


def _measure(version: Path, load: Load, settings: dict[str, str], seconds: float) -> Figures:
    """Measures the code in a folder."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="cdc-bench-tables-")))
        has_watermarks = any(version.glob("cdc_*/**/watermarks.py"))
        registry = Registry(folder / "registry.db").start()
        stack.callback(registry.stop)
        broker = _start_broker(stack, folder, load, has_watermarks=has_watermarks)
        own = {"registry.url": registry.url, **settings}
        job = _job(stack, folder, version, broker, own)
        probe = Probe(broker.bootstrap_servers, load)
        stack.callback(probe.close)
        started = time.monotonic()
        job.start()
        _wait_for_topics(broker.bootstrap_servers, load, job)
        probe.assign()
        figures = {"first start s": probe.first_changes(started)}
        probe.pause()
        time.sleep(SETTLE_SECONDS)
        figures |= _idle(job, broker, seconds)
        probe.assign()
        found = sorted(probe.measure(seconds))
        figures |= {
            "change ms, median": 1000 * statistics.median(found),
            "change ms, p99": 1000 * found[min(len(found) - 1, int(0.99 * len(found)))],
            "change ms, slowest": 1000 * found[-1],
        }
        figures |= Tree(job.pid).figures("job")
        job.stop()
        started = time.monotonic()
        job.start()
        return figures | {"restart s": probe.first_changes(started)}


def _idle(job: Program, broker: KafkaBroker, seconds: float) -> Figures:
    assert isinstance(broker.process, ChildProcess)
    of_job, of_broker = Tree(job.pid), Tree(broker.process.pid)
    before, of_broker_before, reads = of_job.cpu(), of_broker.cpu(), _reads(of_broker)
    started = time.monotonic()
    psutil.cpu_percent()
    time.sleep(seconds)
    job.check()
    took = time.monotonic() - started
    return {
        "idle cores": (of_job.cpu() - before) / took,
        "broker's idle cores": (of_broker.cpu() - of_broker_before) / took,
        "broker's reads a second": (_reads(of_broker) - reads) / took,
        "busy share of the machine": psutil.cpu_percent() / 100,
        **Tree(job.pid).figures("idle job"),
    }


def _reads(tree: Tree) -> int:
    """The read calls of a program, of its connections and files."""
    return sum(process.io_counters().read_count for process in tree.processes)


def _start_broker(stack: ExitStack, folder: Path, load: Load, *, has_watermarks: bool) -> KafkaBroker:
    broker = kafka_broker(folder=folder / "kafka")
    broker.is_optimized = True
    stack.callback(broker.close)
    broker.start()
    _make_topics(broker.bootstrap_servers, load, has_watermarks=has_watermarks)
    publishers = Publishers(broker.bootstrap_servers, load, with_watermarks=has_watermarks)
    publishers.start()
    stack.callback(publishers.end)
    return broker


def _job(stack: ExitStack, folder: Path, version: Path, broker: KafkaBroker, settings: dict[str, str]) -> Program:
    own: dict[str, Setting] = {"kafka.bootstrap_servers": broker.bootstrap_servers, "kafka.change_partitions": 1}
    job = materializer(folder, {**own, **settings})
    job.environment["PYTHONPATH"] = str(version)
    stack.callback(job.stop)
    return job


def _make_topics(bootstrap: str, load: Load, *, has_watermarks: bool) -> None:
    stamped = {"message.timestamp.type": "LogAppendTime"}
    new = [NewTopic(f"{PREFIX}.raw.shop.t{table}", PARTITIONS, 1, config=stamped) for table in range(load.tables)]
    new.append(NewTopic(f"{PREFIX}.tables", 1, 1))
    if has_watermarks:
        new.append(NewTopic(f"{PREFIX}.watermarks", 1, 1, config={**stamped, "cleanup.policy": "compact"}))
    admin = AdminClient({"bootstrap.servers": bootstrap})
    for first in range(0, len(new), TOPICS_AT_ONCE):
        some = admin.create_topics(new[first : first + TOPICS_AT_ONCE], operation_timeout=120, request_timeout=120)
        for future in some.values():
            future.result()
    producer = Producer({"bootstrap.servers": bootstrap})
    for table in range(load.tables):
        found = load.writer(table).table
        producer.produce(f"{PREFIX}.tables", to_json(found), message_key(found))
    producer.flush()


def _wait_for_topics(bootstrap: str, load: Load, job: Program) -> None:
    """Wait until the job has created the change topics."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    deadline = time.monotonic() + CHANGE_SECONDS
    names = {f"{PREFIX}.shop.t{table}" for table in range(load.tables)}
    while missing := names - admin.list_topics(timeout=30).topics.keys():
        job.check()
        if time.monotonic() > deadline:
            raise click.ClickException(f"{len(missing)} change topics were never created")
        time.sleep(1)


if __name__ == "__main__":
    main()
