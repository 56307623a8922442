"""`make bench NAME=publisher-memory`: how much memory a publisher takes while Kafka is away, and whether it keeps it.

A real node writes `--rows` rows; its mutations, over and over, make full commit log segments in a folder. A real
publisher reads it as its cdc_raw, and sends `--mutations` of them, as fast as it can, to a real Kafka. Half of
them are acknowledged; then, in the midst of the other half, the broker is stopped for `--seconds`. The exit status is 1
if it takes more than is wanted.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.request import urlopen
from uuid import UUID

import psutil

from dev.local_stack.clients import cql
from dev.local_stack.process.network import LOCALHOST, free_ports
from dev.local_stack.servers import programs
from dev.local_stack.servers.cassandra import CassandraCluster
from dev.local_stack.servers.cassandra_options import CassandraOptions
from dev.local_stack.servers.kafka import KafkaBroker
from publisher.log.position import Positions
from publisher.log.tail import SegmentTails
from tests.support.publisher.segment_files import SegmentFileBuilder

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from dev.local_stack.servers.cassandra import CassandraNode
    from dev.local_stack.servers.programs import Program

FIRST_SEGMENT = 4_000_000_000_000  # later than the node's own
SEGMENT_MUTATIONS = 125_000  # some 20 MiB
SYNC_MS = 100
MOST_BYTES, MOST_MORE = 128 << 20, 10_000_000
MB = 1_000_000


class Sample(NamedTuple):
    """The state of the publisher at one time."""

    # Its resident memory, in bytes.
    memory: int
    # The number of messages that it has sent.
    messages: int
    # The number of messages that Kafka has not acknowledged yet.
    in_flight: int


class Watched:
    """The publisher, and the most memory that it was seen to take."""

    def __init__(self, program: Program) -> None:
        self._url = f"http://{LOCALHOST}:{program.settings['publisher.operations_port']}/status"
        self._program = program
        self._process = psutil.Process(program.pid)
        self.most = 0

    def take_sample(self) -> Sample:
        self._program.check()
        with urlopen(self._url, timeout=30) as answer:  # noqa: S310 - our own http address
            status: dict[str, Any] = json.load(answer)
        memory = self._process.memory_info().rss
        self.most = max(self.most, memory)
        return Sample(memory, status["messages"], status["in_flight"])

    def wait(self, is_so: Callable[[Sample], bool]) -> Sample:
        while not is_so(sample := self.take_sample()):
            time.sleep(0.1)
        return sample

    def wait_acknowledged(self, messages: int) -> Sample:
        return self.wait(lambda sample: sample.messages >= messages and not sample.in_flight)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mutations", type=int, default=2_000_000)
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--seconds", type=float, default=60.0)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="publisher-memory-") as name:
        folder = Path(name)
        cdc_raw = folder / "cdc_raw"
        cdc_raw.mkdir()
        options = CassandraOptions(commitlog_sync_period_ms=SYNC_MS)
        with CassandraCluster(options=options) as cluster, KafkaBroker(is_optimized=True) as kafka:
            mutations = written_by(cluster.nodes[0], chosen.rows, folder)
            registry = programs.schematizer(folder, free_ports(1)[0])
            registry.start()
            program = programs.publisher(folder, cluster.nodes[0].address, cdc_raw, settings(cluster, kafka, registry))
            try:
                program.start()
                return report(measure(Watched(program), kafka, Feeder(cdc_raw, mutations), chosen))
            finally:
                program.stop()
                registry.stop()


def settings(cluster: CassandraCluster, kafka: KafkaBroker, registry: Program) -> dict[str, programs.Setting]:
    return {
        "cassandra.port": cluster.port,
        "kafka.bootstrap_servers": kafka.bootstrap_servers,
        "registry.url": f"http://{LOCALHOST}:{registry.settings['schematizer.port']}",
    }


def written_by(node: CassandraNode, rows: int, folder: Path) -> list[bytes]:
    """The mutations of so many rows, a partition each, as the node's log has them."""
    with cql.connect([node.address], node.port) as client:
        client.execute("CREATE KEYSPACE bench WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
        client.execute("CREATE TABLE bench.t (p int PRIMARY KEY, a int, b text) WITH cdc = true")
        for first in range(0, rows, 100):
            statements = (
                f"INSERT INTO bench.t (p, a, b) VALUES ({p}, {p}, 'row {p}');"  # noqa: S608 - numbers
                for p in range(first, first + 100)
            )
            client.execute(f"BEGIN UNLOGGED BATCH {' '.join(statements)} APPLY BATCH")
    time.sleep(1.0)  # the log syncs ten times a second
    tails = SegmentTails(node.cdc_raw, Positions.load(folder / "position.json", UUID(int=1)))
    found = [entry.mutation for tail in tails.poll() for entry in tail.entries() if b"row " in entry.mutation]
    assert len(found) == rows, f"{len(found)} of {rows} mutations are in the log"
    return found


class Feeder:
    """Makes the segments, each when it is wanted."""

    def __init__(self, cdc_raw: Path, mutations: list[bytes]) -> None:
        self._cdc_raw = cdc_raw
        self._mutations = mutations
        self._count = 0

    def feed(self, count: int) -> Iterator[int]:
        """Write `count` more mutations, a segment at a time."""
        while count > 0:
            size = min(count, SEGMENT_MUTATIONS)
            segment = SegmentFileBuilder(self._cdc_raw, FIRST_SEGMENT + self._count, size=0)
            for number in range(size):
                segment.append(self._mutations[number % len(self._mutations)])
            segment.sync(complete=True)
            segment.let_go()
            self._count += 1
            count -= size
            yield size


class Measured(NamedTuple):
    """The memory of the publisher, in bytes."""

    # When it was ready.
    ready: int
    # After the first twentieth of the mutations.
    warm: int
    # Before Kafka was stopped.
    before: int
    # The most while Kafka was stopped.
    away: int
    # After all mutations.
    after: int
    # The most ever.
    most: int


def measure(watched: Watched, kafka: KafkaBroker, feeder: Feeder, chosen: argparse.Namespace) -> Measured:
    half = chosen.mutations // 2
    ready = watched.take_sample().memory
    for _ in feeder.feed(half):
        pass
    warm = watched.wait(lambda sample: sample.messages >= chosen.mutations // 20).memory
    before = watched.wait_acknowledged(half).memory
    print_line(f"{half:,} mutations acknowledged")
    for _ in feeder.feed(chosen.mutations - half):
        pass
    watched.wait(lambda sample: sample.messages >= half + half // 10)
    kafka.stop()
    end, away = time.monotonic() + chosen.seconds, 0
    while time.monotonic() < end:
        away = max(away, watched.take_sample().memory)
        time.sleep(0.1)
    print_line(f"Kafka was away for {chosen.seconds:.0f} s with {watched.take_sample().in_flight:,} messages in flight")
    kafka.start()
    after = watched.wait_acknowledged(chosen.mutations).memory
    return Measured(ready, warm, before, away, after, watched.most)


def report(measured: Measured) -> int:
    for name, value in measured._asdict().items():
        print_line(f"{name:<7}{value / MB:8.1f} MB")
    more = measured.after - measured.before
    print_line(
        f"{more / MB:+.1f} MB after Kafka was away; allowed: {MOST_MORE / MB:.0f} more, {MOST_BYTES / MB:.0f} in all"
    )
    return int(more > MOST_MORE or measured.most > MOST_BYTES)


def print_line(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
