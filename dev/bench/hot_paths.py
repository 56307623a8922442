"""CPU seconds per million of the steps that every write passes, on mutations that a real Cassandra 5.0 logged.

The peer is fastavro's compiled reader and writer on the same raw messages in the same run: its figure says how fast the
machine was, and the ratio to it can be compared from run to run. No servers, no disk: what is measured is our code.
"""

from __future__ import annotations

import statistics
import time
from collections import defaultdict
from functools import partial
from typing import TYPE_CHECKING

import click

from cassandra_storage.formats.primitives.vint import read_unsigned_vint
from cassandra_storage.formats.rows.mutation import split_mutation
from cassandra_storage.formats.versions import VERSION_40
from cdc_common.messages import raw
from cdc_common.messages.avro.type_forms import EXACT
from cdc_common.messages.envelope import ChangeEncoder
from cdc_common.messages.tables import canonical, digest
from materializer.fold.chunk import fold_chunk
from materializer.records import RawRecord
from materializer.rows.catalog import TableCatalog
from tests.support.materializer.memory_state import MemoryState
from tests.support.vectors.load import load

if TYPE_CHECKING:
    from collections.abc import Callable

    from cassandra_storage.formats.rows.partition_update import SingleRowUpdate
    from cassandra_storage.formats.schema.tables import TableMetadata
    from cdc_common.messages.changes import RowChange
    from materializer.fold.result import ChunkResult
    from tests.support.vectors.load import Segment

ROUNDS = 5
PUBLISHER = bytes(16)
SCHEMA_ID = 1
Tables = dict[bytes, "TableMetadata"]


def main() -> None:
    vectors = load("5.0")
    tables = {table_id: table for table_id, table in vectors.tables.items() if table.keyspace == "vectors"}
    segments = vectors.segments
    mutations = [entry.mutation for segment in segments for entry in segment.entries()]
    mutations = [mutation for mutation in mutations if mutation_tables(mutation, vectors.tables) <= tables.keys()]
    messages = [message for mutation in mutations for message in raw_messages(mutation, tables)]
    encoded = [raw.encode(message, SCHEMA_ID) for message in messages]
    records = by_table(messages, encoded)
    changes = {table_id: fold(tables[table_id], of).changes for table_id, of in records.items()}

    peer = measure("fastavro: raw messages read and written (the peer)", len(messages), partial(round_trip, encoded))
    steps: list[tuple[str, int, Callable[[], object]]] = [
        ("commit log walked, checksums included", count_entries(segments), lambda: [s.entries() for s in segments]),
        ("mutations split", len(mutations), lambda: split_all(mutations, tables)),
        ("raw messages folded", len(messages), lambda: [fold(tables[of], records[of]) for of in records]),
        ("changes encoded", sum(map(len, changes.values())), lambda: encode_changes(tables, changes)),
    ]
    for name, count, step in steps:
        seconds = measure(name, count, step)
        click.echo(f"{'':52}{seconds / peer:8.2f} times the peer")


def measure(name: str, count: int, step: Callable[[], object]) -> float:
    """CPU seconds per million; prints the median of the rounds and their spread."""
    rounds = []
    for _ in range(ROUNDS):
        started = time.process_time()
        step()
        rounds.append((time.process_time() - started) / count * 1e6)
    median = statistics.median(rounds)
    click.echo(f"{name:52}{median:8.2f} CPU-s per million ({min(rounds):.2f} to {max(rounds):.2f}; {count} of them)")
    return median


def mutation_tables(mutation: bytes, tables: Tables) -> set[bytes]:
    return {table.id.bytes for table, _ in split_mutation(mutation, VERSION_40, tables)}


def split_all(mutations: list[bytes], tables: Tables) -> None:
    for mutation in mutations:
        for _, parts in split_mutation(mutation, VERSION_40, tables):
            for part in parts:
                part.update  # noqa: B018  it is made here


def raw_messages(mutation: bytes, tables: Tables) -> list[raw.RawMessage]:
    return [
        raw_message(update, table)
        for table, updates in split_mutation(mutation, VERSION_40, tables)
        for update in updates
    ]


def raw_message(update: SingleRowUpdate, table: TableMetadata) -> raw.RawMessage:
    return raw.RawMessage(
        kind=update.kind,
        update=update.update,
        messaging_version=VERSION_40,
        table_id=table.id.bytes,
        schema_digest=digest(canonical(table)),
        truncation_epoch=0,
        host_id=PUBLISHER,
        segment=1,
        file="CommitLog-7-1.log",
        position=0,
        index=0,
    )


def by_table(messages: list[raw.RawMessage], encoded: list[bytes]) -> dict[bytes, list[RawRecord]]:
    records: dict[bytes, list[RawRecord]] = defaultdict(list)
    for message, value in zip(messages, encoded, strict=True):
        of = records[message.table_id]
        length, start = read_unsigned_vint(message.update, 16)  # after the table's id
        of.append(RawRecord(message.update[start : start + length], value, len(of), 0))
    return records


def fold(table: TableMetadata, records: list[RawRecord]) -> ChunkResult:
    key = digest(canonical(table))
    catalog = TableCatalog({(table.id.bytes, key): table}, {table.id.bytes: key})
    return fold_chunk(MemoryState(), records, catalog)


def encode_changes(tables: Tables, changes: dict[bytes, list[RowChange]]) -> None:
    for table_id, of in changes.items():
        encoder = ChangeEncoder(tables[table_id], "cdc", SCHEMA_ID, SCHEMA_ID, forms=EXACT)
        for change in of:
            encoder.encode(change)


def round_trip(encoded: list[bytes]) -> None:
    for value in encoded:
        raw.encode(raw.decode(value), SCHEMA_ID)


def count_entries(segments: list[Segment]) -> int:
    return sum(len(segment.entries()) for segment in segments)


if __name__ == "__main__":
    main()
