"""`make bench NAME=transformer-job`: the whole transformer job beside Spark's own `from_avro` and `to_avro`.

Both read the same topic and make the same messages, which is checked. What is measured is as in the benchmark of the
materializer. After that, jobs with ten and with forty transformers of one file each copy a topic to as many.
"""

from __future__ import annotations

import io
import json
import random
import tempfile
from collections.abc import Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click
import fastavro
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import NewTopic

from cdc_common.clients.group_offsets import CommittedOffsets
from cdc_common.clients.registry.confluent import RegistryClient
from cdc_common.messages import wire
from cdc_common.settings import KafkaSettings, RegistrySettings
from dev.bench.avro import encoded
from dev.bench.jobs import MASTER, Submitted, Work, kind_of, wait, watch
from dev.bench.processes import MB, ProcessTree, wait_until_idle
from dev.bench.raw_load import send, text
from dev.bench.results import Figures, medians, note_round, report
from dev.bench.topics import create_topics, message_counter
from dev.bench.transformer import STEPS
from dev.local_stack.java.peer_jars import SPARK_AVRO, SPARK_KAFKA
from dev.local_stack.process.network import LOCALHOST, free_ports
from dev.local_stack.servers import programs
from dev.local_stack.servers.kafka import KafkaBroker
from stream_runtime.records import SourcePartition
from tests.support.cdc_native.envelopes import ENVELOPE, envelope
from tests.support.transformer.orders import KEY, TOPIC

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from dev.local_stack.servers.programs import Program

PARTITIONS = 4
GROUP = "bench"
TARGET = "public.shop.orders"
PEER_TARGET = "peer.shop.orders"
FLINK_TARGET = "flink.shop.orders"
PEER = Path(__file__).with_name("avro_job.py")
PEER_STEPS = "mask by text"
DISTINCT = 20_000  # messages, which are sent again and again
NAMED_BITS = (0, 1, 4, 5)  # of the step `flags`
FEW_MESSAGES = 20_000  # for each of many transformers
SECONDS, POLL_SECONDS = 60.0, 0.5


class Run(NamedTuple):
    """The messages, the servers that both jobs use, and where files go."""

    # The broker.
    kafka: KafkaBroker
    # The URL of the registry.
    registry: str
    # The folder for files.
    folder: Path
    # Keys and values of the source topic.
    messages: Sequence[tuple[bytes, bytes]]


@click.command()
@click.option("--messages", default=1_000_000, show_default=True, help="Messages of each run.")
@click.option("--rounds", default=3, show_default=True, help="The figures are medians.")
@click.option("--many", multiple=True, type=int, default=(10, 40), show_default=True, help="Transformers of one file.")
def main(messages: int, rounds: int, many: tuple[int, ...]) -> None:
    """Measure CPU, rate and memory of the transformer's job."""
    figures: dict[str, list[Figures]] = {}
    for number in range(rounds):
        for name, steps in STEPS.items():
            with _run(messages) as run:
                note_round(figures, name, number, measure_job(run, steps))
                if steps == STEPS[PEER_STEPS]:
                    note_round(figures, "Spark's from_avro, to_avro", number, measure_peer(run))
                    note_round(figures, "Flink SQL", number, measure_flink(run))
        for count in many:
            with _run(FEW_MESSAGES) as run:
                note_round(figures, f"{count} transformers", number, measure_many(run, count))
    rows = {name: medians(figure) for name, figure in figures.items()}
    facts = {"messages": messages, "rounds": rounds, "spark_master": MASTER, "all_rounds": figures}
    report("transformer-job", f"{messages:,} messages, medians of {rounds}", rows, facts)


@contextmanager
def _run(count: int) -> Iterator[Run]:
    """Servers, and a source topic whose schemas are registered."""
    with tempfile.TemporaryDirectory(prefix="bench-transformer-") as folder, KafkaBroker(is_optimized=True) as kafka:
        registry = programs.schematizer(Path(folder, "registry"), free_ports(1)[0])
        registry.start()
        try:
            url = f"http://{LOCALHOST}:{registry.settings['schematizer.port']}"
            create_topics(kafka.bootstrap_servers, NewTopic(TOPIC, PARTITIONS, 1))
            with RegistryClient(RegistrySettings(url=url)) as client:
                ids = client.register(f"{TOPIC}-key", KEY), client.register(f"{TOPIC}-value", ENVELOPE)
            yield Run(kafka, url, Path(folder), make_messages(count, *ids))
        finally:
            registry.stop()


