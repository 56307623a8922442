"""Cassandra's own SSTableReader of any version in one long-lived JVM, and what it reads compared with what we read,
row by row. `java/SSTableOracle.java` tells the command.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from itertools import chain, islice, zip_longest
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from cassandra_storage.files.sstables import SSTable, verify_digest
from cassandra_storage.formats.errors import FormatError
from cassandra_storage.formats.rows.row import Cell, Row
from dev.verify.oracle.commitlog_oracle import API_OF
from dev.verify.oracle.described import compact, described_marker, described_row
from dev.verify.oracle.java_child import FOLDER, JavaChild
from dev.verify.oracle.judge import KEPT, first_difference, normalised

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from cassandra_storage.files.sstables import SSTableFile
    from cassandra_storage.formats.rows.unfiltered import Unfiltered
    from cassandra_storage.formats.schema.tables import TableMetadata
    from cassandra_storage.formats.sstable.merge import MergedPartition
    from cassandra_storage.formats.sstable.reader import Partition
    from dev.local_stack.servers.cassandra import CassandraNode

_COUNTED = ("sstables", "partitions", "statics", "deletions", "rows", "markers", "cells", "refused", "different")
_TOLD = 600  # characters of a line
END = '{"end":'
ERROR = '{"error":'


class Purge(NamedTuple):
    """The rules by which a compaction purges."""

    # The time of the compaction, in s since the epoch.
    now: int
    # How long a tombstone is kept at least, in s.
    gc_grace_seconds: int
    # Whether only repaired tombstones are purged. None of the SSTables is repaired.
    is_repaired_only: bool = False


class SSTableOracle(JavaChild):
    """A context manager over a stopped node; its lines are JSON."""

    def __init__(self, node: CassandraNode) -> None:
        version = node.version
        conf = node.folder / "conf"
        options = [f"-Dcassandra.config={(conf / 'cassandra.yaml').as_uri()}", "-Xmx512m"]
        options += [f"-Dcassandra.storagedir={node.folder}"]
        options += [f"-Dcassandra-rackdc.properties={(conf / 'cassandra-rackdc.properties').as_uri()}"]
        api = FOLDER / f"api-{API_OF.get(version.line, '4.0')}" / "Api.java"
        sources = [FOLDER / "SSTableOracle.java", FOLDER / "Description.java", api]
        super().__init__(version, sources, options=options, class_path=[conf])

    def __enter__(self) -> Self:
        super().__enter__()
        assert self.answer() == '{"ready":true}'
        return self

    def sstable(self, file: SSTableFile) -> Iterator[str]:
        """Ask SSTableReader for the content: "stats", partitions, rows and markers, and last "end" or "error"."""
        self.send_line(f"sstable\t{file.data_path}")
        return self._lines()

    def merge(self, files: Sequence[SSTableFile], purge: Purge) -> Iterator[str]:
        """Ask for what a compaction would write: partitions, rows and markers, and last "end" or "error"."""
        numbers = purge.now, purge.now - purge.gc_grace_seconds, 0 if purge.is_repaired_only else -1
        self.send_line("\t".join(["merge", *map(str, numbers), *(str(file.data_path) for file in files)]))
        return self._lines()

    def _lines(self) -> Iterator[str]:
        while True:
            line = self.answer()
            yield line
            if line.startswith((END, ERROR)):
                return


@dataclass(slots=True)
class SSTableTally:
    """The counts of a comparison."""

    # The number of SSTables.
    sstables: int = 0
    # The number of Cassandra partitions.
    partitions: int = 0
    # The number of static rows.
    statics: int = 0
    # The number of deletions of whole Cassandra partitions.
    deletions: int = 0
    # The number of rows.
    rows: int = 0
    # The number of range tombstone markers.
    markers: int = 0
    # The number of cells.
    cells: int = 0
    # The number of SSTables that both refuse at the same row.
    refused: int = 0
    # The number of differences.
    different: int = 0
    # The first differences, in words.
    differences: list[str] = field(default_factory=list)
    # The compressors of these SSTables.
    compressors: set[str] = field(default_factory=set)

    def add(self, other: SSTableTally) -> None:
        for name in _COUNTED:
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.differences = (self.differences + other.differences)[:KEPT]
        self.compressors |= other.compressors

    def differ(self, what: str) -> None:
        self.different += 1
        self.differences = [*self.differences, what][:KEPT]

    def __str__(self) -> str:
        told = ", ".join(f"{getattr(self, name):,} {name}" for name in _COUNTED)
        return f"{told}; {', '.join(sorted(self.compressors))}"

    def count(self, row: Row) -> None:
        self.rows += 1
        self.cells += sum(1 if isinstance(data, Cell) else len(data.cells) for data in row.columns.values())


def judge_sstable(said: Iterator[str], file: SSTableFile, table: TableMetadata) -> SSTableTally:
    """`said`: the lines of SSTableOracle.sstable of the same file."""
    tally = SSTableTally(sstables=1)
    compare_lines(_ours(file, table, tally), said, f"{table.qualified_name} {file.descriptor.base}", tally)
    return tally


def compare_lines(ours_said: Iterator[str], said: Iterator[str], where: str, tally: SSTableTally) -> None:
    """The first difference between our lines and Cassandra's, if any, in `tally`."""
    pairs = zip_longest(ours_said, said)
    for number, (ours, theirs) in enumerate(pairs):
        if ours == theirs:
            continue
        if ours is not None and theirs is not None and ours.startswith(ERROR) and theirs.startswith(ERROR):
            tally.refused += 1
            continue
        difference = _difference(ours, theirs)
        if difference:
            told = f"ours {str(ours)[:_TOLD]}, Cassandra's {str(theirs)[:_TOLD]}"
            following = next(pairs, None)
            tally.differ(f"{where}, line {number}: {difference}: {told}; then {str(following)[:_TOLD]}")
            break
    for _ in islice(pairs, None):  # the child says all that it has to say
        pass


