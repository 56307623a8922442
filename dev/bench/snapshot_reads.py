"""`make bench NAME=snapshot-reads`: what a snapshot costs a node's clients: latency and CPU before and during it.

A real Cassandra 5.0 has a table whose Cassandra partitions of ten rows are read one by one, at a steady rate. A latency
counts from the time at which the read was due: a node that falls behind shows. The snapshots run on the publisher's
default settings, first as they are, then without lowering the rate on a busy node. Everything is on this machine: the
node shares its cores with Kafka, the publisher and the client.
"""

from __future__ import annotations

import itertools
import os
import random
import tempfile
import threading
import time
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click
import psutil

from cdc_common.settings import CassandraSettings
from dev.bench import segments
from dev.bench.processes import wait_until_idle
from dev.bench.results import Figures, report
from dev.bench.snapshot import PARTITION_ROWS, row_values
from dev.local_stack.clients import cql
from dev.local_stack.clients.cql import CqlClient
from dev.local_stack.clients.history import percentile
from dev.local_stack.process.network import free_ports
from dev.local_stack.process.processes import ChildProcess
from dev.local_stack.servers import programs
from dev.local_stack.servers.cassandra import CassandraCluster, CassandraNode
from dev.local_stack.servers.cassandra_options import OPTIMIZED, CassandraOptions
from dev.local_stack.servers.kafka import KafkaBroker
from dev.local_stack.servers.programs import Program
from dev.verify.snapshot.progress import pass_present_log
from publisher.commands.snapshot import Options, request_snapshot
from publisher.settings import PublisherSettings, Settings
from publisher.snapshot.state.records import Records

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from publisher.snapshot.state.records import Record

NAME = "bench.readings"
COLUMNS = (
    "(id uuid, at int, kind int, amount int, note text, price double, code bigint, source text, labels map<text, text>,"
    " PRIMARY KEY (id, at))"
)
INSERT = f"INSERT INTO {NAME} (id, at, kind, amount, note, price, code, source, labels) VALUES (?,?,?,?,?,?,?,?,?)"  # noqa: S608 - a name
READ = f"SELECT * FROM {NAME} WHERE id = ?"  # noqa: S608 - a name
WARM_UP_SECONDS = 20.0
MOST_SECONDS = 900.0
POLL_SECONDS = 0.1
# Not to be lowered by the load of the reader and of Kafka, which are on the node's machine.
STEADY = {
    "publisher.snapshot_busy_load_per_core": 0,
    "publisher.snapshot_busy_waiting_requests": 0,
    "publisher.snapshot_busy_waiting_compactions": 0,
}


@dataclass(frozen=True, slots=True)
class Measured:
    """The programs and the load that are measured."""

    # The client that reads.
    client: CqlClient
    # The partition keys to read.
    keys: Sequence[uuid.UUID]
    # The node, whose CPU counts.
    node: CassandraNode
    # The publisher, whose CPU counts.
    publisher: Program
    # The number of reads per second.
    rate: int


@click.command()
@click.option("--rows", default=1_500_000, show_default=True, help="Of the table.")
@click.option("--rate", default=200, show_default=True, help="Reads a second, of ten rows each.")
@click.option(
    "--seconds", default=60.0, show_default=True, help="Measured before each snapshot, and during it at most."
)
def main(rows: int, rate: int, seconds: float) -> None:
    """Measure read latency and CPU of a node before and during a snapshot."""
    options = CassandraOptions(cdc_total_space_mib=16_384, jvm_options=OPTIMIZED)
    with (
        tempfile.TemporaryDirectory(prefix="bench-snapshot-reads-") as name,
        CassandraCluster(options=options) as cluster,
        KafkaBroker(is_optimized=True) as kafka,
        cql.connect([cluster.nodes[0].address], cluster.nodes[0].port) as client,
    ):
        folder, node = Path(name), cluster.nodes[0]
        keys = _write(client, node, rows)
        registry = programs.schematizer(folder / "registry", free_ports(1)[0])
        registry.start()
        publisher = _publisher(folder, cluster, kafka, registry)
        try:
            publisher.start()
            pass_present_log(client, "bench", [publisher])
            client.execute(f"ALTER TABLE {NAME} WITH cdc = true")
            measured = Measured(client, keys, node, publisher, rate)
            _report(measured, _records(folder), seconds, {"rows": len(keys) * PARTITION_ROWS})
        finally:
            publisher.stop()
            registry.stop()


def _report(measured: Measured, records: Records, seconds: float, facts: dict[str, int]) -> None:
    _during(measured, lambda started: time.monotonic() - started < WARM_UP_SECONDS)
    found: dict[str, Figures] = {}
    others = []
    for label, settings in (("default", {}), ("steady", STEADY)):
        measured.publisher.settings |= settings
        measured.publisher.restart()
        others.append(wait_until_idle())
        found[f"before, {label}"] = _during(measured, lambda started: time.monotonic() - started < seconds)
        first = _begin(measured, records)
        found[f"during, {label}"] = _during(measured, _is_sending(records, seconds)) | _progress(records, first)
        click.echo(f"{label}: {found}")
        records.want(NAME, "cancel")
        _await(lambda: _record(records).is_final)
    title = f"{facts['rows']:,} rows, {measured.rate} reads/s"
    report("snapshot-reads", title, found, {**facts, "rate": measured.rate, "used_share_before": others})


