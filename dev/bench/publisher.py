"""`make bench NAME=publisher`: the publisher beside its peers, on the same segments and the same Kafka.

A real Cassandra 5.0 writes the mutations. Each reader then gets the same complete segments, as links in a folder of its
own: our publisher, Debezium's Cassandra connector, and Cassandra's own CommitLogReader, which decodes the mutations and
sends nothing. What is measured runs from the start of the process until Kafka has acknowledged the last message.
"""

from __future__ import annotations

import json
import statistics
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple
from urllib.request import urlopen

import click
from confluent_kafka.admin import NewTopic

from dev.bench import segments
from dev.bench.peers import Debezium, SegmentsReader
from dev.bench.processes import MB, ProcessTree, wait_until_idle
from dev.bench.results import Figures, medians, report
from dev.bench.topics import create_topics, message_counter
from dev.local_stack.clients import cql
from dev.local_stack.process.network import LOCALHOST, free_ports
from dev.local_stack.servers import programs
from dev.local_stack.servers.cassandra import CassandraCluster, CassandraNode
from dev.local_stack.servers.cassandra_options import OPTIMIZED, CassandraOptions
from dev.local_stack.servers.kafka import KafkaBroker
from dev.local_stack.servers.programs import Program

if TYPE_CHECKING:
    from collections.abc import Callable


PARTITIONS = 4
PATIENT = {"write_request_timeout": "60s"}  # the node is given more than it can take at once
MOST_SECONDS = 3600.0
POLL_SECONDS = 0.2


class Servers(NamedTuple):
    """The servers that readers need."""

    # The node whose schema they read.
    node: CassandraNode
    # The broker that they send to.
    kafka: KafkaBroker
    # The schema registry.
    registry: Program
    # The folder for their files.
    folder: Path


class Load(NamedTuple):
    """The segments that each reader gets."""

    # The folder with the segments.
    folder: Path
    # The number of mutations in them.
    mutations: int


@click.command()
@click.option("--mutations", default=2_000_000, show_default=True, help="Half are inserts, half are updates.")
@click.option("--rounds", default=3, show_default=True, help="The figures are medians.")
@click.option("--segment-mib", default=32, show_default=True, help="commitlog_segment_size; 32 is Cassandra's default.")
@click.option("--peer", "peers", multiple=True, help="Only these: ours, debezium, reader.")
def main(mutations: int, rounds: int, segment_mib: int, peers: tuple[str, ...]) -> None:
    """Measure CPU, rate and memory of the publisher and its peers."""
    options = CassandraOptions(
        commitlog_segment_mib=segment_mib, cdc_total_space_mib=16_384, yaml=PATIENT, jvm_options=OPTIMIZED
    )
    with tempfile.TemporaryDirectory(prefix="bench-publisher-") as name, CassandraCluster(options=options) as cluster:
        folder = Path(name)
        load = _write_load(cluster.nodes[0], folder, mutations)
        with KafkaBroker(is_optimized=True) as kafka:
            registry = programs.schematizer(folder / "registry", free_ports(1)[0])
            registry.start()
            try:
                servers = Servers(cluster.nodes[0], kafka, registry, folder)
                measure(servers, load, rounds, peers or tuple(READERS))
            finally:
                registry.stop()


def _write_load(node: CassandraNode, folder: Path, mutations: int) -> Load:
    with cql.connect([node.address], node.port) as client:
        segments.create_table(client)
        segments.write_load(client, mutations)
        table_id = segments.table_id(client)
    taken = segments.take_segments(node, folder / "segments")
    found = segments.count_mutations(taken, table_id)
    click.echo(f"{found:,} of the mutations are in complete segments")
    return Load(taken, found)


