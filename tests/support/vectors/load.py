"""The vectors as the readers take them: segments' bytes, tables by id, and what SELECT said."""

from __future__ import annotations

import gzip
import json
from datetime import datetime
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple
from uuid import UUID

from cassandra_storage.formats.commitlog.descriptor import CdcIndex, index_file_name, parse_cdc_index
from cassandra_storage.formats.commitlog.segment import CommitLogEntry, SegmentReader
from cassandra_storage.formats.schema.schema_rows import tables_from_rows
from cassandra_storage.formats.schema.tables import TableMetadata
from dev.local_stack.process.paths import project_root

if TYPE_CHECKING:
    from collections.abc import Mapping


FOLDER = project_root() / "tests" / "vectors"
VERSIONS = sorted(path.name for path in FOLDER.iterdir() if (path / "expected.json").exists())


class Segment(NamedTuple):
    name: str
    data: bytes
    cdc_index: CdcIndex

    @property
    def length(self) -> int | None:
        """Return the length that SegmentReader.read takes; None for a segment that is not completed."""
        return len(self.data) if self.cdc_index.is_completed else None

    @property
    def durable(self) -> bytes:
        return self.data if self.cdc_index.is_completed else self.data[: self.cdc_index.offset]

    def entries(self) -> list[CommitLogEntry]:
        events = list(SegmentReader(self.name).read(self.durable, self.length))
        entries = [event for event in events if isinstance(event, CommitLogEntry)]
        assert len(entries) == len(events)
        return entries


class Vectors(NamedTuple):
    """`select`: {table: {"columns": …, "rows": hex of the values}} at `now` (s since the epoch)."""

    tables: dict[bytes, TableMetadata]
    segments: list[Segment]
    now: int
    select: dict[str, Any]

    def table(self, name: str) -> TableMetadata:
        (found,) = (table for table in self.tables.values() if table.name == name)
        return found


@cache
def load(version: str) -> Vectors:
    folder = FOLDER / version
    expected = json.loads((folder / "expected.json").read_text())
    segments = []
    for path in sorted(folder.glob("*.log.gz")):
        name = path.name.removesuffix(".gz")
        index_file = folder / index_file_name(name)
        index = parse_cdc_index(index_file.read_bytes()) if index_file.exists() else None
        if index is not None:
            segments.append(Segment(name, gzip.decompress(path.read_bytes()), index))
    return Vectors(tables_of(expected["schema"]), segments, expected["now"], expected["select"])


def tables_of(schema: Mapping[str, list[dict[str, Any]]]) -> dict[bytes, TableMetadata]:
    """Tables by the bytes of their id, from rows of system_schema as JSON holds them."""
    rows = {name: [dict(row) for row in table] for name, table in schema.items()}
    for row in rows["tables"] + rows["views"]:
        row["id"] = UUID(row["id"])
    for row in rows["dropped_columns"]:
        row["dropped_time"] = datetime.fromisoformat(row["dropped_time"])
    return {table_id.bytes: table for table_id, table in tables_from_rows(**rows).items()}