def _write(client: CqlClient, node: CassandraNode, rows: int) -> list[uuid.UUID]:
    """Write the rows into one SSTable, so that both snapshots read the same. Return the keys."""
    client.execute("CREATE KEYSPACE bench WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
    client.execute(f"CREATE TABLE {NAME} {COLUMNS}")
    rng = random.Random(1)  # noqa: S311 - a load
    keys = [uuid.UUID(int=rng.getrandbits(128), version=4) for _ in range(rows // PARTITION_ROWS)]
    insert = client.prepare(INSERT)
    made = ((key, at, *row_values(rng)) for key in keys for at in range(PARTITION_ROWS))
    segments.write_rows(client, insert, made, len(keys) * PARTITION_ROWS, "rows")
    node.nodetool("flush", "bench")
    node.nodetool("compact", "bench")
    return keys


def _publisher(folder: Path, cluster: CassandraCluster, kafka: KafkaBroker, registry: Program) -> Program:
    node = cluster.nodes[0]
    assert node.cdc_raw is not None
    settings: dict[str, programs.Setting] = {
        "cassandra.port": node.port,
        "kafka.bootstrap_servers": kafka.bootstrap_servers,
        "registry.url": f"http://{registry.settings['schematizer.host']}:{registry.settings['schematizer.port']}",
        "publisher.nodetool": ",".join(node.nodetool_command()),
        "publisher.state_directory": folder / "state",
    }
    return programs.publisher(folder, node.address, node.cdc_raw, settings)


def _records(folder: Path) -> Records:
    return Records(folder / "state")


def _record(records: Records) -> Record:
    found = records.read(NAME)
    assert found is not None
    return found


def _begin(measured: Measured, records: Records) -> Record:
    """Ask for a snapshot, and wait until it is being sent."""
    node, state = measured.node, records.folder.parent
    settings = Settings(
        cassandra=CassandraSettings(contact_points=[node.address], port=node.port),
        publisher=PublisherSettings(state_directory=state),
    )
    options = Options(snapshot=None, tokens=(), primary_range=False, detach=True)
    request_snapshot(settings, NAME, options, click.echo)
    _await(lambda: _record(records).phase == "sending" or _record(records).is_final)
    return _record(records)


def _is_sending(records: Records, seconds: float) -> Callable[[float], bool]:
    return lambda started: time.monotonic() - started < seconds and not _record(records).is_final


def _progress(records: Records, first: Record) -> Figures:
    now = _record(records)
    if now.phase == "given_up":
        raise click.ClickException(f"The snapshot was given up: {now.problem}")
    return {
        "snapshot, rows": now.rows - first.rows,
        "snapshot, MiB": (now.bytes - first.bytes) / (1 << 20),
        "snapshot, share of its rate at the end": now.pace,
    }


def _await(is_over: Callable[[], bool]) -> None:
    deadline = time.monotonic() + MOST_SECONDS
    while not is_over():
        if time.monotonic() > deadline:
            raise click.ClickException(f"After {MOST_SECONDS:.0f} s the snapshot is not where it should be")
        time.sleep(POLL_SECONDS)


def _during(measured: Measured, goes_on: Callable[[float], bool]) -> Figures:
    """Read while it goes on; the argument is the start on the monotonic clock."""
    assert isinstance(measured.node.process, ChildProcess)
    node, publisher = psutil.Process(measured.node.process.pid), psutil.Process(measured.publisher.pid)
    psutil.cpu_percent()
    cpu_before = _cpu(node), _cpu_of_all(publisher)
    started = time.monotonic()
    latencies = _read(measured, started, lambda: goes_on(started))
    seconds = time.monotonic() - started
    machine = psutil.cpu_percent() / 100
    return {
        "seconds": seconds,
        "reads": len(latencies),
        **{f"read p{share}, ms": 1000 * percentile(latencies, share / 100) for share in (50, 99, 99.9)},
        "node, CPU-s a second": (_cpu(node) - cpu_before[0]) / seconds,
        "publisher, CPU-s a second": (_cpu_of_all(publisher) - cpu_before[1]) / seconds,
        "used share of the machine": machine,
        "load average": os.getloadavg()[0],
    }


def _cpu(process: psutil.Process) -> float:
    return float(sum(process.cpu_times()[:2]))


def _cpu_of_all(process: psutil.Process) -> float:
    """Return the CPU seconds of the process and its children, also of those that have ended."""
    return _cpu(process) + sum(process.cpu_times()[2:4]) + sum(map(_cpu, process.children(recursive=True)))


def _read(measured: Measured, started: float, goes_on: Callable[[], bool]) -> list[float]:
    """Latencies in seconds, each from the time at which its read was due."""
    prepared = measured.client.prepare(READ)
    pick = random.Random(2)  # noqa: S311 - a load
    found: list[float] = []
    failures: list[Exception] = []
    outstanding = threading.Semaphore(0)
    sent = 0

    def finish(due: float) -> Callable[[Exception | None], None]:
        def done(error: Exception | None) -> None:
            found.append(time.monotonic() - due)
            failures.extend([error] if error else [])
            outstanding.release()

        return done

    for due in _due(started, measured.rate):
        time.sleep(max(0.0, due - time.monotonic()))
        if not goes_on():
            break
        measured.client.submit(prepared, (pick.choice(measured.keys),), finish(due))
        sent += 1
    for _ in range(sent):
        outstanding.acquire()
    if failures:
        raise failures[0]
    return found


def _due(started: float, rate: int) -> Iterator[float]:
    return (started + number / rate for number in itertools.count())


if __name__ == "__main__":
    main()
