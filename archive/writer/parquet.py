"""Makes the Parquet file of a cut from spilled rows, and says what is in it.

The rows of a file and their order follow from the intent alone: partition by partition, each by its offsets.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from archive.records import MadeFile, PlannedFile
from archive.writer.spill import memory_of

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from stream_runtime.stores.store import Store

_GROUP_BYTES = 64 * 1024 * 1024
_OFFSETS = ("_kafka_partition", "_kafka_offset", "_kafka_timestamp", "_event_time")


def write_parquet(target: Path, rows: Iterable[tuple[int, pa.RecordBatch]], group_rows: int) -> int:
    """Write the rows, in groups of this many. Their number; no file without any."""
    writer: pq.ParquetWriter | None = None
    group: list[pa.RecordBatch] = []
    count = waiting = size = 0
    try:
        for _, batch in rows:
            if writer is None:
                writer = pq.ParquetWriter(target, batch.schema, compression="zstd", store_schema=False)
            group.append(batch)
            count += len(batch)
            waiting += len(batch)
            size += memory_of(batch)
            if waiting >= group_rows or size >= _GROUP_BYTES:
                writer.write_table(pa.Table.from_batches(group), row_group_size=group_rows)
                group, waiting, size = [], 0, 0
        if writer is not None and group:
            writer.write_table(pa.Table.from_batches(group), row_group_size=group_rows)
    finally:
        if writer is not None:
            writer.close()
    return count


def describe(store: Store, planned: PlannedFile) -> MadeFile:
    """Describe a stored file by its own footer and its columns of offsets and times."""
    with store.open(planned.path) as source:
        file = pq.ParquetFile(source)
        found = file.read(columns=list(_OFFSETS))
        rows = file.metadata.num_rows
    size = store.size(planned.path)
    assert size is not None
    kafka = found.column("_kafka_timestamp")
    grouped = found.group_by("_kafka_partition").aggregate(
        [("_kafka_offset", "min"), ("_kafka_offset", "max"), ("_kafka_offset", "count")]
    )
    offsets = {
        row["_kafka_partition"]: (row["_kafka_offset_min"], row["_kafka_offset_max"], row["_kafka_offset_count"])
        for row in grouped.to_pylist()
    }
    return MadeFile(
        planned, rows, size, _bounds(found.column("_event_time")), _bounds(kafka), dict(sorted(offsets.items()))
    )


def _bounds(times: pa.ChunkedArray) -> tuple[int, int]:
    found = pc.min_max(times.cast(pa.int64()))
    least, greatest = found["min"].as_py(), found["max"].as_py()
    return (0, 0) if least is None else (least, greatest)
