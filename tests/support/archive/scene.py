"""A topic in memory that is archived into a folder, with SQLite as the commit protocol."""

from __future__ import annotations

import io
import json
import sqlite3
from itertools import count
from typing import TYPE_CHECKING, Any

import duckdb
import fastavro

from archive.events.file_event import FileEvent
from archive.files import open_store
from archive.records import Definition
from archive.writer.cut import CutSettings
from archive.writer.schema_plans import SchemaPlans
from archive.writer.share_parts import EventTopic, ShareParts, ShareSettings
from archive.writer.share_task import IntentTakenError, ShareTask
from cdc_common.clients.registry.errors import SCHEMA_NOT_FOUND, RegistryRequestError
from cdc_common.messages import wire
from cdc_native.kafka.source_batch import SourceBatch as NativeBatch
from stream_runtime.records import Share, SourcePartition, TopicShape
from stream_runtime.source_batch import SourceBatch
from tests.support.stream_runtime.sqlite_commits import SqliteCommits

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

TOPIC = "cdc.shop.orders"
NOW_MS = 1_795_258_800_000  # 2026-11-21T11:00:00Z
ENVELOPE = {
    "type": "record",
    "name": "Envelope",
    "namespace": "cdc.shop.orders",
    "fields": [
        {"name": "op", "type": "string"},
        {
            "name": "before",
            "type": [
                "null",
                {
                    "type": "record",
                    "name": "Value",
                    "fields": [{"name": "id", "type": "int"}, {"name": "name", "type": ["null", "string"]}],
                },
            ],
        },
        {"name": "after", "type": ["null", "Value"]},
        {
            "name": "source",
            "type": {
                "type": "record",
                "name": "Source",
                "fields": [{"name": "ts_us", "type": "long"}, {"name": "row_sequence", "type": "long"}],
            },
        },
        {"name": "ts_ms", "type": "long"},
    ],
}
Stored = tuple[bytes | None, bytes | None, int, int]
"""Key, value, offset and time of a message."""


class MemoryRegistry:
    """archive.writer.schema_plans.Registry."""

    def __init__(self, schemas: Mapping[int, Any], subjects: Mapping[str, int] | None = None) -> None:
        self.schemas = dict(schemas)
        self.subjects = dict(subjects or {})

    def get(self, schema_id: int) -> Any:  # noqa: ANN401
        if schema_id not in self.schemas:
            raise RegistryRequestError("It has no such schema.", status=404, word=SCHEMA_NOT_FOUND)
        return self.schemas[schema_id]

    def latest(self, subject: str) -> tuple[int, Any] | None:
        found = self.subjects.get(subject)
        return None if found is None else (found, self.schemas[found])


class Topic:
    """A topic of a few partitions, in memory."""

    def __init__(self, partitions: int = 2, registry: MemoryRegistry | None = None) -> None:
        self.registry = registry or MemoryRegistry({7: ENVELOPE})
        self.messages: list[list[Stored]] = [[] for _ in range(partitions)]
        self.firsts = [0] * partitions
        self.ends = [0] * partitions
        self.shape = TopicShape(partitions, "topic-id")

    def send(self, partition: int, value: bytes | None, key: bytes | None = b"k", ms: int = NOW_MS) -> None:
        self.messages[partition].append((key, value, self.ends[partition], ms))
        self.ends[partition] += 1

    def send_change(self, partition: int, number: int, *, name: str = "Ada", hours: int = 0, key: bytes = b"k") -> None:
        us = NOW_MS * 1000 + hours * 3_600_000_000 + number
        change = {
            "op": "c",
            "before": None,
            "after": {"id": number, "name": name},
            "source": {"ts_us": us, "row_sequence": number},
            "ts_ms": NOW_MS,
        }
        self.send(partition, self.encode(7, change), key, NOW_MS + number)

    def encode(self, schema_id: int, value: Any) -> bytes:  # noqa: ANN401
        """A value in Confluent's wire format, by fastavro."""
        return wire.header(schema_id) + encode_avro(self.registry.schemas[schema_id], value)

    def bounds(self, partitions: Sequence[SourcePartition]) -> dict[SourcePartition, tuple[int, int]]:
        return {at: (self.firsts[at.partition], self.ends[at.partition]) for at in partitions}

    def delete_before(self, partition: int, offset: int) -> None:
        """Delete messages, as retention does."""
        self.firsts[partition] = offset
        self.messages[partition] = [message for message in self.messages[partition] if message[2] >= offset]

    def compact(self) -> None:
        """Keep the newest message of each key, and none of a key that has ended."""
        for partition, messages in enumerate(self.messages):
            newest = {key: offset for key, _, offset, _ in messages}
            self.messages[partition] = [
                message for message in messages if newest[message[0]] == message[2] and message[1] is not None
            ]

    def read(self, at: SourcePartition, first: int, most: int) -> tuple[SourceBatch | None, int]:
        """The next messages, and the offset after them."""
        found = [message for message in self.messages[at.partition] if message[2] >= first][:most]
        if not found:
            return None, self.ends[at.partition]
        return SourceBatch(NativeBatch.of(*at, found)), found[-1][2] + 1


