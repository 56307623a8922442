"""`make bench NAME=archive`: the archive beside Spark's own `from_avro` into Parquet, and into Iceberg.

All read a topic with the same messages, end their files at the same intervals, and make the same rows, which is
checked. What is measured is as in the benchmark of the materializer.
"""

from __future__ import annotations

import json
import random
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click
import duckdb
import fastavro
from confluent_kafka.admin import NewTopic

from cdc_common.clients.group_offsets import CommittedOffsets
from cdc_common.clients.registry.confluent import RegistryClient
from cdc_common.messages import wire
from cdc_common.settings import KafkaSettings, RegistrySettings
from dev.bench.avro import encoded
from dev.bench.jobs import MASTER, Submitted, Work, watch
from dev.bench.processes import MB, wait_until_idle
from dev.bench.raw_load import text
from dev.bench.results import Figures, medians, note_round, report
from dev.bench.topics import create_topics
from dev.local_stack.java.peer_jars import ICEBERG_SPARK, SPARK_AVRO, SPARK_KAFKA
from dev.local_stack.process.network import LOCALHOST, free_ports
from dev.local_stack.servers import programs
from dev.local_stack.servers.kafka import KafkaBroker
from stream_runtime.records import SourcePartition
from tests.support.cdc_native.envelopes import ENVELOPE, envelope

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dev.local_stack.servers.programs import Program, Setting

PARTITIONS = 16  # two shares, one for each worker
GROUP = "bench"
PEER = Path(__file__).with_name("archive_job.py")
DISTINCT = 100_000  # messages, which are sent again and again; more than fit into a row group's dictionaries
HOURS, HOUR_US = 2, 3_600_000_000
SECONDS, IDLE_SECONDS = 60.0, 30.0
SINKS = {"Spark → Parquet": "parquet", "Spark → Iceberg": "iceberg"}
FLAT = {
    "type": "record",
    "name": "Order",
    "namespace": "shop",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "customer", "type": "long"},
        {"name": "email", "type": ["null", "string"], "default": None},
        {"name": "city", "type": ["null", "string"], "default": None},
        {"name": "country", "type": "string"},
        {"name": "status", "type": ["null", "int"], "default": None},
        {"name": "quantity", "type": "int"},
        {"name": "total", "type": "double"},
        {"name": "discount", "type": ["null", "double"], "default": None},
        {"name": "is_gift", "type": "boolean"},
        {"name": "note", "type": ["null", "string"], "default": None},
        {"name": "session", "type": "string"},
        {"name": "created_at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
    ],
}


class Kind(NamedTuple):
    """A kind of messages."""

    # The topic.
    topic: str
    # Their schema.
    schema: Any
    # Makes the value of a number and a time (µs).
    value: Callable[[random.Random, int, int], dict[str, Any]]
    # The SQL of a number that is another one for each message.
    number: str


class Run(NamedTuple):
    """The messages, the servers that all jobs use, and where files go."""

    # The broker.
    kafka: KafkaBroker
    # The URL of the registry.
    registry: str
    # The folder for files.
    folder: Path
    # What the messages are.
    kind: Kind
    # Keys and values of the topic.
    messages: Sequence[tuple[bytes, bytes]]
    # Seconds after which files end.
    seconds: float


def flat(rng: random.Random, number: int, time_us: int) -> dict[str, Any]:
    """A record of 13 fields."""
    return {
        "id": number,
        "customer": rng.randrange(1_000_000),
        "email": f"{text(rng, 12).decode()}@example.org",
        "city": rng.choice(("London", "Paris", "Turin", None)),
        "country": rng.choice(("GB", "FR", "IT")),
        "status": rng.randrange(5),
        "quantity": rng.randrange(1, 20),
        "total": rng.uniform(0, 1000),
        "discount": rng.choice((None, 0.1, 0.2)),
        "is_gift": rng.random() < 0.1,
        "note": text(rng, 20).decode() if rng.random() < 0.3 else None,
        "session": text(rng, 24).decode(),
        "created_at": time_us // 1000,
    }


