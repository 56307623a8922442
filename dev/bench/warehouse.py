"""The warehouse beside Debezium's JDBC sink, into the same PostgreSQL: inserts, and updates of the same rows.

Both get the same change messages, and neither reads them from Kafka. The sink gets records that are decoded already, so
its figures are those of its own work; the warehouse's have everything from the bytes of the messages on. PostgreSQL's
own CPU is measured for both.
"""

from __future__ import annotations

import io
import tempfile
import time
import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click
import fastavro
import psutil

from cdc_common.messages import wire
from cdc_native.kafka.source_batch import SourceBatch as NativeBatch
from dev.bench.results import report
from dev.local_stack.process.network import free_ports
from stream_runtime.records import TopicShape
from stream_runtime.source_batch import SourceBatch
from tests.support.archive.scene import MemoryRegistry
from tests.support.consumers.jdbc_sink import JdbcSinks, settings
from tests.support.schematizer.postgresql import PostgreSQL, new_folder
from tests.support.warehouse.scene import ID, KEY_ID, KEY_SCHEMA, TABLE, TOPIC, envelope, key_bytes, nullable
from warehouse.loading.table_task import Source, TableTask, TaskSettings
from warehouse.tables.schemas import Schemas
from warehouse.targets.loader import Loader
from warehouse.targets.postgresql import PostgreSqlConnection

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

SCHEMA_ID = 10
SCHEMA = envelope(
    [
        ID,
        nullable("name", "string"),
        nullable("city", "string"),
        nullable("qty", "long"),
        nullable("price", "double"),
        nullable("at", {"type": "long", "logicalType": "timestamp-millis"}),
        nullable("number", {"type": "string", "logicalType": "uuid"}),
    ]
)
PUT = 500  # messages of a put, as Kafka Connect polls them by default
JVM = ("-Xmx1g", "-XX:TieredStopAtLevel=4")  # as a Kafka Connect worker has it
TAKEN = 10_000  # messages of a batch of the warehouse


class Message(NamedTuple):
    """A change message."""

    # The key, with its header.
    key: bytes
    # The value, with its header.
    value: bytes


class Used(NamedTuple):
    """The time and the CPU of some work."""

    # Wall seconds.
    seconds: float
    # CPU seconds of the loader: this process, or the sink's JVM.
    own_cpu: float
    # CPU seconds of PostgreSQL.
    server_cpu: float

    def figures(self, count: int) -> dict[str, float]:
        return {
            "messages/s": count / self.seconds,
            "own CPU-s per million": self.own_cpu / count * 1e6,
            "PostgreSQL's CPU-s per million": self.server_cpu / count * 1e6,
        }


def changes(count: int, first_sequence: int) -> list[Message]:
    """A change of each of `count` rows."""
    schema = fastavro.parse_schema(SCHEMA)
    return [_change(schema, number, first_sequence + number) for number in range(count)]


def _change(schema: Any, number: int, sequence: int) -> Message:  # noqa: ANN401 - fastavro's
    row = {
        "id": number,
        "name": f"name {sequence}",
        "city": "Paris",
        "qty": sequence,
        "price": sequence / 3,
        "at": 1_795_258_800_000 + sequence,
        "number": str(uuid.UUID(int=sequence)),
    }
    out = io.BytesIO()
    source = {"ts_us": sequence, "row_sequence": sequence}
    fastavro.schemaless_writer(
        out, schema, {"op": "u", "before": None, "after": row, "source": source, "ts_ms": sequence}
    )
    return Message(key_bytes(number), wire.header(SCHEMA_ID) + out.getvalue())


