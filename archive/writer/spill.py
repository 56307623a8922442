"""Rows that wait for the end of their cut: in memory up to a bound, then in one file of the worker's disk.

However many files a cut will have, one file is open. Rows stay in the batches in which they were read: a batch of one
row takes a hundred times the memory of its values. They are divided by the files of the cut, all at once, when they go
to disk or when they are read. The spill file has runs of rows of one file and one partition, each without its schema.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from archive.faults import spill_refused
from archive.writer.rows import FileKey, RowBatch, RowKey

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path


_ARRAY_BYTES = 768  # of memory that an array of a batch takes beside its values (measured)


class _Run(NamedTuple):
    """Rows of a file in the spill file."""

    # The partition that they are of.
    partition: int
    # Where they begin in the spill file.
    first: int
    # Where they end.
    end: int


class _Waiting(NamedTuple):
    """Rows in memory, as they were read."""

    # The partition that they are of.
    partition: int
    # The rows, and the bucket of each.
    batch: RowBatch


class Spill:
    """The rows of one share's cut, in the order in which they were added. CdcError if the disk refuses."""

    def __init__(self, file: Path, most_bytes: int) -> None:
        """most_bytes: of rows in memory."""
        self.most_bytes = most_bytes
        self.counts: Counter[FileKey] = Counter()
        """The rows by file."""
        self._file = file
        self._waiting: dict[RowKey, list[_Waiting]] = defaultdict(list)
        self._waiting_bytes = 0
        self._schemas: dict[RowKey, pa.Schema] = {}
        self._runs: dict[FileKey, list[_Run]] = defaultdict(list)
        self._divided: dict[FileKey, list[tuple[int, pa.RecordBatch]]] = defaultdict(list)
        self._sink: pa.NativeFile | None = None

    def add(self, partition: int, batch: RowBatch) -> None:
        """Add rows of a partition."""
        for found in pc.value_counts(batch.buckets).to_pylist():
            self.counts[FileKey(*batch.key, found["values"])] += found["counts"]
        self._waiting[batch.key].append(_Waiting(partition, batch))
        self._schemas.setdefault(batch.key, batch.rows.schema)
        self._waiting_bytes += memory_of(batch.rows)
        if self._waiting_bytes > self.most_bytes:
            self._flush()

    def read(self, key: FileKey) -> Iterator[tuple[int, pa.RecordBatch]]:
        """The rows of a file with their partitions: partition by partition, each in the order of its offsets."""
        for file, partition, rows in self._take_waiting():
            self._divided[file].append((partition, rows))
        runs, divided = self._runs.get(key, []), self._divided.get(key, [])
        for partition in sorted({run.partition for run in runs} | {of for of, _ in divided}):
            yield from ((partition, self._read_run(key, run)) for run in runs if run.partition == partition)
            yield from ((partition, rows) for of, rows in divided if of == partition)

    def clear(self) -> None:
        """Forget all rows."""
        if self._sink is not None:
            self._sink.close()
            self._sink = None
        with suppress(FileNotFoundError):
            self._file.unlink()
        self.counts.clear()
        self._waiting.clear()
        self._divided.clear()
        self._runs.clear()
        self._schemas.clear()
        self._waiting_bytes = 0

    def _take_waiting(self) -> Iterator[tuple[FileKey, int, pa.RecordBatch]]:
        """Take the waiting rows out, divided by file and partition, each part in the order of its offsets."""
        taken, self._waiting, self._waiting_bytes = self._waiting, defaultdict(list), 0
        for key, waiting in taken.items():
            for bucket, partition, rows in _divided(waiting):
                yield FileKey(*key, bucket), partition, rows

    def _flush(self) -> None:
        try:
            if self._sink is None:
                self._file.parent.mkdir(parents=True, exist_ok=True)
                self._sink = pa.OSFile(str(self._file), "wb")
            for key, partition, rows in self._take_waiting():
                first = self._sink.tell()
                self._sink.write(rows.serialize())
                self._runs[key].append(_Run(partition, first, self._sink.tell()))
            self._sink.flush()
        except OSError as error:
            raise spill_refused(str(self._file), error) from error

    def _read_run(self, key: FileKey, run: _Run) -> pa.RecordBatch:
        try:
            with pa.OSFile(str(self._file)) as file:
                file.seek(run.first)
                return pa.ipc.read_record_batch(file.read_buffer(run.end - run.first), self._schemas[key.rows])
        except OSError as error:
            raise spill_refused(str(self._file), error) from error


def memory_of(rows: pa.RecordBatch) -> int:
    """The memory that a batch takes, beside the objects of Python."""
    return int(rows.nbytes) + _ARRAY_BYTES * _arrays_of(rows.schema)


def _arrays_of(fields: Iterable[pa.Field]) -> int:
    return sum(1 + _arrays_of(_inner(field.type)) for field in fields)


def _inner(kind: pa.DataType) -> list[pa.Field]:
    return [kind.field(number) for number in range(kind.num_fields)]


def _divided(waiting: list[_Waiting]) -> Iterator[tuple[int, int, pa.RecordBatch]]:
    """The rows of each bucket and partition."""
    ordered = sorted(waiting, key=lambda one: one.partition)  # stable: offsets stay in their order
    rows = pa.concat_batches([one.batch.rows for one in ordered])
    buckets = pa.concat_arrays([one.batch.buckets for one in ordered])
    partitions = pa.concat_arrays(
        [pa.repeat(pa.scalar(one.partition, pa.int32()), len(one.batch.rows)) for one in ordered]
    )
    if len(pc.unique(buckets)) > 1:
        order = pc.array_sort_indices(buckets)  # stable, too
        rows, buckets, partitions = rows.take(order), buckets.take(order), partitions.take(order)
    first = 0
    for end in _ends(buckets, partitions):
        yield buckets[first].as_py(), partitions[first].as_py(), rows.slice(first, end - first)
        first = end


def _ends(buckets: pa.Array, partitions: pa.Array) -> list[int]:
    """The places after which another bucket or partition begins, and the end."""
    is_other = pc.or_(
        pc.not_equal(buckets.slice(1), buckets.slice(0, len(buckets) - 1)),
        pc.not_equal(partitions.slice(1), partitions.slice(0, len(partitions) - 1)),
    )
    return [*(place + 1 for place in pc.indices_nonzero(is_other).to_pylist()), len(buckets)]
