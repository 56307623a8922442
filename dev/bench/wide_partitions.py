"""Peak memory and time of what reaches every row of one partition: chunk after chunk, on a real RocksDB state.

    python -m dev.bench.wide_partitions [100000 1000000]

Each case runs in a process of its own, on a copy of the state, and goes the way of a task: fold, encode the changes,
make the changelog's file, apply. Kafka and the checkpoint location are left out. Peak memory is the process's own: the
anonymous pages that it has at most, without the files of RocksDB that the kernel maps for it.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click

from cassandra_storage.formats.rows.clustering import ClusteringBound, Kind
from cassandra_storage.formats.rows.deletion import (
    NO_DELETION_TIME,
    NO_LIVENESS,
    NO_TTL,
    DeletionTime,
    LivenessInfo,
    RangeTombstone,
    RowDeletion,
)
from cassandra_storage.formats.rows.row import Cell, Row
from cassandra_storage.formats.schema.tables import DroppedColumn
from cdc_common.messages.avro.type_forms import EXACT
from cdc_common.messages.envelope import ChangeEncoder
from materializer.fold.chunk import fold_chunk
from materializer.rows.keys import CONTINUATION, SHOWN
from materializer.rows.settings import FoldSettings
from stream_runtime.state import changelog
from stream_runtime.state.changelog import Changelog, Head
from stream_runtime.state.rocksdb import LocalStore, open_local_store
from stream_runtime.state.versions import next_version
from tests.support.materializer.raw_builder import catalog_of, int_bytes, raw_record
from tests.support.materializer.table_writes import BASE_S, BASE_US, FORWARD

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cassandra_storage.formats.schema.tables import TableMetadata
    from cdc_common.messages import raw
    from materializer.records import RawRecord
    from materializer.rows.catalog import TableCatalog

KEY = int_bytes(1)
BATCH = 10_000
TTL = 1000
HOLD_MS = 1_000_000
RULES = FoldSettings(purge_margin_seconds=0)
HOLDING = RULES._replace(reorder_ms=HOLD_MS)
WHOLE = (ClusteringBound(Kind.INCL_START_BOUND, ()), ClusteringBound(Kind.INCL_END_BOUND, ()))


class Done(NamedTuple):
    """The result of folding some records."""

    # The number of chunks.
    chunks: int
    # The number of changes.
    changes: int
    largest: int  # changes of one chunk


def row(c: int, ttl: int = 0, timestamp: int = BASE_US) -> RawRecord:
    end = (BASE_S + ttl, ttl) if ttl else (NO_DELETION_TIME, NO_TTL)
    cells = {name: Cell(timestamp, b"value of %d" % c, *end) for name in ("a", "b")}
    liveness = LivenessInfo(timestamp, ttl, BASE_S + ttl) if ttl else LivenessInfo(timestamp)
    return of("row", Row((int_bytes(c),), cells, liveness), c)


def of(kind: raw.Kind, what: object, offset: int = 0, second: int = BASE_S) -> RawRecord:
    return raw_record(KEY, kind, what, offset=offset, timestamp_ms=second * 1000, writer=FORWARD)


def heartbeat(second: int) -> RawRecord:
    clock = second * 1_000_000
    return raw_record(b"", "heartbeat", None, timestamp_ms=second * 1000, clock=clock, writer=FORWARD)


def tombstone(c: int) -> RawRecord:
    deletion = RowDeletion(DeletionTime(BASE_US, BASE_S))
    return of("row", Row((int_bytes(c),), {}, NO_LIVENESS, deletion), c)


def slice_deletion(c: int) -> RawRecord:
    bounds = (
        ClusteringBound(Kind.INCL_START_BOUND, (int_bytes(c),)),
        ClusteringBound(Kind.INCL_END_BOUND, (int_bytes(c),)),
    )
    return of("range_deletion", RangeTombstone(*bounds, DeletionTime(BASE_US + c % 2, BASE_S)), c)


def static(text: bytes, timestamp: int) -> RawRecord:
    return of("static", Row((), {"st": Cell(timestamp, text)}))


def without_a() -> TableMetadata:
    a, *others = FORWARD.table.regular_columns
    dropped = {"a": DroppedColumn(a, BASE_US + 100)}
    return replace(FORWARD.table, regular_columns=tuple(others), dropped_columns=dropped)


LATER = DeletionTime(BASE_US + 10, BASE_S)
# Which state each begins with, and the record that reaches every row of it.
CASES = {
    "partition delete": ("rows", of("partition_deletion", LATER)),
    "range delete": ("rows", of("range_deletion", RangeTombstone(*WHOLE, LATER))),
    "static update": ("rows", static(b"after", BASE_US + 10)),
    "expiry at one second": ("expiring", heartbeat(BASE_S + TTL + 1)),
    "held writes released": ("held", heartbeat(BASE_S + HOLD_MS // 1000 + 1)),
    "column dropped": ("rows", heartbeat(BASE_S)),
    "purge of tombstones": ("tombstones", heartbeat(BASE_S + 10)),
    "range delete over range tombstones": ("ranges", of("range_deletion", RangeTombstone(*WHOLE, LATER))),
    "partition delete over range tombstones": ("ranges", of("partition_deletion", LATER)),
}
STATES = {
    "rows": row,
    "expiring": lambda c: row(c, TTL),
    "held": row,
    "tombstones": tombstone,
    "ranges": slice_deletion,
}


def fold_all(state: LocalStore, records: Sequence[RawRecord], catalog: TableCatalog, rules: FoldSettings) -> Done:
    """Fold all records as PartitionTask does, without Kafka."""
    encoder = ChangeEncoder(FORWARD.table, "bench", 1, 2, forms=EXACT)
    chunks = total = largest = 0
    while records:
        result = fold_chunk(state, records, catalog, rules)
        for change in result.changes:
            encoder.encode(change)
        head = Head(next_version(state.version), 0, result.now_ms, 1)
        made = changelog.decode(changelog.encode(Changelog(head, state.version, 0, result.writes)))
        if result.writes:
            state.apply(made)
        chunks, total = chunks + 1, total + len(result.changes)
        largest = max(largest, len(result.changes))
        records = records[len(records) - result.left :]
    return Done(chunks, total, largest)


def build(folder: Path, kind: str, rows: int) -> None:
    state = open_local_store(folder)
    catalog = catalog_of(FORWARD.table)
    rules = HOLDING if kind == "held" else RULES
    first = [] if kind == "tombstones" else [static(b"before", BASE_US)]
    for start in range(0, rows, BATCH):
        records = [STATES[kind](c) for c in range(start, min(start + BATCH, rows))]
        fold_all(state, first + records, catalog, rules)
        first = []
    state.close()


def run(folder: Path, case: str) -> Done:
    """The case, and the heartbeats after it until nothing more is due."""
    kind, record = CASES[case]
    state = open_local_store(folder)
    rules = HOLDING if kind == "held" else RULES
    tables = [FORWARD.table, without_a()] if case == "column dropped" else [FORWARD.table]
    catalog = catalog_of(*tables)
    done = fold_all(state, [record], catalog, rules)
    second = record.timestamp_ms // 1000
    while is_due(state, case):
        second += 1
        more = fold_all(state, [heartbeat(second)], catalog, rules)
        done = Done(done.chunks + more.chunks, done.changes + more.changes, max(done.largest, more.largest))
    state.close()
    return done


def is_due(state: LocalStore, case: str) -> bool:
    if state.get(CONTINUATION) is not None:
        return True
    if case == "purge of tombstones":
        return next(state.scan(b"g", b"h"), None) is not None
    return case == "column dropped" and b'"],["' in (state.get(SHOWN) or b"")


class PeakMemory(threading.Thread):
    """The most anonymous memory (MB) that this process has had, looked at every 5 ms."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.before = self.peak = anonymous_mb()
        self.start()

    def run(self) -> None:
        while True:
            self.peak = max(self.peak, anonymous_mb())
            time.sleep(0.005)


