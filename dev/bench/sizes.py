"""Measure how many bytes a write becomes on its way: `make bench NAME=sizes` (docs/guides/size.md, "How much room").

Rows of five short columns, a row a mutation: new rows with all columns, updates of two columns of each, and updates
that come one by one. Mutations are written as Cassandra serializes them, and go through our own code: the split, the
raw messages, a raw partition's real task with its RocksDB and changelogs. Only Kafka is left out: messages are put into
record batches and compressed as librdkafka does it. No server is started.

How well lz4 packs depends on how many writes a raw partition gets at once: those between two syncs of the commit log.
At 5,000 writes a second, eight partitions and a sync a second (the README's) these are 625.
"""

from __future__ import annotations

import random
import tempfile
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click

from cassandra_storage.formats.rows.deletion import LivenessInfo
from cassandra_storage.formats.rows.header import EncodingStats, SerializationHeader
from cassandra_storage.formats.rows.partition import PartitionUpdate
from cassandra_storage.formats.rows.row import Cell, Row
from cassandra_storage.formats.versions import VERSION_40
from cdc_common.messages import raw
from cdc_common.messages.avro.type_forms import EXACT
from cdc_common.messages.tables import message_key, to_json
from cdc_common.settings import KafkaSettings
from dev.bench.hot_paths import SCHEMA_ID, raw_message
from dev.bench.raw_forms import EPOCH, Case, compress, own_columns, record_batches, table_of, value_of
from dev.bench.state import RAW, Swallow
from materializer.planning.plan import ChangeTopic, TableSchema, TopicPlan
from materializer.records import RawRecord
from materializer.settings import MaterializerSettings
from materializer.worker.batch_plan import BatchPlan
from materializer.worker.wiring import task_settings
from stream_runtime.exactly_once.partition_task import PartitionTask
from stream_runtime.exactly_once.position import Position
from stream_runtime.exactly_once.resources import Resources
from stream_runtime.state.checkpoint_location import state_settings
from stream_runtime.state.checkpointed_state import CheckpointedState
from stream_runtime.state.checkpoints import CheckpointStore
from stream_runtime.state.object_store import ObjectStore
from stream_runtime.state.rocksdb import open_local_store
from tests.support.cassandra_storage.update_builder import write_update

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from cassandra_storage.formats.schema.tables import ColumnMetadata
    from materializer.records import RawPartition
    from stream_runtime.exactly_once.commits import StoredOffset
    from stream_runtime.records import Message

TABLE = table_of(Case(columns=5, written=5, batch=1))
UPDATED = (TABLE.regular_columns[0], TABLE.regular_columns[3])
ENTRY_BYTES = 12  # what a commit log has around a mutation: its size and two checksums
BATCH_BYTES = 61  # what Kafka has around the records of a batch
TRANSACTION_BYTES = 78  # the mark of a transaction's end, in each partition that it wrote to
AT_ONCE, BURSTS, SINGLES = 625, 20, 100
SEGMENT = EPOCH * 1000
LAST_KEY = b"\xff" * 16  # after all keys of a state

Key = tuple[bytes, int]  # of a row


class Sizes(NamedTuple):
    """The bytes of some writes."""

    # The bytes in the commit log.
    logged: int = 0
    # The bytes of the raw messages.
    raw: int = 0
    # The bytes of Kafka's log segments of the raw messages.
    raw_stored: int = 0
    # The bytes of the change messages.
    changes: int = 0
    # The bytes of Kafka's log segments of the change messages.
    changes_stored: int = 0

    def plus(self, other: Sizes) -> Sizes:
        return Sizes(*(mine + its for mine, its in zip(self, other, strict=True)))


class Broker(Swallow):
    """Keeps the messages of the last commit."""

    def __init__(self, position: Position) -> None:
        super().__init__(position)
        self.messages: list[Message] = []
        self._sent: list[Message] = []

    def send(self, message: Message) -> None:
        self._sent.append(message)

    def commit(self, offsets: Mapping[RawPartition, StoredOffset]) -> None:
        super().commit(offsets)
        self.messages, self._sent = self._sent, []


