"""The metadata of a share's committed offsets: whose cut they end, in JSON."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, NamedTuple

from stream_runtime.exactly_once.commits import StoredOffset

if TYPE_CHECKING:
    from stream_runtime.faults import Faults
    from stream_runtime.records import SourcePartition, TopicShape

FORMAT_VERSION = 1


class CutPosition(NamedTuple):
    """A committed offset, with the cut that ended there."""

    # The committed offset: the next one to read.
    offset: int
    # The number of the last cut; 0 before the first.
    cut: int
    # The number of partitions that a share has at most. It never changes: the names of shares follow from it.
    group: int
    # The time of the commit, in s since 1970.
    at: float

    def stored(self, topic_id: str) -> StoredOffset:
        fields = {
            "format": FORMAT_VERSION,
            "topic_id": topic_id,
            "cut": self.cut,
            "group": self.group,
            "at": int(self.at),
        }
        return StoredOffset(self.offset, json.dumps(fields, separators=(",", ":")))


def decode(partition: SourcePartition, stored: StoredOffset, shape: TopicShape, faults: Faults) -> CutPosition:
    """The position of a committed offset. CdcError if another program has set it, or for another topic."""
    try:
        fields = json.loads(stored.metadata)
        if fields["format"] != FORMAT_VERSION:
            raise faults.offset_foreign(partition, stored.offset, f"has the format {fields['format']}")
        found = CutPosition(stored.offset, int(fields["cut"]), int(fields["group"]), float(fields["at"]))
        topic_id = str(fields["topic_id"])
    except (ValueError, KeyError, TypeError) as error:
        raise faults.offset_foreign(partition, stored.offset, "has no metadata of the archive") from error
    if topic_id != shape.topic_id:
        raise faults.topic_recreated(partition.topic)
    return found
