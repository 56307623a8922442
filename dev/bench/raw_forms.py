"""Compares forms that a single-row update could have in a raw message, and the cost of each (decision 0006).

Forms: the columns of the update it comes from ("source"), the row's own columns with the source's statistics ("own
columns": what split_mutation makes), and the row's own columns and statistics ("own"). Bytes are those of the update,
and of whole messages as Kafka stores them: record batches of up to 1 MB, plain and as lz4 frames of 64 KiB blocks.
"""

from __future__ import annotations

import random
import statistics
import time
from typing import TYPE_CHECKING, NamedTuple
from uuid import UUID

import click
import lz4.frame

from cassandra_storage.formats.primitives.vint import read_sized, read_unsigned_vint, write_sized, write_vint
from cassandra_storage.formats.rows.deletion import LivenessInfo
from cassandra_storage.formats.rows.header import (
    NO_COLUMNS,
    Columns,
    EncodingStats,
    SerializationHeader,
    read_stats,
    table_codec,
    write_stats,
)
from cassandra_storage.formats.rows.mutation import read_mutation, split_mutation
from cassandra_storage.formats.rows.partition import PartitionUpdate
from cassandra_storage.formats.rows.partition_update import SingleRowUpdate, read_partition_update
from cassandra_storage.formats.rows.row import Cell, Row
from cassandra_storage.formats.rows.unfiltered import END_OF_PARTITION, skip_row, write_row
from cassandra_storage.formats.schema.tables import ColumnKind, ColumnMetadata, TableMetadata
from cassandra_storage.formats.types.marshal import NativeType
from cassandra_storage.formats.versions import VERSION_40
from cdc_common.messages import raw
from dev.bench.hot_paths import SCHEMA_ID, raw_message
from tests.support.cassandra_storage.update_builder import write_update

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

ROWS = 10_000
BATCH_BYTES = 1_000_000
ROUNDS = 3
TYPES = ("text", "int", "bigint", "timestamp", "text")
SIZES = {"int": 4, "bigint": 8, "timestamp": 8}
EPOCH = 1_763_000_000


class Case(NamedTuple):
    """A table and its mutations."""

    # The number of the table's regular columns.
    columns: int
    written: int  # columns that each row has, drawn for each
    batch: int  # rows of a mutation


CASES = [
    Case(columns, written, batch) for batch in (1, 100) for columns, written in ((5, 5), (5, 2), (50, 50), (50, 5))
]


def main() -> None:
    head = f"{'columns':>8}{'written':>8}{'batch':>6} {'form':12}"
    click.echo(f"{head}{'update':>8}{'message':>9}{'lz4':>7}   CPU-s/M: {'split':>6}{'lz4':>6}{'read':>6}")
    for case in CASES:
        table, mutations = table_of(case), list(mutations_of(case))
        for name, form in (("source", source), ("own columns", own_columns), ("own", own)):
            report(case, name, table, mutations, form)


def report(
    case: Case,
    name: str,
    table: TableMetadata,
    mutations: list[bytes],
    form: Callable[[bytes, TableMetadata], list[SingleRowUpdate]],
) -> None:
    made = [part for mutation in mutations for part in form(mutation, table)]
    updates = [part.update for part in made]
    encoded = [raw.encode(raw_message(part, table), SCHEMA_ID) for part in made]
    batches = list(record_batches(encoded, [part.partition_key for part in made]))
    compressed = [compress(batch) for batch in batches]
    tables = {table.id.bytes: table}
    count = len(updates)
    split_seconds = seconds(count, lambda: [part.update for m in mutations for part in form(m, table)])
    lz4_seconds = seconds(count, lambda: [compress(batch) for batch in batches])
    read_seconds = seconds(count, lambda: [read_partition_update(u, 0, VERSION_40, tables) for u in updates])
    click.echo(
        f"{case.columns:8}{case.written:8}{case.batch:6} {name:12}"
        f"{size(updates, count):8.0f}{size(batches, count):9.0f}{size(compressed, count):7.0f}"
        f"            {split_seconds:6.1f}{lz4_seconds:6.2f}{read_seconds:6.1f}"
    )


def size(parts: list[bytes], count: int) -> float:
    return sum(map(len, parts)) / count


def seconds(count: int, step: Callable[[], object]) -> float:
    """CPU seconds per million rows, the median of the rounds."""
    rounds = []
    for _ in range(ROUNDS):
        started = time.process_time()
        step()
        rounds.append((time.process_time() - started) / count * 1e6)
    return statistics.median(rounds)


def compress(batch: bytes) -> bytes:
    """Compress a batch as librdkafka does."""
    compressed: bytes = lz4.frame.compress(batch, block_size=lz4.frame.BLOCKSIZE_MAX64KB, block_linked=False)
    return compressed