def anonymous_mb() -> float:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("RssAnon")) / 1024


def child(folder: str, case: str) -> None:
    memory = PeakMemory()
    started = time.process_time()
    done = run(Path(folder), case)
    seconds = time.process_time() - started
    click.echo(
        f"{done.chunks:7} {done.changes:9} {done.largest:8} {seconds:8.1f} {memory.before:7.0f} {memory.peak:7.0f}"
    )


def main(sizes: Sequence[int]) -> None:
    click.echo(f"{'':40} {'rows':>8} {'chunks':>7} {'changes':>9} {'largest':>8} {'CPU s':>8} {'MB':>7} {'peak MB':>7}")
    with tempfile.TemporaryDirectory() as folder:
        for size in sizes:
            for kind in STATES:
                build(Path(folder, f"{kind}-{size}"), kind, size)
                for case in (case for case, (of_kind, _) in CASES.items() if of_kind == kind):
                    shutil.copytree(Path(folder, f"{kind}-{size}"), Path(folder, "copy"))
                    command = [
                        sys.executable,
                        "-m",
                        "dev.bench.wide_partitions",
                        "--case",
                        str(Path(folder, "copy")),
                        case,
                    ]
                    line = subprocess.run(command, check=True, capture_output=True, text=True).stdout.rstrip()
                    click.echo(f"{case:40} {size:8} {line}")
                    shutil.rmtree(Path(folder, "copy"))
                shutil.rmtree(Path(folder, f"{kind}-{size}"))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--case"]:
        child(*sys.argv[2:])
    else:
        main([int(size) for size in sys.argv[1:]] or [100_000, 1_000_000])