def make_messages(count: int, key_id: int, value_id: int) -> list[tuple[bytes, bytes]]:
    """Updates with both images, of different rows."""
    rng = random.Random(1)  # noqa: S311 - a load
    distinct = [_message(rng, number, key_id, value_id) for number in range(min(count, DISTINCT))]
    return [distinct[number % len(distinct)] for number in range(count)]


def _message(rng: random.Random, number: int, key_id: int, value_id: int) -> tuple[bytes, bytes]:
    value = envelope(with_before=True)
    before = {**value["before"], "id": number, "email": f"{text(rng, 12).decode()}@example.org"}
    after = {**before, "status": rng.randrange(5), "bits": rng.choice(NAMED_BITS), "total": rng.uniform(0, 1000)}
    source = {**value["source"], "pos": number * 200, "row_sequence": number}
    changed = {**value, "before": before, "after": after, "source": source}
    return wire.header(key_id) + encoded(KEY, {"id": number}), wire.header(value_id) + encoded(ENVELOPE, changed)


def measure_job(run: Run, steps: str) -> Figures:
    job = _transformer(run, {TARGET: steps})
    wait_until_idle()
    try:
        job.start()
        found = watch(job, Work(run.kafka, TOPIC, run.messages, _committed(run, 0)))
    finally:
        job.stop()
    return found


def measure_peer(run: Run) -> Figures:
    """After the job: the schemas of its target are in the registry."""
    expected = _distinct(run, TARGET)
    key, value = next(iter(expected))
    plan = {
        "source": json.dumps(ENVELOPE),
        "target": json.dumps(_schema(run, value)),
        "rest": [field["name"] for field in ENVELOPE["fields"] if field["name"] not in ("before", "after")],
        "key_header": key[: wire.HEADER_SIZE].hex(),
        "value_header": value[: wire.HEADER_SIZE].hex(),
    }
    file = run.folder / "plan.json"
    file.write_text(json.dumps(plan), encoding="utf-8")
    source = f"peer.{TOPIC}"
    bootstrap = run.kafka.bootstrap_servers
    create_topics(bootstrap, *(NewTopic(name, PARTITIONS, 1) for name in (source, PEER_TARGET)))
    arguments = (bootstrap, source, PEER_TARGET, str(run.folder / "peer"), str(file))
    job = Submitted(PEER, arguments, [SPARK_KAFKA, SPARK_AVRO], run.folder, MASTER)
    found = _watch_peer(run, job, source, PEER_TARGET)
    if _distinct(run, PEER_TARGET) != expected:
        raise click.ClickException("Spark's job has made other messages than the transformer.")
    return found


def measure_flink(run: Run) -> Figures:
    """After the job, as measure_peer. Flink writes by a schema of its own, so that values are compared, not bytes."""
    expected = _values(run, TARGET)
    source, bootstrap = f"flink-source.{TOPIC}", run.kafka.bootstrap_servers
    create_topics(bootstrap, *(NewTopic(name, PARTITIONS, 1) for name in (source, FLINK_TARGET)))
    job = programs.Program(
        "flink",
        ("-m", "dev.bench.flink_job", bootstrap, run.registry, source, FLINK_TARGET, str(run.folder)),
        folder=run.folder,
        settings={},
        start_seconds=programs.SPARK_START_SECONDS,
        is_ready=lambda program: "ready" in program.output().splitlines(),
    )
    found = _watch_peer(run, job, source, FLINK_TARGET)
    if _values(run, FLINK_TARGET) != expected:
        raise click.ClickException("Flink has made other values than the transformer.")
    return found


