"""`make verify WHAT=oracle-compaction`: the SSTables of random CQL on real nodes, merged by us and by Cassandra.

Cassandra's UnfilteredPartitionIterators.merge and PurgeFunction, which a compaction consists of, and ours have to give
the same rows and markers, with several clocks and gc_grace_seconds. Then our own merge is taken by token ranges, goes
on after random places, and is written as a snapshot's row images and read back: that has to be the same again.

A line a version; the exit status is 1 if anything differed, or too little was compared.
"""

from __future__ import annotations

import json
import random
import sys
import tempfile
import time
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import UUID

from cassandra_storage.files.table_sstables import DamagedTableError, TableSSTables, table_files
from cassandra_storage.formats.merge.purge import Purger
from cassandra_storage.formats.merge.range_merge import with_ranges
from cassandra_storage.formats.primitives.token_ranges import MAXIMUM, MINIMUM, TokenRange, spans
from cassandra_storage.formats.rows.deletion import LIVE, NO_TIMESTAMP
from cassandra_storage.formats.rows.partition import PartitionUpdate
from cassandra_storage.formats.rows.partition_update import SingleRowUpdate
from cassandra_storage.formats.rows.row import Row
from cassandra_storage.formats.sstable.merge import MergePosition
from dev.verify.oracle import merge_rules
from dev.verify.oracle.described import compact, plain
from dev.verify.oracle.judge import first_difference
from dev.verify.oracle.sstable_oracle import (
    END,
    ERROR,
    Purge,
    SSTableOracle,
    SSTableTally,
    compare_lines,
    partition_lines,
)
from dev.verify.oracle.sstable_run import FORMS, make_cluster, write_sstables
from dev.verify.oracle.type_values import KEYSPACE
from dev.verify.oracle.versions import Judged, judge_all, make_parser, print_progress
from publisher.snapshot.rows.messages import MESSAGING_VERSION, RowImages, SnapshotOrigin
from publisher.tables.published_table import PublishedTable
from tests.support.cassandra_storage.split_parts import joined
from tests.support.workload.workload import Workload

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from contextlib import AbstractContextManager

    from cassandra_storage.formats.rows.deletion import RangeTombstone
    from cassandra_storage.formats.rows.partition_update import UpdateKind
    from cassandra_storage.formats.schema.tables import TableMetadata
    from cassandra_storage.formats.sstable.merge import MergedPartition
    from dev.verify.oracle.described import Described

    Report = Callable[[str], None]
    _Held = tuple[MergedPartition, list[Row | RangeTombstone]]

UNITS = 1000  # between flushes, at most
_PARTITION, _ROW, _MARKER = '{"key":', '{"row":', '{"marker":'
_LIVE = list(LIVE)
_NO_CELLS = ",[]]"  # a deletion of a column that has no cells
_COMPLEX = 2  # a column's deletion and cells; a cell has five parts
_YEARS = 315_360_000  # s; all that may expire has
_KINDS: dict[str, UpdateKind] = {
    "snapshot_partition_deletion": "partition_deletion",
    "snapshot_static": "static",
    "snapshot_row": "row",
    "snapshot_range_deletion": "range_deletion",
}
_TIMESTAMPS = 2  # so that versions of a cell often tie
_PLACES = 6  # of each table, after which its merge goes on


def purges(now: int) -> tuple[Purge, ...]:
    """The settings that a table is merged by: what is purged depends on the clock."""
    return Purge(now, 864_000), Purge(now, 0), Purge(now, 0, is_repaired_only=True), Purge(now + _YEARS, 0)