class Bench:
    """A server, and both loaders."""

    def __init__(self, server: PostgreSQL, load_rows: int) -> None:
        assert server.process is not None
        self._server = psutil.Process(server.process.pid)
        self._load_rows = load_rows
        self._url = server.new_database().replace("+psycopg", "")
        self.their_database = server.new_database().partition("?")[0].rpartition("/")[2]
        loader = Loader(PostgreSqlConnection(self._url, "", 60.0), "cdc_warehouse")
        loader.prepare()
        schemas = Schemas(MemoryRegistry({KEY_ID: KEY_SCHEMA, SCHEMA_ID: SCHEMA}), TOPIC)
        limits = TaskSettings(load_rows, 10**12, 10**9, nulls_refused=False)
        self._task = TableTask(Source(TABLE, TOPIC, TopicShape(1, "id")), loader, schemas, limits)
        self._offset = 0

    def ours(self, messages: Sequence[Message]) -> Used:
        """Load messages, in whole loads. The batches are made before."""
        batches = [self._batch(messages[at : at + TAKEN]) for at in range(0, len(messages), TAKEN)]
        return self._measure(lambda: self._load(batches), psutil.Process())

    def theirs(self, messages: Sequence[Message], sinks: JdbcSinks, host: str, port: int) -> Used:
        """Put messages by the sink. Only its `put` is measured."""
        sink = sinks.gateway.jvm.JdbcSinkRun()
        address = {
            "connection.url": f"jdbc:postgresql://{host}:{port}/{self.their_database}",
            "connection.username": "test",
            "connection.password": "test",
        }
        [jvm] = [child for child in psutil.Process().children(recursive=True) if "java" in child.name()]
        total = Used(0.0, 0.0, 0.0)
        sink.start({**settings(), **address, "topics": TOPIC}, TOPIC)
        for at in range(0, len(messages), PUT):
            for number, message in enumerate(messages[at : at + PUT]):
                sink.add(TOPIC, at + number, _KEY_TEXT, message.key, _TEXT, message.value)
            used = self._measure(sink.put, jvm)
            total = Used(*(one + other for one, other in zip(total, used, strict=True)))
        sink.stop()
        return total

    def count(self) -> int:
        [(count,)] = self._task.loader.connection.run("SELECT COUNT(*) FROM shop.orders")
        return int(count)

    def _batch(self, messages: Sequence[Message]) -> SourceBatch:
        found = [(message.key, message.value, self._offset + at, 1) for at, message in enumerate(messages)]
        self._offset += len(messages)
        return SourceBatch(NativeBatch.of(TOPIC, 0, found))

    def _load(self, batches: Sequence[SourceBatch]) -> None:
        for batch in batches:
            self._task.take(0, batch, batch[-1].offset + 1)
            self._task.load_due()

    def _measure(self, work: Callable[[], object], own: psutil.Process) -> Used:
        before, server, started = _cpu(own), self._server_cpu(), time.monotonic()
        work()
        return Used(time.monotonic() - started, _cpu(own) - before, self._server_cpu() - server)

    def _server_cpu(self) -> float:
        """Of all processes of the server, those that have ended too."""
        times = self._server.cpu_times()
        return (
            _cpu(self._server) + times.children_user + times.children_system + sum(map(_cpu, self._server.children()))
        )


_TEXT = fastavro.schema.to_parsing_canonical_form(SCHEMA)
_KEY_TEXT = fastavro.schema.to_parsing_canonical_form(KEY_SCHEMA)


def _cpu(process: psutil.Process) -> float:
    times = process.cpu_times()
    return float(times.user + times.system)


@click.command()
@click.option("--rows", default=500_000, help="Rows that the warehouse inserts, and then updates.")
@click.option("--their-rows", default=20_000, help="Rows that the sink inserts, and then updates.")
@click.option("--load-rows", default=100_000, help="Messages of a load.")
@click.option("--rounds", default=3, help="Updates of all rows by the warehouse, one after the other.")
def main(rows: int, their_rows: int, load_rows: int, rounds: int) -> None:
    """Measures the warehouse beside Debezium's JDBC sink."""
    [port] = free_ports(1)
    server = PostgreSQL(new_folder(), port).start()
    found: dict[str, dict[str, float]] = {}
    try:
        bench = Bench(server, load_rows)
        found["warehouse: insert"] = bench.ours(changes(rows, 1)).figures(rows)
        for number in range(1, rounds + 1):
            found[f"warehouse: update {number}"] = bench.ours(changes(rows, 1 + number * rows)).figures(rows)
        assert bench.count() == rows
        with tempfile.TemporaryDirectory() as folder, JdbcSinks(Path(folder), "127.0.0.1", port, JVM) as sinks:
            # The first one warms the JVM up, too: it has run for some seconds before the updates.
            found["JDBC sink: insert"] = bench.theirs(changes(their_rows, 1), sinks, "127.0.0.1", port).figures(
                their_rows
            )
            for name, first in (("update", 1 + their_rows), ("update again", 1 + 2 * their_rows)):
                used = bench.theirs(changes(their_rows, first), sinks, "127.0.0.1", port)
                found[f"JDBC sink: {name}"] = used.figures(their_rows)
    finally:
        server.stop()
    facts = {
        "rows": rows,
        "their_rows": their_rows,
        "load_rows": load_rows,
        "message_bytes": len(changes(1, 1)[0].value),
    }
    report("warehouse", "Into PostgreSQL", found, facts)


if __name__ == "__main__":
    main()
