"""A file event: the files that hold a range of offsets of each partition of a share, in JSON (docs/guides/archive.md).

It is committed in one transaction with the offsets, so offsets move only with an event. An event may have no file.
"""

from __future__ import annotations

import json
from typing import Any, NamedTuple

from archive.records import Bucket, Layout, MadeFile, PlannedFile, Range, Refused, ShareName

FORMAT_VERSION = 1


class FileEvent(NamedTuple):
    """The files of a cut."""

    # The topic and the share.
    name: ShareName
    # The number of the cut: 1 for the share's first.
    cut: int
    # The messages of each partition, as planned: the rows of a range are those that were read first.
    ranges: tuple[Range, ...]
    # The table's name, with its namespace.
    table: str
    # The layout of the files: `iceberg` or `hive`.
    layout: Layout
    # The time that a file covers: `hour` or `day`.
    bucket: Bucket
    # The stored files.
    files: tuple[MadeFile, ...]
    # The number of planned rows that compaction of the topic has removed before a retry read them.
    missing: int
    # The first messages that are in no file because they are not of their schema. The ranges count all of them.
    refused: tuple[Refused, ...] = ()

    @property
    def key(self) -> bytes:
        """The key of its message: all events of a share are in one partition, in their order."""
        return f"{self.name.topic_id}/{self.name.share}".encode()

    def encode(self) -> bytes:
        fields = {
            "format": FORMAT_VERSION,
            **self.name._asdict(),
            "cut": self.cut,
            "partitions": [one._asdict() for one in self.ranges],
            "table": self.table,
            "layout": self.layout,
            "bucket": self.bucket,
            "files": [_file_json(file) for file in self.files],
            "missing": self.missing,
            "refused": [one._asdict() for one in self.refused],
        }
        return json.dumps(fields, ensure_ascii=False, separators=(",", ":")).encode()

    @classmethod
    def decode(cls, value: bytes) -> FileEvent:
        """The event of a message. ValueError, KeyError or TypeError if it is none."""
        stored = json.loads(value)
        if stored["format"] != FORMAT_VERSION:
            raise ValueError(f"format {stored['format']}")
        return cls(
            ShareName(stored["topic"], stored["topic_id"], stored["share"]),
            int(stored["cut"]),
            tuple(Range(**one) for one in stored["partitions"]),
            stored["table"],
            stored["layout"],
            stored["bucket"],
            tuple(map(_file_of, stored["files"])),
            int(stored["missing"]),
            tuple(Refused(**one) for one in stored["refused"]),
        )


def _file_json(file: MadeFile) -> dict[str, Any]:
    planned = file.planned
    return {
        "path": planned.path,
        "format": "parquet",
        "form": planned.form,
        "schema_id": planned.schema_id,
        "schema_version": planned.version,
        "bucket": planned.bucket,
        "planned_rows": planned.rows,
        "rows": file.rows,
        "bytes": file.size,
        "event_time_us": list(file.event_time_us),
        "kafka_time_us": list(file.kafka_time_us),
        "offsets": {str(partition): list(found) for partition, found in file.offsets.items()},
    }


def _file_of(stored: dict[str, Any]) -> MadeFile:
    planned = PlannedFile(
        stored["path"],
        stored["form"],
        stored["schema_id"],
        stored["schema_version"],
        stored["bucket"],
        stored["planned_rows"],
    )
    least, greatest = stored["event_time_us"]
    first, last = stored["kafka_time_us"]
    offsets = {int(partition): (low, high, rows) for partition, (low, high, rows) in stored["offsets"].items()}
    return MadeFile(planned, stored["rows"], stored["bytes"], (least, greatest), (first, last), offsets)