def judge_version(name: str, partitions: int, seed: int, report: Report) -> SSTableTally:
    """Judge at least `partitions` merged partitions of one of FORMS."""
    cluster = make_cluster(name, report)
    line = FORMS[name][0]
    has_negative = line != "5.0-NONE"
    workload = Workload(line, seed, has_negative_partition_deletions=has_negative, timestamps=_TIMESTAMPS)
    total = SSTableTally()
    with tempfile.TemporaryDirectory(prefix="oracle-") as folder:
        try:
            rounds = 0
            while total.partitions < partitions:
                tables = write_sstables(cluster, workload, rounds, UNITS, Path(folder), compacts=False)
                rounds += 1
                tally = SSTableTally()
                now = int(time.time())
                with SSTableOracle(cluster.nodes[0]) as oracle:
                    for table in tables.values():
                        if table.keyspace == KEYSPACE and not table.is_view:
                            tally.add(judge_table(oracle, cluster.nodes[0].folder / "data", table, now, line))
                report(f"{time.strftime('%H:%M:%S')} {name}, round {rounds}: {tally}")
                total.add(tally)
        finally:
            cluster.close(keep=sys.exc_info()[0] is not None)
    return total


def judge_table(oracle: SSTableOracle, data: Path, table: TableMetadata, now: int, line: str) -> SSTableTally:
    """Its SSTables merged in each way."""
    files = table_files([data], table)
    total = SSTableTally(sstables=len(files))
    if not files:
        return total
    for purge in purges(now):
        tally = SSTableTally()
        rules: AbstractContextManager[object] = nullcontext()
        if line == "3.11":
            rules = merge_rules.of_3_11(purge.now)
        with rules:
            ours = _ours(TableSSTables(table, files), purge, tally)
            theirs = without_nothing(oracle.merge(files, purge))
            compare_lines(ours, theirs, f"{table.qualified_name} {purge}", tally)
        total.add(tally)
    sstables = TableSSTables(table, files)
    _check_parts(sstables, sstables.purger(now), random.Random(now), total)
    return total


def without_nothing(said: Iterator[str]) -> Iterator[str]:
    """Cassandra's lines without what says nothing, which it keeps where only one SSTable has a partition: ranges under
    a partition deletion that is as new (3.11), deletions of rows and columns under a deletion that is as new
    (BTreeRow.filter leaves out only older ones), and otherwise empty rows.
    """
    deletion: list[int] = []
    active: list[int] = []
    held: str | None = None
    for line in said:
        if line.startswith(_PARTITION):
            partition = json.loads(line)
            active = deletion = partition["deletion"]
            if partition["static"] is not None:
                partition["static"] = _without_old_deletions(partition["static"], deletion)
            held = compact(partition)
            if partition["static"] is not None or deletion != _LIVE:
                yield held
                held = None
            continue
        shown: str | None = line
        if line.startswith(_MARKER):
            close, open_ = (None if end is None or end[1] <= deletion else end for end in json.loads(line)["marker"])
            active = open_[1] if open_ else deletion
            shown = compact({"marker": [close, open_]}) if close or open_ else None
        elif line.startswith(_ROW) and (active != _LIVE or _NO_CELLS in line):
            row = _without_old_deletions(json.loads(line)["row"], active)
            shown = None if row is None else compact({"row": row})
        if shown is None:
            continue
        if held is not None and not line.startswith((END, ERROR)):
            yield held
        held = None
        yield shown


def _without_old_deletions(row: Described, active: list[int]) -> Described | None:
    """The row without deletions that are not newer than `active`, or than its own; None if nothing is left."""
    deletion = active
    if active != _LIVE:
        deletion = max(active, row["deletion"][0])
        if row["deletion"][0] <= active:
            row["deletion"] = [_LIVE, False]
    for name, data in list(row["columns"].items()):
        if len(data) == _COMPLEX and data[0] <= deletion:
            data[0] = _LIVE
            if not data[1]:
                del row["columns"][name]
    is_empty = not row["columns"] and row["liveness"][0] == NO_TIMESTAMP and row["deletion"][0] == _LIVE
    return None if is_empty else row


def _ours(sstables: TableSSTables, purge: Purge, tally: SSTableTally) -> Iterator[str]:
    oldest = 0 if purge.is_repaired_only else None
    purger = Purger(purge.now, purge.gc_grace_seconds, oldest_unrepaired=oldest)
    try:
        for partition in sstables.merged(purger):
            yield from partition_lines(partition, partition.unfiltereds, tally)
    except DamagedTableError as error:
        yield compact({"error": str(error)})
        return
    yield compact({"end": True})


