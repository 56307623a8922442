"""A worker whose shares have many partitions and many open hours: `python -m … FOLDER` prints its peak memory (bytes).

The messages of each partition are spread over all hours, as in a backlog that is sent again, so that a batch of 1,000
messages has rows of each hour.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from archive.settings import ArchiveSettings
from cdc_native.kafka.source_batch import SourceBatch as NativeBatch
from stream_runtime.source_batch import SourceBatch
from tests.support.archive.scene import NOW_MS, Archive, Stored, Topic

if TYPE_CHECKING:
    from stream_runtime.records import SourcePartition

SHARES = 9
PARTITIONS = 8  # of a share: 72 together
HOURS = 200
AT_ONCE = 1000
MESSAGES = 5000  # of a partition


class ManyHours(Topic):
    """A topic whose messages are made as they are read."""

    def __init__(self) -> None:
        super().__init__(PARTITIONS)
        self.ends = [MESSAGES] * PARTITIONS
        self._values = [self._value(number) for number in range(HOURS)]

    def _value(self, hour: int) -> bytes:
        source = {"ts_us": NOW_MS * 1000 - hour * 3_600_000_000, "row_sequence": hour}
        after = {"id": hour, "name": f"a name of some length {hour}"}
        return self.encode(7, {"op": "u", "before": after, "after": after, "source": source, "ts_ms": NOW_MS})

    def read(self, at: SourcePartition, first: int, most: int) -> tuple[SourceBatch | None, int]:
        end = min(first + most, self.ends[at.partition])
        if end == first:
            return None, end
        found: list[Stored] = [(b"k", self._values[number % HOURS], number, NOW_MS) for number in range(first, end)]
        return SourceBatch(NativeBatch.of(*at, found)), end


def peak_bytes() -> int:
    """The most memory that this process has had."""
    found = re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())
    assert found is not None
    return int(found[1]) * 1024


def main(folder: str) -> None:
    """Open all shares, read them in turns, and commit their cuts."""
    topic = ManyHours()
    archives = [Archive(topic, Path(folder) / str(number)) for number in range(SHARES)]
    buffer_bytes = ArchiveSettings.model_fields["buffer_bytes"].default
    for archive in archives:
        archive.spill_bytes = buffer_bytes // SHARES
        archive.chunk = AT_ONCE
        archive.cut(rows=MESSAGES * PARTITIONS)
    tasks = [archive.open() for archive in archives]
    offsets = [dict(task.offsets) for task in tasks]
    for _ in range(MESSAGES // AT_ONCE):
        for archive, task, at in zip(archives, tasks, offsets, strict=True):
            archive.poll(task, at)
    files = sum(len(event.files) for archive in archives for event in archive.events())
    rows = sum(file.rows for archive in archives for event in archive.events() for file in event.files)
    assert (files, rows) == (SHARES * HOURS, SHARES * PARTITIONS * MESSAGES)
    sys.stdout.write(f"{peak_bytes()}\n")


if __name__ == "__main__":
    main(sys.argv[1])