def encode_avro(schema: Any, value: Any) -> bytes:  # noqa: ANN401 - JSON, and what it describes
    """Avro's binary, by fastavro."""
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(json.loads(json.dumps(schema))), value)
    return out.getvalue()


class Archive:
    """A share of a topic that is archived."""

    def __init__(self, topic: Topic, folder: Path, **definition: Any) -> None:  # noqa: ANN401
        self.topic = topic
        self.folder = folder
        folder.mkdir(exist_ok=True)
        self.store = open_store(str(folder / "lake"))
        self.partitions = tuple(SourcePartition(TOPIC, number) for number in range(topic.shape.partitions))
        self.share = Share(TOPIC, self.partitions, f"{TOPIC}-0")
        self.database = folder / "commits.db"
        self.settings = ShareSettings(
            "archive",
            Definition("cdc_shop.orders", **definition),
            CutSettings(rows=10**9, bytes=10**12, seconds=10**9, files=10**6, at_new_schema=False),
            partitions_per_share=8,
            refresh_seconds=10**9,
            idle_seconds=10**9,
            is_compacted=False,
        )
        self.spill_bytes = 10**9
        self.chunk = 1000
        self._opened = count(id(self))  # each task has a folder of its own, as each process has

    def cut(self, **changes: Any) -> None:  # noqa: ANN401
        """Change when a cut ends."""
        self.settings = self.settings._replace(cut=self.settings.cut._replace(**changes))

    def open(self) -> ShareTask:
        parts = ShareParts(
            SqliteCommits(self.database, self.share),
            self.store,
            SchemaPlans(self.store, self.topic.registry, self.settings.definition.table),
            EventTopic("events", 0),
            "dead-letters",
            self.topic.bounds,
            self.folder / "spool" / str(next(self._opened)),
            self.spill_bytes,
        )
        return ShareTask(self.share, self.topic.shape, parts, self.settings)

    def poll(self, task: ShareTask, at: dict[SourcePartition, int]) -> bool:
        """Read each partition once; whether a cut was committed."""
        for partition in list(at):
            batch, following = self.topic.read(partition, at[partition], self.chunk)
            task.take(partition, batch, following)
            at[partition] = following
        return task.commit_due() is not None

    def run(self, polls: int = 50) -> None:
        """Archive with one task until nothing is left to read."""
        task = self.open()
        at = dict(task.offsets)
        for _ in range(polls):
            was_retry = task.is_retry
            try:
                is_done = self.poll(task, at)
            except IntentTakenError:
                is_done = was_retry = True
            if is_done and was_retry:
                task.close()
                task = self.open()
                at = dict(task.offsets)
            elif all(at[one] >= self.topic.ends[one.partition] for one in at) and not task.is_retry:
                break
        task.close()

    def events(self) -> list[FileEvent]:
        """The committed file events, in their order."""
        with sqlite3.connect(self.database) as database:
            found = database.execute("SELECT value FROM messages WHERE topic = 'events' ORDER BY id").fetchall()
        return [FileEvent.decode(value) for (value,) in found]

    def paths(self) -> list[str]:
        """The Parquet files in the store, whoever has made them."""
        root = self.folder / "lake"
        return sorted(str(path.relative_to(root)) for path in root.rglob("*.parquet"))


def archive_of(topic: Topic, folder: Path, **definition: Any) -> Archive:  # noqa: ANN401
    """All of a topic, archived in cuts of one batch."""
    made = Archive(topic, folder, **definition)
    made.cut(rows=1)
    made.run()
    return made


def rows_of(archive: Archive, columns: str = "*") -> list[tuple[Any, ...]]:
    """The rows of all files in the order of their offsets, by DuckDB."""
    query = f"SELECT {columns} FROM read_parquet($1, union_by_name=true) ORDER BY _kafka_partition, _kafka_offset"
    return duckdb.connect().execute(query, [[f"{archive.folder}/lake/{path}" for path in archive.paths()]]).fetchall()