class Bench:
    """A raw partition, with its files in `folder`."""

    def __init__(self, folder: Path) -> None:
        self._checkpoint = folder / "checkpoint"
        settings = MaterializerSettings(checkpoint_location=str(self._checkpoint), state_directory=folder / "state")
        schema = TableSchema(message_key(TABLE)[:16], message_key(TABLE)[16:], to_json(TABLE, "production"))
        plan = TopicPlan(1, (schema,), (ChangeTopic("bench.shop.orders", 1, 1, 2),), forms=EXACT)
        batch = BatchPlan({RAW.topic: plan}, KafkaSettings(topic_prefix="bench"), settings)
        self._processor = batch.processor(RAW.topic)
        self._local = open_local_store(settings.state_directory)
        checkpoints = CheckpointStore(ObjectStore(settings.checkpoint_location), settings.group_id, RAW)
        self._broker = Broker(Position(0, self._local.version, 1))
        state = CheckpointedState(self._local, checkpoints, state_settings(settings))
        self._task = PartitionTask(RAW, Resources(self._broker, state), task_settings(settings))
        self._random = random.Random(1)  # noqa: S311 - the same data every time
        self._written = 0

    def close(self) -> None:
        self._task.close()

    def new_keys(self, count: int) -> list[Key]:
        return [(self._random.randbytes(16), self._random.randrange(10**6)) for _ in range(count)]

    def write(self, keys: list[Key], columns: tuple[ColumnMetadata, ...], at_once: int) -> Sizes:
        """Each of the rows once, so many at once."""
        total = Sizes()
        for first in range(0, len(keys), at_once):
            total = total.plus(self._burst([self._mutation(key, columns) for key in keys[first : first + at_once]]))
        return total

    def changelog_bytes(self) -> int:
        return sum(file.stat().st_size for file in self._checkpoint.rglob("*.changelog"))

    def state_bytes(self) -> int:
        return sum(len(key) + len(value) for key, value in self._local.scan(b"", LAST_KEY))

    def _burst(self, mutations: list[bytes]) -> Sizes:
        first = self._broker.position.offset
        records = [self._record(mutation, offset) for offset, mutation in enumerate(mutations, first)]
        self._task.process(records, self._processor)
        changes = [(message.key, message.value or b"") for message in self._broker.messages]
        assert len(changes) == len(mutations)
        raws = [(record.key, record.value) for record in records]
        return Sizes(
            sum(len(mutation) + ENTRY_BYTES for mutation in mutations),
            sum(len(key) + len(value) for key, value in raws),
            sum(stored(raws)),
            sum(len(key) + len(value) for key, value in changes),
            sum(stored(changes)) + TRANSACTION_BYTES,
        )

    def _mutation(self, key: Key, columns: tuple[ColumnMetadata, ...]) -> bytes:
        """Return a mutation as the commit log contains it. With all columns it is an INSERT's."""
        self._written += 1
        timestamp = EPOCH * 1_000_000 + self._written * 997
        cells = {column.name: Cell(timestamp, value_of(column, self._random)) for column in columns}
        liveness = (LivenessInfo(timestamp),) if columns == TABLE.regular_columns else ()
        row = Row((key[1].to_bytes(8, "big"),), cells, *liveness)
        written = replace(TABLE, regular_columns=columns)
        header = SerializationHeader.of_table(written, EncodingStats(timestamp), VERSION_40)
        return b"\x01" + write_update(PartitionUpdate(TABLE, key[0], rows=(row,)), [row], header)

    def _record(self, mutation: bytes, offset: int) -> RawRecord:
        [part] = own_columns(mutation, TABLE)
        message = replace(
            raw_message(part, TABLE),
            segment=SEGMENT,
            file=f"CommitLog-7-{SEGMENT}.log",
            position=offset * len(mutation),
        )
        return RawRecord(part.partition_key, raw.encode(message, SCHEMA_ID), offset, EPOCH * 1000)


def stored(messages: list[tuple[bytes, bytes]]) -> Iterator[int]:
    """The size of each batch."""
    for batch in record_batches([value for _, value in messages], [key for key, _ in messages]):
        yield BATCH_BYTES + len(compress(batch))


@click.command(help=__doc__)
def main() -> None:
    with tempfile.TemporaryDirectory(prefix="bench-sizes-") as folder, closing(Bench(Path(folder))) as bench:
        keys = bench.new_keys(AT_ONCE * BURSTS)
        for name, rows, columns, at_once in (
            ("INSERT of a new row", keys, TABLE.regular_columns, AT_ONCE),
            ("UPDATE of two columns", keys, UPDATED, AT_ONCE),
            ("UPDATEs one by one", keys[:SINGLES], UPDATED, 1),
        ):
            before = bench.changelog_bytes()
            sizes = bench.write(rows, columns, at_once)
            changelogs = bench.changelog_bytes() - before
            measured = {**sizes._asdict(), "changelog": changelogs}
            click.echo(f"{name}: " + ", ".join(f"{what} {size / len(rows):.0f}" for what, size in measured.items()))
        click.echo(f"state: {bench.state_bytes() / len(keys):.0f} a row")


if __name__ == "__main__":
    main()