def change(rng: random.Random, number: int, time_us: int) -> dict[str, Any]:
    """An update with both images."""
    value = envelope(with_before=True)
    before = {**value["before"], "id": number, "email": f"{text(rng, 12).decode()}@example.org"}
    after = {**before, "status": rng.randrange(5), "total": rng.uniform(0, 1000)}
    source = {**value["source"], "pos": number * 200, "row_sequence": number, "ts_us": time_us}
    return {**value, "before": before, "after": after, "source": source}


KINDS = {
    "flat": Kind("shop.orders", FLAT, flat, "id"),
    "both images": Kind("cdc.shop.orders", ENVELOPE, change, "_row_sequence"),
}


@click.command()
@click.option("--messages", default=1_000_000, show_default=True, help="Messages of each run.")
@click.option("--rounds", default=1, show_default=True, help="The figures are medians.")
@click.option("--seconds", default=10.0, show_default=True, help="Time after which files end (s).")
@click.option("--kind", "kinds", multiple=True, default=tuple(KINDS), show_default=True, help="Kinds of messages.")
@click.option("--peers/--no-peers", default=True, show_default=True, help="Whether Spark's own jobs run too.")
@click.option("--name", default="archive", show_default=True, help="Name of the results' file.")
def main(messages: int, rounds: int, seconds: float, kinds: tuple[str, ...], peers: bool, name: str) -> None:  # noqa: PLR0913, PLR0917, FBT001 - options
    """Measure CPU, rate, memory and files of the archive's job."""
    figures: dict[str, list[Figures]] = {}
    for number in range(rounds):
        for kind in kinds:
            with _run(KINDS[kind], messages, seconds) as run:
                note_round(figures, f"archive, {kind}", number, measure_archive(run))
                for sink in SINKS if peers else ():
                    note_round(figures, f"{sink}, {kind}", number, measure_peer(run, SINKS[sink]))
    rows = {row: medians(figure) for row, figure in figures.items()}
    facts = {
        "messages": messages,
        "rounds": rounds,
        "seconds": seconds,
        "partitions": PARTITIONS,
        "spark_master": MASTER,
        "all_rounds": figures,
    }
    report(name, f"{messages:,} messages, medians of {rounds}", rows, facts)


@contextmanager
def _run(kind: Kind, count: int, seconds: float) -> Iterator[Run]:
    """Servers, and a topic whose schema is registered."""
    with tempfile.TemporaryDirectory(prefix="bench-archive-") as folder, KafkaBroker(is_optimized=True) as kafka:
        registry = programs.schematizer(Path(folder, "registry"), free_ports(1)[0])
        registry.start()
        try:
            url = f"http://{LOCALHOST}:{registry.settings['schematizer.port']}"
            with RegistryClient(RegistrySettings(url=url)) as client:
                schema_id = client.register(f"{kind.topic}-value", kind.schema)
            yield Run(kafka, url, Path(folder), kind, make_messages(kind, count, schema_id), seconds)
        finally:
            registry.stop()


def make_messages(kind: Kind, count: int, schema_id: int) -> list[tuple[bytes, bytes]]:
    """Messages of two hours."""
    rng = random.Random(1)  # noqa: S311 - a load
    schema, header = fastavro.parse_schema(kind.schema), wire.header(schema_id)
    first = time.time_ns() // 1000 - HOURS * HOUR_US
    values = (kind.value(rng, number, first + rng.randrange(HOURS * HOUR_US)) for number in range(min(count, DISTINCT)))
    distinct = [(b"%d" % number, header + encoded(schema, value)) for number, value in enumerate(values)]
    return [distinct[number % len(distinct)] for number in range(count)]


