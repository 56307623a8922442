"""Rows that wait for the end of their cut, divided by files."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from archive.writer.rows import FileKey, RowBatch, RowKey
from archive.writer.spill import Spill
from dev.local_stack.process.paths import project_root

if TYPE_CHECKING:
    from pathlib import Path

AVRO, BYTES = RowKey("avro", 7, 1), RowKey("bytes", None, 1)
MOST_BYTES = 300_000_000


def batch(key: RowKey, offsets: list[int], buckets: list[int]) -> RowBatch:
    rows = pa.record_batch({"offset": pa.array(offsets, pa.int64()), "text": [f"row {at}" for at in offsets]})
    return RowBatch(key, pa.array(buckets, pa.int64()), rows)


@pytest.mark.parametrize("most_bytes", [0, 6000, 10**9], ids=["all on disk", "some", "none"])
def test_rows_come_by_partition_and_offset(tmp_path: Path, most_bytes: int) -> None:
    spill = Spill(tmp_path / "spool" / "rows", most_bytes)
    wanted: dict[FileKey, list[tuple[int, int]]] = {}
    for number in range(40):
        partition, key = number % 3, AVRO if number % 4 else BYTES
        offsets = [number * 10, number * 10 + 1, number * 10 + 2]
        buckets = [-1, 5 + number % 5, -1]
        spill.add(partition, batch(key, offsets, buckets))
        for offset, bucket in zip(offsets, buckets, strict=True):
            wanted.setdefault(FileKey(*key, bucket), []).append((partition, offset))
    assert spill.counts == {file: len(rows) for file, rows in wanted.items()}
    for file in [*wanted, *wanted]:
        read = [
            (partition, row["offset"], row["text"]) for partition, rows in spill.read(file) for row in rows.to_pylist()
        ]
        assert read == [(partition, at, f"row {at}") for partition, at in sorted(wanted[file])]
    assert len(list(tmp_path.rglob("rows"))) == (most_bytes < 10**9)
    spill.clear()
    assert list(spill.read(FileKey(*AVRO, -1))) == []
    assert list(tmp_path.rglob("rows")) == []


def test_small_batches_count_with_the_memory_that_they_take(tmp_path: Path) -> None:
    spill = Spill(tmp_path / "rows", 100_000)
    for number in range(100):
        spill.add(0, batch(AVRO, [number], [0]))
    assert (tmp_path / "rows").exists(), "its values alone are 2,000 bytes"


@pytest.mark.exhaustive
def test_a_worker_with_many_open_hours(tmp_path: Path) -> None:
    """72 partitions in 9 shares, each with 200 hours."""
    command = [sys.executable, "-m", "tests.support.archive.many_buckets", str(tmp_path)]
    done = subprocess.run(command, cwd=project_root(), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) < MOST_BYTES
