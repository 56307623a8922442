"""Makes docs/example-segment from the vector of Cassandra 5.0: `python -m tests.support.vectors.make_example`.

The first segment of a real node, from its start to a section's end: from there on its bytes are left out, as the end of
the file ends a segment like a zero marker does.
"""

from __future__ import annotations

import json

from cassandra_storage.formats.commitlog.segment import CommitLogEntry, SegmentReader
from cdc_common.messages import tables as table_messages
from dev.local_stack.process.paths import project_root
from tests.support.vectors.load import load

FOLDER = project_root() / "docs" / "example-segment"
KEYSPACE = "vectors"
LAST_TABLE = "counters"  # its updates are followed by large values


def section_ends(name: str, data: bytes) -> list[int]:
    """The offset after each section."""
    reader = SegmentReader(name)
    ends: list[int] = []
    while True:
        before = reader.sections
        for _ in reader.read(data[reader.position : reader.position + reader.wanted], len(data)):
            pass
        if reader.is_ended:
            return ends
        if reader.sections > before:
            ends.append(int.from_bytes(data[reader.position - 8 : reader.position - 4], "big"))


def main() -> None:
    vectors = load("5.0")
    segment, table_id = vectors.segments[0], vectors.table(LAST_TABLE).id.bytes
    last = max(
        event.end_position
        for event in SegmentReader(segment.name).read(segment.data, len(segment.data))
        if isinstance(event, CommitLogEntry) and event.mutation[1:17] == table_id
    )
    end = min(end for end in section_ends(segment.name, segment.data) if end >= last)
    (FOLDER / segment.name).write_bytes(segment.data[:end])
    entries = [
        {"cdc": table.cdc, "table": table_messages.to_json(table).decode()}
        for table in vectors.tables.values()
        if table.keyspace == KEYSPACE
    ]
    (FOLDER / "schema.json").write_text(json.dumps({"format_version": 1, "tables": entries}, indent=1) + "\n")


if __name__ == "__main__":
    main()
