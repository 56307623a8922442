"""`make bench NAME=snapshot`: from SSTables to Kafka, beside the log path on the same node and the same Kafka.

A real Cassandra 5.0 has two tables with the same rows: `whole`, compacted into one SSTable, and `parts`, whose rows lie
in several SSTables over each other. Each step is a process of its own, over what the step before it does: the
Python reader, the Python merge, row images by the Python code; the chunks, row images by the native core, these into
Kafka. Beside them the publisher reads the log of the same writes, its start included.
"""

from __future__ import annotations

import json
import random
import shutil
import subprocess
import sys
import tempfile
import uuid
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click
from confluent_kafka.admin import NewTopic

from dev.bench import publisher, segments
from dev.bench.processes import wait_until_idle
from dev.bench.results import Figures, medians, report
from dev.bench.topics import create_topics
from dev.local_stack.clients import cql
from dev.local_stack.process.network import free_ports
from dev.local_stack.process.paths import project_root
from dev.local_stack.servers import programs
from dev.local_stack.servers.cassandra import CassandraCluster
from dev.local_stack.servers.cassandra_options import OPTIMIZED, CassandraOptions
from dev.local_stack.servers.kafka import KafkaBroker

if TYPE_CHECKING:
    from dev.local_stack.clients.cql import CqlClient
    from dev.local_stack.servers.cassandra import CassandraNode

TABLES = ("whole", "parts")
ROUNDS_OF_WRITES = 4  # SSTables of `parts`
PARTITION_ROWS = 10
PYTHON_STEPS = ("reader", "merge", "images")
CORE_STEPS = ("chunks", "images, core", "into Kafka, core")
_COLUMNS = (
    "(id uuid, at int, owner text static, kind int, amount int, note text, price double, code bigint, source text,"
    " labels map<text, text>, PRIMARY KEY (id, at))"
)
_INSERT = "INSERT INTO bench.{} (id, at, kind, amount, note, price, code, source, labels) VALUES (?,?,?,?,?,?,?,?,?)"


class Step(NamedTuple):
    """A measured process (dev.bench.snapshot_step)."""

    # The name of the step.
    name: str
    # The name of the table.
    table: str
    # The path of the node's data directory.
    data: str
    # The number of rows that it reads at most; 0 for all.
    most: int
    # Kafka's bootstrap servers.
    bootstrap: str
    # The topic that it sends to.
    topic: str


@click.command()
@click.option("--rows", default=400_000, show_default=True, help="Of each table.")
@click.option("--rounds", default=3, show_default=True, help="The figures are medians.")
@click.option("--python-rows", default=20_000, show_default=True, help="How many of the rows the Python steps read.")
def main(rows: int, rounds: int, python_rows: int) -> None:
    """Measure rows/s, CPU and memory of a snapshot's steps."""
    options = CassandraOptions(cdc_total_space_mib=16_384, yaml=publisher.PATIENT, jvm_options=OPTIMIZED)
    with (
        tempfile.TemporaryDirectory(prefix="bench-snapshot-") as name,
        CassandraCluster(options=options) as cluster,
        KafkaBroker(is_optimized=True) as kafka,
    ):
        folder, node = Path(name), cluster.nodes[0]
        with cql.connect([node.address], node.port) as client:
            written = _write(client, node, rows)
            table_id = _table_id(client)
        log = segments.take_segments(node, folder / "segments")
        load = publisher.Load(log, segments.count_mutations(log, table_id))
        data = _copied(node, folder / "data")
        registry = programs.schematizer(folder / "registry", free_ports(1)[0])
        registry.start()
        try:
            servers = publisher.Servers(node, kafka, registry, folder)
            _measure(servers, load, data, rounds, {"rows": written, "python_rows": python_rows})
        finally:
            registry.stop()


def _measure(servers: publisher.Servers, load: publisher.Load, data: Path, rounds: int, facts: dict[str, int]) -> None:
    figures: dict[str, list[Figures]] = {}
    idle = []
    for number in range(rounds):
        idle.append(1 - wait_until_idle())
        figures.setdefault("log path", []).append(publisher.measure_ours(servers, load, number))
        for table in TABLES:
            for name in (*PYTHON_STEPS, *CORE_STEPS):
                topic = f"{table}-{number}"
                if "Kafka" in name:
                    create_topics(servers.kafka.bootstrap_servers, NewTopic(topic, publisher.PARTITIONS, 1))
                most = facts["python_rows"] if name in PYTHON_STEPS else 0
                step = Step(name, table, str(data), most, servers.kafka.bootstrap_servers, topic)
                figures.setdefault(f"{table}: {name}", []).append(_run(step))
        click.echo(f"round {number + 1}: " + "; ".join(f"{key} {figure[-1]}" for key, figure in figures.items()))
    report(
        "snapshot",
        f"{facts['rows']:,} rows, medians of {rounds}",
        {name: medians(figure) for name, figure in figures.items()},
        {**facts, "mutations": load.mutations, "rounds": rounds, "idle_share_before": idle, "all_rounds": figures},
    )