def record_batches(values: list[bytes], keys: list[bytes]) -> Iterator[bytes]:
    """The records of Kafka's batches, without the 61 bytes that a batch has once."""
    batch: list[bytes] = []
    filled = 0
    for value, key in zip(values, keys, strict=True):
        body = b"\x00" + write_vint(3) + write_vint(len(batch))  # attributes, timestamp and offset deltas
        body += write_vint(len(key)) + key + write_vint(len(value)) + value + b"\x00"
        record = write_vint(len(body)) + body
        if filled + len(record) > BATCH_BYTES:
            yield b"".join(batch)
            batch, filled = [], 0
        batch.append(record)
        filled += len(record)
    yield b"".join(batch)


def table_of(case: Case) -> TableMetadata:
    return TableMetadata(
        "shop",
        "orders",
        UUID(int=case.columns),
        (ColumnMetadata("customer_id", NativeType("uuid"), ColumnKind.PARTITION_KEY, 0),),
        (ColumnMetadata("order_number", NativeType("bigint"), ColumnKind.CLUSTERING, 0),),
        regular_columns=tuple(
            ColumnMetadata(f"order_field_{index:02}", NativeType(TYPES[index % 5]), ColumnKind.REGULAR)
            for index in range(case.columns)
        ),
    )


def mutations_of(case: Case) -> Iterator[bytes]:
    """INSERTs for rows with all columns, otherwise UPDATEs; the header has columns that any row of the batch has."""
    table, rng = table_of(case), random.Random(case.columns)  # noqa: S311  the same data every time
    for number in range(ROWS // case.batch):
        timestamp = EPOCH * 1_000_000 + number * 997
        rows = [row_of(case, table, rng, timestamp) for _ in range(case.batch)]
        names = {name for row in rows for name in row.columns}
        narrow = SerializationHeader.of_table(
            TableMetadata(
                table.keyspace,
                table.name,
                table.id,
                table.partition_key,
                table.clustering,
                regular_columns=tuple(column for column in table.regular_columns if column.name in names),
            ),
            EncodingStats(timestamp),
            VERSION_40,
        )
        yield b"\x01" + write_update(PartitionUpdate(table, rng.randbytes(16), rows=tuple(rows)), [*rows], narrow)


def row_of(case: Case, table: TableMetadata, rng: random.Random, timestamp: int) -> Row:
    columns = rng.sample(table.regular_columns, case.written)
    cells = {column.name: Cell(timestamp, value_of(column, rng)) for column in columns}
    clustering = (rng.randrange(10**6).to_bytes(8, "big"),)
    if case.written == case.columns:
        return Row(clustering, cells, LivenessInfo(timestamp))
    return Row(clustering, cells)


def value_of(column: ColumnMetadata, rng: random.Random) -> bytes:
    assert isinstance(column.type, NativeType)
    length = SIZES.get(column.type.name)
    if length is None:
        return rng.choice(
            (b"delivered", b"paid in advance", b"Rue de la Paix 12, Paris", b"n/a")
        ) + b"%d" % rng.randrange(99)
    return rng.randrange(10**6).to_bytes(length, "big")


def source(mutation: bytes, table: TableMetadata) -> list[SingleRowUpdate]:
    """The bytes of each row as they are, after the header as it is."""
    codec = table_codec(table)
    key, pos = read_sized(mutation, 17)
    stats, pos = read_stats(mutation, pos + 1)
    columns, pos = codec.read_columns(mutation, pos, is_static=False)
    lead = mutation[1:pos] + b"\x01"
    header = SerializationHeader(codec.clustering_lengths, NO_COLUMNS, columns, stats)
    _, pos = read_unsigned_vint(mutation, pos)
    parts = []
    while mutation[pos] != END_OF_PARTITION:
        end = skip_row(mutation, pos, header, is_static=False).end
        parts.append(SingleRowUpdate("row", key, (lead, mutation[pos:end], b"\x01")))
        pos = end
    return parts


def own_columns(mutation: bytes, table: TableMetadata) -> list[SingleRowUpdate]:
    ((_, parts),) = split_mutation(mutation, VERSION_40, {table.id.bytes: table})
    return parts


def own(mutation: bytes, table: TableMetadata) -> list[SingleRowUpdate]:
    """Each row read, and written with the columns and statistics of PartitionUpdate.singleRowUpdate."""
    (update,) = read_mutation(mutation, VERSION_40, {table.id.bytes: table})
    codec = table_codec(table)
    lead = table.id.bytes + write_sized(update.partition_key) + b"\x10"
    parts = []
    for row in update.rows:
        columns = Columns(tuple(codec.layout(c) for c in table.regular_columns if c.name in row.columns))
        cells = [cell for cell in row.columns.values() if isinstance(cell, Cell)]
        timestamps = [cell.timestamp for cell in cells]
        if not row.liveness.is_empty:
            timestamps.append(row.liveness.timestamp)
        stats = EncodingStats(min(timestamps))
        header = SerializationHeader(codec.clustering_lengths, NO_COLUMNS, columns, stats)
        pieces = (lead, write_stats(stats), columns.raw, b"\x01", write_row(row, header), b"\x01")
        parts.append(SingleRowUpdate("row", update.partition_key, pieces))
    return parts


if __name__ == "__main__":
    main()
