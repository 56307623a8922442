"""Records that pass between the rooms: columns, what the warehouse knows of a table, rows, and a load."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import pyarrow as pa

KEY_BYTES = 16
"""The size of a `_key`."""


class TableName(NamedTuple):
    """The name of a table."""

    # The schema.
    schema: str
    # The table in it.
    table: str

    def __str__(self) -> str:
        return f"{self.schema}.{self.table}"


class Column(NamedTuple):
    """A column of a table."""

    # The names of the field in the messages, the newest first.
    fields: tuple[str, ...]
    # The column's name, which differs where the warehouse cannot have that of the field.
    name: str
    # The type, as the warehouse writes it.
    type: str


class State(NamedTuple):
    """The position of a table. It is a row of the warehouse, changed in the transaction that changes the table."""

    # The number of loads.
    version: int
    # The topic's name.
    topic: str
    # Kafka's id of the topic: a topic that is created again has another one.
    topic_id: str
    # The next offset of each partition.
    offsets: Mapping[int, int]
    # The columns of the table, in order.
    columns: tuple[Column, ...]
    # The highest id of a schema that was loaded.
    schema_id: int
    # When the table was paused; empty if it is not.
    paused: str = ""
    # Where the signals of each partition are read on, if the table is loaded by signals.
    signals: Mapping[int, int] = {}
    # Kafka's id of the topic of the signals.
    signals_id: str = ""

    def as_json(self) -> str:
        """All but the version, which is a column of its own."""
        fields: dict[str, Any] = {
            "topic": self.topic,
            "topic_id": self.topic_id,
            "offsets": {str(partition): offset for partition, offset in sorted(self.offsets.items())},
            "columns": self.columns,
            "schema_id": self.schema_id,
        }
        if self.paused:
            fields["paused"] = self.paused
        if self.signals_id:
            fields["signals"] = {str(partition): offset for partition, offset in sorted(self.signals.items())}
            fields["signals_id"] = self.signals_id
        return json.dumps(fields, ensure_ascii=False, separators=(",", ":"))

    @classmethod
    def from_json(cls, version: int, text: str) -> Self:
        """ValueError, KeyError or TypeError for a text of another format."""
        found: dict[str, Any] = json.loads(text)
        return cls(
            version,
            found["topic"],
            found["topic_id"],
            {int(partition): offset for partition, offset in found["offsets"].items()},
            tuple(Column(tuple(fields), name, kind) for fields, name, kind in found["columns"]),
            found["schema_id"],
            found.get("paused", ""),
            {int(partition): offset for partition, offset in found.get("signals", {}).items()},
            found.get("signals_id", ""),
        )


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows of messages of one schema and one partition, in the order of their offsets."""

    # The partition's number.
    partition: int
    # The hash of each row's key: 16 bytes.
    keys: list[bytes]
    # What decides which of two versions of a row is newer.
    sequences: list[int]
    # What happened to the row: `d` is its end.
    ops: list[str]
    # The messages' offsets.
    offsets: list[int]
    # When it happened, in µs since 1970.
    times_us: list[int]
    # The fields of the rows, by the names of the messages; those of a deleted row are null, or as they were before.
    values: pa.RecordBatch

    def __len__(self) -> int:
        return len(self.keys)


class StoredObject(NamedTuple):
    """An object: rows of messages of one schema."""

    # Its URI.
    uri: str
    # The id of the schema; None for messages without a value, which delete.
    schema_id: int | None
    # The fields of the messages, in the order of the object's columns, after the warehouse's own.
    fields: tuple[str, ...]
    # The number of rows.
    rows: int
    # The size in bytes.
    bytes: int


class ObjectField(NamedTuple):
    """A field of objects."""

    # The type that its values have by the schema of the objects.
    kind: str
    # The column of the table; None if it has none.
    column: Column | None


class ObjectGroup(NamedTuple):
    """Objects with the same columns, which are copied together."""

    # The fields, in the order of the objects' columns, after the warehouse's own.
    fields: tuple[ObjectField, ...]
    # The objects.
    objects: tuple[StoredObject, ...]


class Load(NamedTuple):
    """What one transaction does to a table."""

    # The table.
    table: TableName
    # The state that it begins with; None for a table that is not there yet.
    before: State | None
    # The state that it leaves.
    after: State
    # The first offset of each partition that has messages in it.
    starts: Mapping[int, int]
    # The rows: of each key the newest version, or all of them.
    rows: tuple[Rows, ...]
    # The comments that columns get, by their names.
    comments: Mapping[str, str] = {}
    # The objects that are loaded, where the warehouse copies them: `rows` is empty.
    objects: tuple[ObjectGroup, ...] = ()
