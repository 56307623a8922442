"""One step of dev.bench.snapshot in a process of its own: its last line is JSON of the figures."""

from __future__ import annotations

import json
import os
import sys
import time
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast
from uuid import UUID

import click

from cassandra_storage.files.sstables import SSTable
from cassandra_storage.files.table_sstables import TableSSTables, table_files
from cassandra_storage.formats.merge.range_merge import with_ranges
from cassandra_storage.formats.primitives.token_ranges import WHOLE_RING
from cassandra_storage.formats.schema.cql_schema import parse_schema
from cassandra_storage.formats.sstable.file_name import parse_table_folder
from cdc_common.messages import raw, tables
from cdc_common.program.pace import Pace
from cdc_common.settings import KafkaSettings
from dev.bench.processes import MB
from dev.bench.snapshot import CORE_STEPS, Step, create_statement
from publisher.kafka.sender import Sender
from publisher.snapshot.connections.link import Link
from publisher.snapshot.rows.merged_table import MergedTable
from publisher.snapshot.rows.messages import RowImages, SnapshotOrigin
from publisher.snapshot.rows.sending import PartitionSender
from publisher.tables.published_table import PublishedTable
from publisher.topics.raw_topics import RawTopic

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from cassandra_storage.formats.schema.tables import TableMetadata
    from cassandra_storage.formats.sstable.merge import MergedPartition
    from cdc_native.formats.batches import Batch
    from publisher.inflight import PendingMessages
    from publisher.mutations.messages import OutgoingMessage
    from publisher.snapshot.rows.sending import Output

SCHEMA_ID = 1
ORIGIN = SnapshotOrigin(UUID(int=1), bytes(16), 1_700_000_000_000_000)


class _Nowhere:
    """Encodes messages and drops them."""

    def send(self, unit: list[OutgoingMessage], pending: PendingMessages) -> int:  # noqa: ARG002
        return sum(len(raw.encode(row.message, SCHEMA_ID)) for row in unit)

    def send_batch(self, batch: Batch, pending: PendingMessages) -> None:
        """It is made already."""

    def poll(self) -> None:
        """Nothing is waited for."""

    wait = poll


class _Kafka:
    """The raw topic, as publisher.snapshot.steps.run has it."""

    def __init__(self, step: Step) -> None:
        sender = Sender(KafkaSettings(bootstrap_servers=step.bootstrap))
        nothing = cast("Any", None)
        self._link = Link(nothing, nothing, nothing, nothing, sender, cast("Any", self), nothing)
        self._topics = (step.topic,)

    def serve(self) -> None:
        """There are no orders."""

    def send(self, unit: list[OutgoingMessage], pending: PendingMessages) -> int:
        raise NotImplementedError(f"{len(unit)} messages are not the core's, {pending} are")

    def send_batch(self, batch: Batch, pending: PendingMessages) -> None:
        self._link.send_batch(self._topics, batch, pending)

    def poll(self) -> None:
        self._link.sender.poll(0)

    def wait(self) -> None:
        self._link.wait()


def _table(step: Step) -> TableMetadata:
    for folder in (Path(step.data) / "bench").iterdir():
        named = parse_table_folder(folder.name)
        if named is not None and named[0] == step.table:
            assert named[1] is not None
            (table,) = parse_schema(create_statement(step.table, named[1]))
            return table
    raise FileNotFoundError(step.table)


def _chunks(sstables: TableSSTables) -> int:
    """All SSTables, decompressed and with their checksums verified; the number of their rows."""
    count = 0
    for file in sstables.files:
        with SSTable(file, sstables.table) as sstable:
            for _ in sstable.data.chunks():
                pass
            count += sstable.statistics.stats.rows
    return count


def _read(sstables: TableSSTables, most: int) -> int:
    """All SSTables, one after the other, of each its share of the rows."""
    count = 0
    for file in sstables.files:
        with SSTable(file, sstables.table) as sstable:
            rows = (row for _ in sstable.partitions() for row in sstable.rows())
            count += sum(1 for _ in islice(rows, most // len(sstables.files)))
    return count


def _merged(sstables: TableSSTables, most: int) -> Iterator[MergedPartition]:
    """The first ones, of about so many rows; they must be read before the next."""
    purger = sstables.purger(int(time.time()))
    return islice(sstables.merged(purger, WHOLE_RING), most // 10 or None)


def _merge(sstables: TableSSTables, most: int) -> int:
    return sum(1 for merged in _merged(sstables, most) for _ in with_ranges(merged.unfiltereds))


def _send(sstables: TableSSTables, most: int, output: Output, step: Step) -> int:
    table = PublishedTable(sstables.table, sstables.table.id.bytes, tables.digest(tables.canonical(sstables.table)))
    images = RowImages(table, ORIGIN)
    sender = PartitionSender(images, output, Pace(0, lambda: None), lambda _: None, None)
    if most:
        sender.send_partitions(_merged(sstables, most))
        sender.finish()
    else:
        merged = MergedTable(sstables, sstables.purger(int(time.time())), WHOLE_RING)
        merged.send(sender, images, RawTopic(table, step.topic, 1, SCHEMA_ID), ORIGIN)
    return sender.progress.rows


def main() -> None:
    step = Step(*json.loads(sys.argv[1]))
    sstables = TableSSTables(table := _table(step), table_files([Path(step.data)], table))
    steps: dict[str, Callable[[], int]] = {
        "reader": lambda: _read(sstables, step.most),
        "merge": lambda: _merge(sstables, step.most),
        "images": lambda: _send(sstables, step.most, _Nowhere(), step),
        CORE_STEPS[0]: lambda: _chunks(sstables),
        CORE_STEPS[1]: lambda: _send(sstables, 0, _Nowhere(), step),
        CORE_STEPS[2]: lambda: _send(sstables, 0, _Kafka(step), step),
    }
    started, cpu = time.monotonic(), _cpu()
    count = steps[step.name]()
    seconds, spent = time.monotonic() - started, _cpu() - cpu
    peak = _peak_bytes() / MB
    figures = {"cpu_s_per_million": spent / count * 1e6, "rows_per_second": count / seconds, "peak_rss_mb": peak}
    click.echo(json.dumps({**figures, "rows": count}))


def _peak_bytes() -> int:
    """The peak memory of this process. getrusage never returns less than the memory of the process that started it."""
    status = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    (line,) = (line for line in status if line.startswith("VmHWM:"))
    return int(line.split()[1]) * 1024


def _cpu() -> float:
    """User and system time of this process with all its threads."""
    times = os.times()
    return times.user + times.system


if __name__ == "__main__":
    main()