def _watch_peer(run: Run, job: Program, source: str, target: str) -> Figures:
    """The figures of a job that has a source topic of its own, once its target has all messages."""
    done = message_counter(run.kafka.bootstrap_servers, target, PARTITIONS)
    wait_until_idle()
    try:
        job.start()
        return watch(job, Work(run.kafka, source, run.messages, done))
    finally:
        job.kill()


def _values(run: Run, topic: str) -> set[str]:
    """The distinct values of a topic, decoded by the schema that each names."""
    schemas: dict[int, Any] = {}
    found: set[str] = set()
    for _, message in _distinct(run, topic):
        schema_id = wire.schema_id(message)
        if schema_id not in schemas:
            schemas[schema_id] = fastavro.parse_schema(_schema(run, message))
        value = fastavro.schemaless_reader(io.BytesIO(message[wire.HEADER_SIZE :]), schemas[schema_id], None)
        found.add(json.dumps(value, default=str, sort_keys=True))
    return found


def measure_many(run: Run, count: int) -> Figures:
    """Memory of a job with so many transformers that read one topic, once all of them have done all messages."""
    job = _transformer(run, {f"public{number}.shop.orders": STEPS[PEER_STEPS] for number in range(count)})
    send(run.kafka.bootstrap_servers, TOPIC, run.messages)
    counters = [_committed(run, number) for number in range(count)]
    wait_until_idle()
    try:
        job.start()
        with ProcessTree(job.pid, kind_of) as tree:
            wait(job, lambda: sum(counter() for counter in counters), count * len(run.messages))
            usage = tree.usage()
    finally:
        job.stop()
    return {
        "peak_rss_mb": usage.peak_bytes / MB,
        **{f"rss_mb {kind}": size / MB for kind, size in sorted(tree.peak_by_kind.items())},
    }


def _transformer(run: Run, targets: Mapping[str, str]) -> Program:
    """The job of a file with a transformer for each target: its topic, and the steps."""
    namespace, _, source = TOPIC.rpartition(".")
    file = run.folder / "transformers.toml"
    file.write_text(
        "".join(
            f'[[transformer]]\nname = "{_name(number)}"\n'
            f'source = {{ namespace = "{namespace}", source = "{source}" }}\n'
            f'target = {{ namespace = "{target.rpartition(".")[0]}", source = "{source}" }}\n{steps}\n'
            for number, (target, steps) in enumerate(targets.items())
        ),
        encoding="utf-8",
    )
    settings: dict[str, programs.Setting] = {
        "kafka.bootstrap_servers": run.kafka.bootstrap_servers,
        "registry.url": run.registry,
        "transformer.group_id": GROUP,
        "transformer.spark_master": MASTER,
    }
    return programs.transformer(run.folder, file, settings)


def _name(number: int) -> str:
    return f"t{number}"


def _committed(run: Run, number: int) -> Callable[[], int]:
    """A function that counts the messages before a transformer's committed offsets."""
    settings = KafkaSettings(bootstrap_servers=run.kafka.bootstrap_servers)
    offsets = CommittedOffsets(settings, f"{GROUP}.{_name(number)}")
    partitions = [SourcePartition(TOPIC, partition) for partition in range(PARTITIONS)]
    return lambda: sum(offset or 0 for offset in offsets.committed(partitions, SECONDS).values())


def _distinct(run: Run, topic: str) -> set[tuple[bytes, bytes]]:
    """The distinct messages of a topic."""
    own = {"group.id": "distinct", "enable.auto.commit": False, "enable.partition.eof": True}
    consumer = Consumer({"bootstrap.servers": run.kafka.bootstrap_servers, **own})
    consumer.assign([TopicPartition(topic, number, 0) for number in range(PARTITIONS)])
    found: set[tuple[bytes, bytes]] = set()
    ended = 0
    while ended < PARTITIONS:
        for message in consumer.consume(10_000, POLL_SECONDS):
            if message.error() is None:
                found.add((message.key() or b"", message.value() or b""))
            else:
                ended += 1
    consumer.close()
    return found


def _schema(run: Run, message: bytes) -> Any:  # noqa: ANN401 - JSON
    with RegistryClient(RegistrySettings(url=run.registry)) as client:
        return client.get(wire.schema_id(message))


if __name__ == "__main__":
    main()