def _run(step: Step) -> Figures:
    command = [sys.executable, "-m", "dev.bench.snapshot_step", json.dumps(step)]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, cwd=project_root())
    found: Figures = json.loads(done.stdout.splitlines()[-1])
    return found


def _write(client: CqlClient, node: CassandraNode, rows: int) -> int:
    """Both tables get the same rows; the rounds write a quarter each, and some of the rows of all rounds before."""
    client.execute("CREATE KEYSPACE bench WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
    for table in TABLES:
        client.execute(
            f"CREATE TABLE bench.{table} {_COLUMNS} WITH cdc = {str(table == 'whole').lower()}"
            " AND compaction = {'class': 'SizeTieredCompactionStrategy', 'enabled': 'false'}"
        )
    partitions = max(1, rows // PARTITION_ROWS)
    rng = random.Random(1)  # noqa: S311 - a load
    keys = [uuid.UUID(int=rng.getrandbits(128), version=4) for _ in range(partitions)]
    for number in range(ROUNDS_OF_WRITES):
        first = partitions * number // ROUNDS_OF_WRITES
        last = partitions * (number + 1) // ROUNDS_OF_WRITES
        again = rng.sample(range(first), min(first, partitions // 20))
        for table in TABLES:
            _write_round(client, table, [keys[at] for at in (*range(first, last), *again)], random.Random(number))  # noqa: S311
        node.nodetool("flush", "bench")
    node.nodetool("compact", "bench", "whole")
    return partitions * PARTITION_ROWS


def _write_round(client: CqlClient, table: str, keys: list[uuid.UUID], rng: random.Random) -> None:
    """Rows of partitions, one of ten with a TTL; then statics, and deletions of rows, cells and ranges, of some."""
    insert = client.prepare(_INSERT.format(table))
    with_ttl = client.prepare(_INSERT.format(table) + " USING TTL 864000")
    # A batch is a mutation for each of its partitions: here for each row, as the log path counts them.
    rows = [(key, at, *row_values(rng)) for at in range(PARTITION_ROWS) for key in keys]
    plain, expiring = rows[: len(rows) * 9 // 10], rows[len(rows) * 9 // 10 :]
    segments.write_rows(client, insert, iter(plain), len(plain), f"{table}: rows")
    segments.write_rows(client, with_ttl, iter(expiring), len(expiring), f"{table}: rows with a TTL")
    some = keys[: len(keys) // 10]
    for statement, parameters in (
        ("UPDATE bench.{} SET owner = ? WHERE id = ?", (("x" * 12, key) for key in some)),
        ("DELETE FROM bench.{} WHERE id = ? AND at = ?", ((key, 3) for key in some)),
        ("DELETE note FROM bench.{} WHERE id = ? AND at = ?", ((key, 5) for key in some)),
        ("DELETE FROM bench.{} WHERE id = ? AND at > ?", ((key, 7) for key in some[: len(some) // 4])),
    ):
        prepared = client.prepare(statement.format(table))
        segments.write_rows(client, prepared, parameters, len(some), f"{table}: {statement[:6].lower()}s")


def row_values(rng: random.Random) -> tuple[object, ...]:
    labels = {"source": rng.choice(("web", "shop", "phone")), "session": f"{rng.getrandbits(48):012x}"}
    number = rng.getrandbits(60)
    return number % 100, number % 10**6, f"{number:060d}", rng.random(), number, "a source", labels


def _table_id(client: CqlClient) -> bytes:
    [row] = client.execute("SELECT id FROM system_schema.tables WHERE keyspace_name = 'bench' AND table_name = 'whole'")
    found: uuid.UUID = row["id"]
    return found.bytes


def _copied(node: CassandraNode, target: Path) -> Path:
    """The SSTables of both tables, as compaction may not touch them; and their schema as CQL."""
    for table in TABLES:
        (source,) = (node.folder / "data" / "bench").glob(f"{table}-*")
        shutil.copytree(source, target / "bench" / source.name, ignore=shutil.ignore_patterns("backups", "snapshots"))
    return target


def create_statement(table: str, table_id: uuid.UUID) -> str:
    """CQL of the table as it was made."""
    return f"CREATE TABLE bench.{table} {_COLUMNS} WITH ID = {table_id};"


if __name__ == "__main__":
    main()
