"""Estimates a snapshot of a table before it begins, by the statistics of its SSTables."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from cassandra_storage.files.native_sstables import native_table
from cassandra_storage.files.sstables import read_statistics
from cassandra_storage.files.table_sstables import table_files
from cdc_common.program.metrics import as_size, as_time

if TYPE_CHECKING:
    from pathlib import Path

    from cassandra_storage.formats.schema.tables import TableMetadata
    from publisher.snapshot.state.records import Record

# Bytes of messages a second, from a core that others use, too: docs/internals/performance.md.
CORE_RATE = 32 << 20
PYTHON_RATE = 1 << 20
# Bytes of a row beside what the SSTable has of it: of its message without the names of its columns, and in the state.
MESSAGE_BYTES = 165
STATE_BYTES = 90
PACKED = 0.3  # the share of its bytes that a raw topic takes on disk: docs/guides/size.md, "How much room"


class Estimate(NamedTuple):
    """The size of a snapshot of the SSTables that are there now."""

    # The number of SSTables.
    files: int
    # Their size.
    file_bytes: int
    # of the rows, uncompressed
    bytes: int
    # The estimated number of Cassandra partitions.
    partitions: int
    # before the merge
    rows: int
    # of the messages
    sent_bytes: int
    # rows sent in a second, if nothing holds them up
    rate: int


def estimate_table(table: TableMetadata, data_directories: list[Path]) -> Estimate:
    """Estimate a snapshot of the table. CdcError as data_directories; FormatError or UnsupportedError for SSTables that
    cannot be read.
    """
    files = table_files(data_directories, table)
    stats = [read_statistics(file).stats for file in files]
    sizes = [file.data_path.stat().st_size for file in files]
    ratios = [stat.compression_ratio if 0 < stat.compression_ratio <= 1 else 1.0 for stat in stats]
    content = round(sum(size / ratio for size, ratio in zip(sizes, ratios, strict=True)))
    rows = sum(stat.rows for stat in stats)
    names = sum(1 + len(column.name.encode()) for column in table.regular_columns)
    return Estimate(
        len(files),
        sum(sizes),
        content,
        sum(stat.partitions for stat in stats),
        rows,
        content + rows * (MESSAGE_BYTES + names),
        PYTHON_RATE if native_table(table) is None else CORE_RATE,
    )


def preflight(record: Record, estimate: Estimate, max_mib_per_second: float) -> list[str]:
    """Describe what will be sent, what that will take, and what to do before."""
    rate = min(max_mib_per_second * (1 << 20) or estimate.rate, estimate.rate)
    sent = estimate.sent_bytes
    others = len(record.hosts) - 1
    stored = f"{estimate.files} SSTables without what a flush adds, {as_size(estimate.file_bytes)} on disk"
    most = f"up to {estimate.partitions:,} partitions and {estimate.rows:,} rows before they are merged"
    what = "every row, static row and deletion that this node stores and owns, merged"
    if record.portion.is_primary:
        what += ", of the ranges that list it as their primary replica in its datacenter"
    if record.portion.tokens:
        tokens = ", ".join(f"{first} to {last}" for first, last in record.portion.tokens)
        what += f", of the tokens {tokens} only (the figures are those of all tokens)"
    duration = f"up to {as_size(sent)} of messages, at {as_size(rate)}/s in {as_time(sent / rate)}"
    raw_topic = (
        f"some {as_size(sent * PACKED)} of the raw topic, for each of its replicas, and about as much of changes"
    )
    state = f"some {as_size(estimate.bytes + STATE_BYTES * estimate.rows)} more, once for all replicas of a row"
    lines = [
        f"snapshot {record.snapshot} of {record.name}",
        f"  on this node  {stored}; {most}",
        f"  sends         {what}; {duration}",
        f"  Kafka's disk  {raw_topic}",
        f"  the state     {state}",
        "  keeps         hard links of the SSTables while it sends; the materializer's tombstones until it ends",
        "  as exact as   this node's replica: run nodetool repair on the table first, if replicas may differ",
    ]
    if others:
        lines.append(
            f"  other nodes   the publishers of {others} more in this datacenter take part within a minute; where one"
            f" does not, run there cassandra-publisher snapshot {record.name} --id {record.snapshot}"
        )
    return lines
