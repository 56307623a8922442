"""Proves the ledger: each message of the archived ranges is in exactly one committed file event, and each file has what
its event says.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

import pyarrow.compute as pc
import pyarrow.parquet as pq

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import pyarrow as pa

    from archive.events.file_event import FileEvent
    from archive.records import MadeFile, ShareName
    from stream_runtime.stores.store import Store


_READ = ["_kafka_topic", "_kafka_partition", "_kafka_offset"]


class Verified(NamedTuple):
    """The result of a check."""

    # The number of file events.
    events: int
    # The number of files.
    files: int
    # The number of rows in these files.
    rows: int
    # The number of archived topics.
    topics: int
    # One sentence for each thing that does not fit.
    problems: list[str]


class LedgerCheck:
    """Checks events in their order. It holds the last offsets of each partition and the paths of all files."""

    def __init__(self, store: Store, *, read_rows: bool) -> None:
        """read_rows: read the offset of every row, instead of the files' footers alone."""
        self._store = store
        self._read_rows = read_rows
        self._ends: dict[tuple[str, int], int] = {}
        self._cuts: dict[ShareName, int] = {}
        self._paths: set[str] = set()
        self._problems: list[str] = []
        self._counts: Counter[str] = Counter()
        self._topics: set[str] = set()

    def check(self, events: Iterable[FileEvent]) -> Verified:
        """Check all events."""
        for event in events:
            self._counts["events"] += 1
            self._topics.add(event.name.topic)
            self._problems += self._check_ranges(event)
            self._problems += self._check_counts(event)
            for file in event.files:
                self._counts["files"] += 1
                self._counts["rows"] += file.rows
                self._problems += self._check_file(event, file)
        return Verified(
            self._counts["events"], self._counts["files"], self._counts["rows"], len(self._topics), self._problems
        )

    def _check_ranges(self, event: FileEvent) -> Iterator[str]:
        """Each range begins where the one before ended."""
        name = event.name
        cut = self._cuts.get(name, 0) + 1
        if event.cut != cut:
            yield f"{name.topic} ({name.share}): cut {event.cut} follows cut {cut - 1}"
        self._cuts[name] = event.cut
        for one in event.ranges:
            where = f"{name.topic}-{one.partition}"
            known = self._ends.get((name.topic_id, one.partition))
            if known is not None and one.start != known:
                what = "are missing" if one.start > known else "are there twice"
                first, last = sorted((known, one.start))
                yield f"{where}: the offsets from {first} to {last - 1} {what} (cut {event.cut})"
            if one.end < one.start or one.rows + one.tombstones + one.refused + one.lost > one.end - one.start:
                counts = (
                    f"{one.rows} rows, {one.tombstones} tombstones, {one.refused} refused and {one.lost} lost messages"
                )
                yield f"{where}: {counts} in [{one.start}, {one.end})"
            self._ends[name.topic_id, one.partition] = one.end

    def _check_counts(self, event: FileEvent) -> Iterator[str]:
        """The rows of the ranges are those of the files."""
        planned = sum(one.rows for one in event.ranges)
        rows = sum(file.rows for file in event.files)
        if rows + event.missing != planned or event.missing < 0:
            yield (
                f"{event.name.topic} ({event.name.share}), cut {event.cut}: {planned} rows are planned, {rows} are in "
                f"files, and {event.missing} were compacted away"
            )
        for one in event.ranges:
            found = sum(file.offsets.get(one.partition, (0, 0, 0))[2] for file in event.files)
            if found > one.rows or (not event.missing and found != one.rows):
                yield f"{event.name.topic}-{one.partition}, cut {event.cut}: {found} rows of {one.rows} are in files"

    def _check_file(self, event: FileEvent, file: MadeFile) -> Iterator[str]:
        path = file.planned.path
        if path in self._paths:
            yield f"{path}: two events name it"
        self._paths.add(path)
        size = self._store.size(path)
        if size != file.size:
            yield f"{path}: it is missing" if size is None else f"{path}: it has {size} bytes, not {file.size}"
            return
        ranges = {one.partition: one for one in event.ranges}
        for partition, (first, last, _) in file.offsets.items():
            if partition not in ranges or first < ranges[partition].start or last >= ranges[partition].end:
                yield f"{path}: the offsets {first} to {last} of partition {partition} are not of cut {event.cut}"
        with self._store.open(path) as source:
            parquet = pq.ParquetFile(source)
            if parquet.metadata.num_rows != file.rows:
                yield f"{path}: it has {parquet.metadata.num_rows} rows, not {file.rows}"
            if self._read_rows:
                yield from _check_rows(event, file, parquet.read(columns=_READ))


def _check_rows(event: FileEvent, file: MadeFile, rows: pa.Table) -> Iterator[str]:
    """Each row is of the cut, and there once."""
    path = file.planned.path
    topics = pc.unique(rows.column("_kafka_topic")).to_pylist()
    if topics != [event.name.topic]:
        yield f"{path}: it has rows of {topics}"
    for partition, (first, last, count) in file.offsets.items():
        offsets = rows.filter(pc.equal(rows.column("_kafka_partition"), partition)).column("_kafka_offset")
        found = pc.min_max(offsets)
        if len(offsets) != count or found["min"].as_py() != first or found["max"].as_py() != last:
            yield f"{path}: its rows of partition {partition} are not those of its event"
        if pc.count_distinct(offsets).as_py() != len(offsets):
            yield f"{path}: rows of partition {partition} are there twice"