def measure(servers: Servers, load: Load, rounds: int, peers: tuple[str, ...]) -> None:
    figures: dict[str, list[Figures]] = {peer: [] for peer in peers}
    idle = []
    for number in range(rounds):
        for peer in peers:
            idle.append(1 - wait_until_idle())
            found = READERS[peer](servers, load, number)
            figures[peer].append(found)
            click.echo(
                f"round {number + 1}, {peer}: " + ", ".join(f"{key} {value:,.1f}" for key, value in found.items())
            )
    rows = {peer: medians(figure) for peer, figure in figures.items()}
    if "ours" in rows and "debezium" in rows:
        share = rows["ours"]["cpu_s_per_million"] / rows["debezium"]["cpu_s_per_million"]
        click.echo(f"ours takes {share:.3f} of Debezium's CPU")
    facts = {
        "mutations": load.mutations,
        "rounds": rounds,
        "idle_share_before": round(statistics.median(idle), 2),
        "all_rounds": figures,
    }
    report("publisher", f"{load.mutations:,} mutations, medians of {rounds}", rows, facts)


def measure_ours(servers: Servers, load: Load, number: int) -> Figures:
    folder = servers.folder / f"ours-{number}"
    cdc_raw = segments.link_segments(sorted(load.folder.glob("*.log")), folder / "cdc_raw")
    settings: dict[str, programs.Setting] = {
        "cassandra.port": servers.node.port,
        "kafka.bootstrap_servers": servers.kafka.bootstrap_servers,
        "kafka.topic_prefix": f"ours{number}",
        "kafka.raw_partitions": PARTITIONS,
        "registry.url": f"http://{LOCALHOST}:{servers.registry.settings['schematizer.port']}",
    }
    program = programs.publisher(folder, servers.node.address, cdc_raw, settings)
    program.start_process()
    try:
        return _watch(program.pid, load, _acknowledged(program), program.check)
    finally:
        program.stop()


def measure_debezium(servers: Servers, load: Load, number: int) -> Figures:
    prefix = f"dbz{number}"
    topic, bootstrap = f"{prefix}.{segments.KEYSPACE}.{segments.TABLE}", servers.kafka.bootstrap_servers
    create_topics(bootstrap, NewTopic(topic, PARTITIONS, 1))
    with Debezium(servers.node, bootstrap, servers.folder / prefix, prefix) as debezium:
        segments.link_segments(sorted(load.folder.glob("*.log")), debezium.cdc_raw)
        debezium.start()
        return _watch(debezium.pid, load, message_counter(bootstrap, topic, PARTITIONS), debezium.check)


def measure_reader(servers: Servers, load: Load, number: int) -> Figures:
    with SegmentsReader(servers.node, servers.folder / f"reader-{number}", load.folder, segments.KEYSPACE) as reader:
        reader.start()
        return _watch(reader.pid, load, reader.count, reader.check)


READERS: dict[str, Callable[[Servers, Load, int], Figures]] = {
    "ours": measure_ours,
    "debezium": measure_debezium,
    "reader": measure_reader,
}


def _watch(pid: int, load: Load, done: Callable[[], int], check: Callable[[], None]) -> Figures:
    """The figures of a process from its start until it has `done` all mutations; the rate is counted from the first
    mutation that is seen to be done, or from the start if all are done at once.
    """
    started = first = time.monotonic()
    deadline = started + MOST_SECONDS
    with ProcessTree(pid) as tree:
        while (count := done()) < load.mutations:
            if first == started and count:
                first = time.monotonic()
            check()
            if time.monotonic() > deadline:
                raise click.ClickException(f"{count:,} of {load.mutations:,} mutations after {MOST_SECONDS:.0f} s")
            time.sleep(POLL_SECONDS)
        seconds = time.monotonic() - first
        usage = tree.usage()
    return {
        "cpu_s_per_million": usage.cpu_seconds / load.mutations * 1e6,
        "rows_per_second": load.mutations / seconds,
        "peak_rss_mb": usage.peak_bytes / MB,
    }


def _acknowledged(program: Program) -> Callable[[], int]:
    """A function that asks our publisher how many messages Kafka has acknowledged; 0 until it answers."""
    url = f"http://{LOCALHOST}:{program.settings['publisher.operations_port']}/status"

    def count() -> int:
        try:
            with urlopen(url, timeout=30) as answer:
                status: dict[str, int] = json.load(answer)
        except OSError:
            return 0
        return status["messages"] - status["in_flight"]

    return count


if __name__ == "__main__":
    main()
