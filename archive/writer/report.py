"""The report of a share about its cuts."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from archive.events.file_event import FileEvent
    from archive.writer.rows import MadeRows


class CutReport(NamedTuple):
    """The counts of cuts (stream_runtime.exactly_once.report.Part)."""

    # The number of cuts.
    cuts: int = 0
    # The number of messages that were read.
    messages: int = 0
    # The number of rows in files.
    rows: int = 0
    # The number of messages without a value that were ignored.
    tombstones: int = 0
    # The number of messages without a value that are rows of erasures.
    erasures: int = 0
    # The number of rows that are kept as bytes.
    as_bytes: int = 0
    # The number of messages that are not of their schema, and are dead letters or left out.
    refused: int = 0
    # The number of offsets whose messages were deleted before they were read.
    lost: int = 0
    # The number of rows without a business time.
    by_kafka_time: int = 0
    # The number of rows that compaction has removed between two tries.
    missing: int = 0
    # The number of files.
    files: int = 0
    # The size of the files in bytes.
    bytes: int = 0
    # The number of schema versions that were begun, because a schema did not fit the columns before.
    new_versions: int = 0

    def with_batch(self, made: MadeRows, messages: int) -> CutReport:
        return self._replace(
            messages=self.messages + messages,
            tombstones=self.tombstones + made.tombstones,
            erasures=self.erasures + made.erasures,
            as_bytes=self.as_bytes + made.as_bytes,
            refused=self.refused + sum(map(len, made.refused)),
            by_kafka_time=self.by_kafka_time + made.by_kafka_time,
        )

    def with_files(self, event: FileEvent) -> CutReport:
        return self._replace(
            cuts=1,
            rows=sum(file.rows for file in event.files),
            missing=event.missing,
            lost=sum(one.lost for one in event.ranges),
            files=len(event.files),
            bytes=sum(file.size for file in event.files),
        )

    def and_then(self, later: CutReport) -> CutReport:
        """Both, one after the other."""
        return CutReport._make(one + other for one, other in zip(self, later, strict=True))
