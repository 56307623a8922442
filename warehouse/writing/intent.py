"""The intent of a batch: which offsets it has, and what its objects are called.

It is stored before the first object, under a name that the committed offset gives, and only once. Of two tasks that
both believe to own the partition, the second adopts the intent of the first. So a batch has one set of objects.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from stream_runtime.records import SourcePartition

if TYPE_CHECKING:
    from stream_runtime.stores.store import Store

FORMAT_VERSION = 1


class PlannedObject(NamedTuple):
    """An object of an intent."""

    # The path in the store.
    path: str
    # The id of the schema; None for messages without a value.
    schema_id: int | None
    # The fields, in the order of the object's columns.
    fields: tuple[str, ...]
    # The number of rows.
    rows: int


class Intent(NamedTuple):
    """The intent of one batch."""

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
    # The objects.
    objects: tuple[PlannedObject, ...]

    def encode(self) -> bytes:
        fields = {"format": FORMAT_VERSION, **self._asdict(), "objects": [one._asdict() for one in self.objects]}
        return json.dumps(fields, ensure_ascii=False, separators=(",", ":")).encode()

    @classmethod
    def decode(cls, data: bytes) -> Intent:
        """ValueError, KeyError or TypeError if it is none."""
        stored: dict[str, Any] = json.loads(data)
        if stored.pop("format") != FORMAT_VERSION:
            raise ValueError("another format")
        objects = tuple(PlannedObject(**{**one, "fields": tuple(one["fields"])}) for one in stored["objects"])
        return cls(**{**stored, "objects": objects})


class Paths(NamedTuple):
    """The names of what a partition stores."""

    # The job's name: several jobs may share a location.
    group: str
    # The partition.
    partition: SourcePartition
    # Kafka's id of its topic: a topic that is created again has objects of its own.
    topic_id: str

    @property
    def _folder(self) -> str:
        return f"{self.partition.topic}/{self.topic_id}/{self.partition.partition}"

    @property
    def intents(self) -> str:
        return f"{self.group}/_intents/{self._folder}"

    def intent(self, start: int) -> str:
        return f"{self.intents}/{start:020d}.json"

    def object(self, start: int, end: int, schema_id: int | None, dialect: str) -> str:
        """Topic, partition, first and last offset, and schema."""
        schema = "none" if schema_id is None else str(schema_id)
        return f"{self.group}/{self._folder}/{start:020d}-{end - 1:020d}-s{schema}.{dialect}"


def delete_intents(store: Store, paths: Paths, before: int) -> None:
    """Delete the intents of finished batches: a task may die between its commit and that."""
    for name in store.list(paths.intents):
        if int(name.removesuffix(".json")) < before:
            store.delete(f"{paths.intents}/{name}")


def read_intent(store: Store, path: str) -> Intent | None:
    """The intent; None if there is none yet. ValueError, KeyError or TypeError if it is damaged."""
    found = store.read(path)
    return None if found is None else Intent.decode(found)


def store_intent(store: Store, path: str, intent: Intent) -> Intent | None:
    """Store the intent unless there is one: the one that is there. None if it was deleted since: its batch is done."""
    if store.put_new_bytes(path, intent.encode()):
        return intent
    return read_intent(store, path)
