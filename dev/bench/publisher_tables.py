"""`make bench NAME=publisher-tables`: what many tables cost a publisher beside a real node, and how new ones are taken.

A real Cassandra has so many tables with cdc = true. A publisher is started: it creates their raw topics. Then it is
measured while nothing is written, started again, and measured while two tables a second are created and written to
beside an old one. The exit status is 1 if it takes more than is wanted.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from pathlib import Path
from statistics import quantiles
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.request import urlopen

import psutil
from confluent_kafka import Consumer, TopicPartition

from cdc_common.clients.kafka import WITHOUT_GROUP
from cdc_common.messages import raw
from cdc_common.messages.topics import raw_topic
from dev.local_stack.clients import cql
from dev.local_stack.process.network import LOCALHOST, free_ports
from dev.local_stack.servers import programs
from dev.local_stack.servers.cassandra import CassandraCluster
from dev.local_stack.servers.cassandra_options import CassandraOptions
from dev.local_stack.servers.kafka import KafkaBroker

if TYPE_CHECKING:
    from dev.local_stack.clients.cql import CqlClient
    from dev.local_stack.servers.programs import Program

KEYSPACE, PREFIX, PARTITIONS = "bench", "cdc", 4
NEW_A_SECOND = 2.0
SYNC_MS, HEAP_MIB = 100, 1500
MOST_BYTES, MOST_IDLE_CORES = 128 << 20, 0.05
READY_SECONDS = 1800.0
MB = 1e6


class Used(NamedTuple):
    """The use of a process."""

    # The CPU time so far, in s.
    cpu: float
    # The resident memory now, in bytes.
    memory: int
    # The number of files that are open now.
    files: int


class Bench:
    """One node, one broker and one publisher."""

    def __init__(self, client: CqlClient, program: Program, kafka: KafkaBroker) -> None:
        self._client = client
        self._program = program
        self._kafka = kafka
        self._tables = 0

    def create_tables(self, count: int) -> None:
        for _ in range(count):
            table = f"{KEYSPACE}.t{self._tables}"
            self._client.execute(f"CREATE TABLE {table} (id bigint PRIMARY KEY, v text) WITH cdc = true")
            self._tables += 1

    def write(self, table: str) -> int:
        """Write a row: its key is the time in µs."""
        key = time.time_ns() // 1000
        self._client.execute(f"INSERT INTO {KEYSPACE}.{table} (id, v) VALUES ({key}, 'x')")  # noqa: S608 - ours
        return key

    def start(self) -> float:
        """Start the publisher: seconds until it reads the log, with the topics of all tables open."""
        began = time.monotonic()
        self._program.start()
        return time.monotonic() - began

    def stop(self) -> None:
        self._program.stop()

    def status(self) -> dict[str, Any]:
        url = f"http://{LOCALHOST}:{self._program.settings['publisher.operations_port']}/status"
        with urlopen(url, timeout=30) as answer:
            found: dict[str, Any] = json.load(answer)
        return found

    def used(self) -> Used:
        process = psutil.Process(self._program.pid)
        return Used(sum(process.cpu_times()[:2]), process.memory_info().rss, process.num_fds())

    def idle(self, seconds: float) -> tuple[float, Used]:
        """The cores that it uses while nothing is written."""
        before, began = self.used(), time.monotonic()
        time.sleep(seconds)
        after = self.used()
        return (after.cpu - before.cpu) / (time.monotonic() - began), after

    def create_under_load(self, seconds: float) -> dict[str, set[int]]:
        """Create tables at a rate, write a row into each, and ten rows a second into the first table: their keys."""
        written: dict[str, set[int]] = {}
        began, next_table = time.monotonic(), time.monotonic()
        while time.monotonic() - began < seconds:
            if time.monotonic() >= next_table:
                next_table += 1 / NEW_A_SECOND
                name = f"t{self._tables}"
                self.create_tables(1)
                written.setdefault(name, set()).add(self.write(name))
            written.setdefault("t0", set()).add(self.write("t0"))
            time.sleep(0.1)
        return written

    def latencies(self, table: str, keys: set[int]) -> list[float]:
        """Seconds from the write of each of these rows until the broker had it; waits for all of them."""
        found: dict[int, float] = {}
        deadline = time.monotonic() + READY_SECONDS
        consumer = Consumer({"bootstrap.servers": self._kafka.bootstrap_servers, **WITHOUT_GROUP})
        try:
            topic = raw_topic(PREFIX, KEYSPACE, table)
            while topic not in consumer.list_topics(timeout=30).topics:
                assert time.monotonic() < deadline
                time.sleep(0.5)
            consumer.assign([TopicPartition(topic, number, 0) for number in range(PARTITIONS)])
            while missing := keys - found.keys():
                assert time.monotonic() < deadline, len(missing)
                for message in consumer.consume(1000, 0.5):
                    if message.error() is None and raw.decode(message.value() or b"").kind == "row":
                        key = int.from_bytes(message.key() or b"", "big")
                        found.setdefault(key, message.timestamp()[1] / 1000 - key / 1e6)
        finally:
            consumer.close()
        return [found[key] for key in keys]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tables", type=int, default=1000)
    parser.add_argument("--seconds", type=float, default=60.0)
    chosen = parser.parse_args()
    options = CassandraOptions(commitlog_sync_period_ms=SYNC_MS, heap_mib=HEAP_MIB)
    with (
        tempfile.TemporaryDirectory(prefix="publisher-tables-") as name,
        CassandraCluster(options=options) as cluster,
        KafkaBroker(is_optimized=True) as kafka,
        cql.connect([cluster.nodes[0].address], cluster.port) as client,
    ):
        folder, node = Path(name), cluster.nodes[0]
        registry = programs.schematizer(folder, free_ports(1)[0])
        registry.start()
        settings: dict[str, programs.Setting] = {
            "cassandra.port": cluster.port,
            "kafka.bootstrap_servers": kafka.bootstrap_servers,
            "kafka.raw_partitions": PARTITIONS,
            "kafka.topic_prefix": PREFIX,
            "registry.url": f"http://{LOCALHOST}:{registry.settings['schematizer.port']}",
        }
        program = programs.publisher(folder, node.address, node.cdc_raw, settings)
        program.start_seconds = READY_SECONDS
        try:
            client.execute(
                f"CREATE KEYSPACE {KEYSPACE} WITH replication = {{'class': 'SimpleStrategy', 'replication_factor': 1}}"
            )
            return measure(Bench(client, program, kafka), chosen.tables, chosen.seconds)
        finally:
            program.stop()
            registry.stop()


def measure(bench: Bench, tables: int, seconds: float) -> int:
    began = time.monotonic()
    bench.create_tables(tables)
    show("tables created", time.monotonic() - began, "s")
    show("first start", bench.start(), "s")
    show("CPU of the first start", bench.used().cpu, "s")
    bench.stop()
    show("restart", bench.start(), "s")
    show("CPU of the restart", bench.used().cpu, "s")
    cores, used = bench.idle(seconds)
    show("idle cores", cores, "")
    show("idle memory", used.memory / MB, "MB")
    show("open files", used.files, "")
    alone = bench.latencies("t0", {bench.write("t0") for _ in range(100)})
    show("a write until its raw message, p99 before", quantiles(alone, n=100)[98], "s")
    before, began = bench.used().cpu, time.monotonic()
    written = bench.create_under_load(seconds)
    cores_then = (bench.used().cpu - before) / (time.monotonic() - began)
    old = bench.latencies("t0", written.pop("t0"))
    new = [latency for name, keys in written.items() for latency in bench.latencies(name, keys)]
    show("new tables", len(written), "")
    show("cores with new tables", cores_then, "")
    show("an old table's p99 with new tables", quantiles(old, n=100)[98], "s")
    show("a new table's first row, median", sorted(new)[len(new) // 2], "s")
    show("a new table's first row, slowest", max(new), "s")
    memory = bench.used().memory
    show("memory at the end", memory / MB, "MB")
    assert not bench.status()["waiting_tables"], bench.status()["waiting_tables"]
    return int(memory > MOST_BYTES or cores > MOST_IDLE_CORES)


def show(name: str, value: float, unit: str) -> None:
    sys.stdout.write(f"{name:<45}{value:10.3f} {unit}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
