"""Rows that wait for the end of their cut: in memory up to a bound, then in one file of the worker's disk.

However many files a cut will have, one file is open. It has runs of rows of one file and partition, as Arrow streams.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa

from archive.faults import spill_refused
from archive.writer.rows import FileKey

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from archive.writer.rows import RowBatch


class _Run(NamedTuple):
    """Rows in the spill file."""

    first: int
    end: int


class _Part(NamedTuple):
    key: FileKey
    partition: int


class Spill:
    """The rows of one share's cut, in the order in which they were added. CdcError if the disk refuses."""

    def __init__(self, file: Path, most_bytes: int) -> None:
        """most_bytes: of rows in memory."""
        self.most_bytes = most_bytes
        self.counts: Counter[FileKey] = Counter()
        """The rows by file."""
        self._file = file
        self._waiting: dict[_Part, list[pa.RecordBatch]] = defaultdict(list)
        self._waiting_bytes = 0
        self._runs: dict[_Part, list[_Run]] = defaultdict(list)
        self._sink: pa.NativeFile | None = None

    def add(self, partition: int, batch: RowBatch) -> None:
        """Add rows of a partition."""
        self.counts[batch.key] += len(batch.rows)
        self._waiting[_Part(batch.key, partition)].append(batch.rows)
        self._waiting_bytes += batch.rows.nbytes
        if self._waiting_bytes > self.most_bytes:
            self._flush()

    def read(self, key: FileKey) -> Iterator[tuple[int, pa.RecordBatch]]:
        """The rows of a file with their partitions: partition by partition, each in the order of its offsets."""
        parts = sorted({*self._runs, *self._waiting}, key=lambda part: part.partition)
        for part in [part for part in parts if part.key == key]:
            for run in self._runs.get(part, ()):
                yield from ((part.partition, rows) for rows in self._read_run(run))
            yield from ((part.partition, rows) for rows in self._waiting.get(part, ()))

    def clear(self) -> None:
        """Forget all rows."""
        if self._sink is not None:
            self._sink.close()
            self._sink = None
        with suppress(FileNotFoundError):
            self._file.unlink()
        self.counts.clear()
        self._waiting.clear()
        self._runs.clear()
        self._waiting_bytes = 0

    def _flush(self) -> None:
        try:
            if self._sink is None:
                self._file.parent.mkdir(parents=True, exist_ok=True)
                self._sink = pa.OSFile(str(self._file), "wb")
            for part, batches in self._waiting.items():
                first = self._sink.tell()
                with pa.ipc.new_stream(self._sink, batches[0].schema) as writer:
                    for rows in batches:
                        writer.write_batch(rows)
                self._runs[part].append(_Run(first, self._sink.tell()))
            self._sink.flush()
        except OSError as error:
            raise spill_refused(str(self._file), error) from error
        self._waiting.clear()
        self._waiting_bytes = 0

    def _read_run(self, run: _Run) -> Iterator[pa.RecordBatch]:
        try:
            with pa.OSFile(str(self._file)) as file:
                file.seek(run.first)
                data = file.read_buffer(run.end - run.first)
            with pa.ipc.open_stream(data) as reader:
                yield from reader
        except OSError as error:
            raise spill_refused(str(self._file), error) from error