def _difference(ours: str | None, theirs: str | None) -> str | None:
    if ours is None or theirs is None:
        return f"ours {ours}, Cassandra's {theirs}"
    our, their = parsed = [_parsed(line) for line in (ours, theirs)]
    for one in parsed:
        rows = [one["row"]] if "row" in one else []
        normalised({"updates": [{"table": "", "rows": rows, "static": one.get("static")}]})
    return first_difference(our, their)


def _parsed(line: str) -> dict[str, Any]:
    said: dict[str, Any] = json.loads(line)
    return said


def _ours(file: SSTableFile, table: TableMetadata, tally: SSTableTally) -> Iterator[str]:
    try:
        verify_digest(file)
        with SSTable(file, table) as sstable:
            tally.compressors.add(sstable.data.compression.compressor if sstable.data.compression else "none")
            yield from chain(_stats(sstable), _partitions(sstable, tally))
    except FormatError as error:
        yield compact({"error": str(error)})
        return
    yield compact({"end": True})


def _stats(sstable: SSTable) -> Iterator[str]:
    stats = sstable.statistics.stats
    said = [stats.min_timestamp, stats.max_timestamp, stats.min_ttl, stats.max_ttl, stats.level, stats.repaired_at]
    yield compact({"stats": [*said, stats.cells, stats.rows, stats.partitions]})


def _partitions(sstable: SSTable, tally: SSTableTally) -> Iterator[str]:
    for partition in sstable.partitions():
        yield from partition_lines(partition, sstable.rows(), tally)


def partition_lines(
    partition: Partition | MergedPartition, unfiltereds: Iterable[Unfiltered], tally: SSTableTally
) -> Iterator[str]:
    """Yield the partition's lines, as Description.partition and Description.unfiltered write them."""
    tally.partitions += 1
    tally.deletions += not partition.deletion.is_live
    static = partition.static_row
    if static is not None:
        tally.statics += 1
        tally.count(static)
    shown = None if static is None else described_row(static)
    yield compact({"key": partition.key.hex(), "deletion": partition.deletion, "static": shown})
    for unfiltered in unfiltereds:
        if isinstance(unfiltered, Row):
            tally.count(unfiltered)
            yield compact({"row": described_row(unfiltered)})
        else:
            tally.markers += 1
            yield compact({"marker": described_marker(unfiltered)})
