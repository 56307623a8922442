"""The position of a source partition without a state: a committed offset, and the metadata beside it.

The metadata is JSON with a format version, the source topic's shape, the time, and whether a message was sent.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, NamedTuple

from stream_runtime.records import SourcePartition, TopicShape

if TYPE_CHECKING:
    from stream_runtime.faults import Faults

FORMAT_VERSION = 1


class Committed(NamedTuple):
    """A committed offset."""

    # The next offset to process.
    offset: int
    # When it was committed (s since 1970); 0 if an operator has set it.
    at: float
    # Whether a message before it was sent, as far as is known.
    sent: bool = True


def encode(shape: TopicShape, now: float, *, sent: bool) -> str:
    """The metadata of a committed offset."""
    fields = {
        "format": FORMAT_VERSION,
        "partitions": shape.partitions,
        "topic_id": shape.topic_id,
        "at": int(now),
        "sent": sent,
    }
    return json.dumps(fields, separators=(",", ":"))


def decode(offset: int, text: str | None, partition: SourcePartition, shape: TopicShape, faults: Faults) -> Committed:
    """The position of a committed offset. CdcError if it is of a topic of another shape.

    An offset that an operator has set lacks the job's metadata, and is taken as it is.
    """
    try:
        fields = json.loads(text or "null")
        known = TopicShape(int(fields["partitions"]), str(fields["topic_id"]))
        committed = Committed(offset, float(fields["at"]), bool(fields.get("sent", True)))
    except (ValueError, KeyError, TypeError):
        return Committed(offset, 0.0)
    if known != shape:
        raise faults.topic_changed(partition.topic, known, shape)
    return committed