def _check_parts(sstables: TableSSTables, purger: Purger, rng: random.Random, tally: SSTableTally) -> None:
    """The merge by ranges of tokens, after places, and as row images, against all of it at once."""
    name = sstables.table.qualified_name
    whole = [_held(partition) for partition in sstables.merged(purger)]
    tokens = [MINIMUM, MAXIMUM, *(partition.token for partition, _ in whole)]
    for _ in range(_PLACES):
        ranges = [TokenRange(rng.choice(tokens), rng.choice(tokens)) for _ in range(rng.randint(1, 3))]
        wanted = spans(ranges)
        expected = [
            partition for partition in whole if any(span.first <= partition[0].token <= span.last for span in wanted)
        ]
        _agree([_held(merged) for merged in sstables.merged(purger, ranges)], expected, f"{name} in {ranges}", tally)
    for _ in range(_PLACES if whole else 0):
        number = rng.randrange(len(whole))
        partition, parts = whole[number]
        place, rest = MergePosition(partition.token, partition.key), []
        rows = [index for index, part in enumerate(parts) if isinstance(part, Row) and sstables.table.clustering]
        if rows:
            index = rng.choice(rows)
            place = place._replace(clustering=parts[index].clustering)  # type: ignore[union-attr]
            if parts[index + 1 :] or partition.static_row is not None or not partition.deletion.is_live:
                rest = [(partition, parts[index + 1 :])]
        found = [_held(merged) for merged in sstables.merged(purger, after=place)]
        _agree(found, rest + whole[number + 1 :], f"{name} after {place}", tally)
    _check_images(sstables.table, whole, tally)


def _check_images(table: TableMetadata, whole: list[_Held], tally: SSTableTally) -> None:
    """Check that a snapshot's messages of each partition say the same."""
    images = RowImages(PublishedTable(table, table.id.bytes, b""), SnapshotOrigin(UUID(int=1), bytes(16), 1))
    for partition, parts in whole:
        units = images.partition(partition.key, partition.deletion, partition.static_row, parts)
        updates = [
            SingleRowUpdate(_KINDS[sent.message.kind], partition.key, (sent.message.update,))
            for unit in units
            for sent in unit
        ]
        found = joined(updates, table, partition.key, MESSAGING_VERSION)
        expected = PartitionUpdate(
            table,
            partition.key,
            partition.deletion,
            partition.static_row,
            tuple(part for part in parts if isinstance(part, Row)),
            tuple(part for part in parts if not isinstance(part, Row)),
        )
        if found != expected:
            ours, wanted = plain([found, expected])
            difference = first_difference(ours, wanted)
            tally.differ(f"{table.qualified_name} 0x{partition.key.hex()} as row images: {difference}")


def _held(partition: MergedPartition) -> _Held:
    """The partition before its rows, and its rows and ranges."""
    parts = list(with_ranges(partition.unfiltereds))
    return partition._replace(unfiltereds=iter(())), parts  # type: ignore[return-value]


def _agree(found: list[_Held], expected: list[_Held], where: str, tally: SSTableTally) -> None:
    ours, whole = ([(partition[:4], parts) for partition, parts in partitions] for partitions in (found, expected))
    if ours != whole:
        tally.differ(
            f"{where}: {len(ours)} partitions, {str(ours)[:400]}, in place of {len(whole)}, {str(whole)[:400]}"
        )


def main(arguments: Sequence[str] | None = None) -> int:
    parser = make_parser("dev.verify.oracle.compaction_run", __doc__, FORMS, "partitions", 20_000)
    options = parser.parse_args(arguments)

    def judge(name: str) -> Judged:
        tally = judge_version(name, options.partitions, options.seed, print_progress)
        is_good = not tally.different and tally.partitions >= options.partitions
        return Judged(str(tally), tally.differences, is_good)

    return judge_all(options.versions, judge)


if __name__ == "__main__":
    sys.exit(main())
