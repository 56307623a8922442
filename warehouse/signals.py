"""Signals: messages that say which objects have a range of offsets of a partition, in JSON.

A signal is committed together with the writer's offset, so offsets move only with a signal. It may have no object.
"""

from __future__ import annotations

import json
from typing import Any, Literal, NamedTuple

from warehouse.records import StoredObject

FORMAT_VERSION = 1


class Signal(NamedTuple):
    """The objects of a batch."""

    # The topic.
    topic: str
    # Kafka's id of the topic.
    topic_id: str
    # The partition's number.
    partition: int
    # The first offset.
    start: int
    # The offset after the last one.
    end: int
    # The form of the objects.
    dialect: Literal["csv", "parquet"]
    # The objects, by the ids of their schemas.
    objects: tuple[StoredObject, ...]

    @property
    def rows(self) -> int:
        """The number of rows of all objects."""
        return sum(found.rows for found in self.objects)

    def encode(self) -> bytes:
        fields = {
            "format": FORMAT_VERSION,
            **self._asdict(),
            "objects": [{**found._asdict(), "fields": list(found.fields)} for found in self.objects],
        }
        return json.dumps(fields, ensure_ascii=False, separators=(",", ":")).encode()

    @classmethod
    def decode(cls, value: bytes) -> Signal:
        """ValueError, KeyError or TypeError if it is none."""
        stored: dict[str, Any] = json.loads(value)
        if stored["format"] != FORMAT_VERSION:
            raise ValueError(f"format {stored['format']}")
        objects = tuple(StoredObject(**{**found, "fields": tuple(found["fields"])}) for found in stored["objects"])
        return cls(
            stored["topic"],
            stored["topic_id"],
            int(stored["partition"]),
            int(stored["start"]),
            int(stored["end"]),
            stored["dialect"],
            objects,
        )