def measure_archive(run: Run) -> Figures:
    topic, folder = run.kind.topic, run.folder / "archive"
    create_topics(run.kafka.bootstrap_servers, NewTopic(topic, PARTITIONS, 1))
    settings: dict[str, Setting] = {
        "kafka.bootstrap_servers": run.kafka.bootstrap_servers,
        "registry.url": run.registry,
        "archive.group_id": GROUP,
        "archive.topics": topic.replace(".", r"\."),
        "archive.spark_master": MASTER,
        "archive.cut_seconds": run.seconds,
        "archive.catalog_type": "sql",
        "archive.catalog_uri": f"sqlite:///{run.folder}/catalog.db",
    }
    job = programs.archive(folder, settings)
    return _watch(run, job, topic, _committed(run, topic), folder / "lake")


def measure_peer(run: Run, sink: str) -> Figures:
    topic, folder = f"{sink}.{run.kind.topic}", run.folder / sink
    folder.mkdir()
    create_topics(run.kafka.bootstrap_servers, NewTopic(topic, PARTITIONS, 1))
    schema = folder / "schema.avsc"
    schema.write_text(json.dumps(run.kind.schema), encoding="utf-8")
    arguments = (run.kafka.bootstrap_servers, topic, sink, str(folder), str(schema), f"{run.seconds:.0f}")
    job = Submitted(PEER, arguments, [SPARK_KAFKA, SPARK_AVRO, ICEBERG_SPARK], folder, MASTER)
    return _watch(run, job, topic, lambda: checkpointed(folder / "checkpoint", topic), folder / "lake")


def _watch(run: Run, job: Program, topic: str, done: Callable[[], int], lake: Path) -> Figures:
    """The figures of a job, and of its files, whose rows are checked."""
    wait_until_idle(limit=IDLE_SECONDS)
    try:
        job.start()
        found = watch(job, Work(run.kafka, topic, run.messages, done))
    finally:
        job.kill()
    return {**found, **files(run, topic, lake)}


def checkpointed(folder: Path, topic: str) -> int:
    """The messages before the offsets of the last micro-batch that Spark has committed."""
    commits = [int(file.name) for file in (folder / "commits").glob("[0-9]*")]
    if not commits:
        return 0
    last = (folder / "offsets" / str(max(commits))).read_text(encoding="utf-8").splitlines()[-1]
    return sum(json.loads(last)[topic].values())


def files(run: Run, topic: str, lake: Path) -> Figures:
    """The sizes of the Parquet files. ClickException if they do not have each message once."""
    found = [file for file in lake.rglob("*.parquet") if file.stat().st_size]
    size = sum(file.stat().st_size for file in found)
    query = (
        f"SELECT count(*), count(DISTINCT (_kafka_partition, _kafka_offset)), sum({run.kind.number}) "  # noqa: S608 - ours
        "FROM read_parquet($1, hive_partitioning = false) WHERE _kafka_topic = $2"
    )
    answer = duckdb.connect().execute(query, [[str(file) for file in found], topic]).fetchone()
    count = len(run.messages)
    distinct = min(count, DISTINCT)
    whole, rest = divmod(count, distinct)
    wanted = (count, count, whole * distinct * (distinct - 1) // 2 + rest * (rest - 1) // 2)
    if answer != wanted:
        raise click.ClickException(f"The files of {topic} have rows, offsets and a sum of {answer}, not {wanted}.")
    return {"bytes_per_row": size / count, "files": len(found), "mean_file_mb": size / len(found) / MB}


def _committed(run: Run, topic: str) -> Callable[[], int]:
    """A function that counts the messages before the archive's committed offsets."""
    offsets = CommittedOffsets(KafkaSettings(bootstrap_servers=run.kafka.bootstrap_servers), GROUP)
    partitions = [SourcePartition(topic, partition) for partition in range(PARTITIONS)]
    return lambda: sum(offset or 0 for offset in offsets.committed(partitions, SECONDS).values())


if __name__ == "__main__":
    main()
