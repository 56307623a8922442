"""Records that pass between the rooms: how files are made, the parts of a cut, and its files."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple, Self

Layout = Literal["iceberg", "hive"]
Bucket = Literal["hour", "day"]
FileForm = Literal["avro", "json", "bytes", "erasures"]
"""`avro` and `json`: the columns of a schema. `bytes`: key and value as they are. `erasures`: keys to be erased."""
Tombstones = Literal["ignore", "keep", "erasures"]
PlanForm = Literal["avro", "json", "bytes", "unknown"]
"""As FileForm. `unknown`: the registry did not have the schema when the cut was decided."""
BUCKET_US = {"hour": 3_600_000_000, "day": 86_400_000_000}


class ShareName(NamedTuple):
    """The part that the names of a share's intents and files have in common."""

    # The name of the topic.
    topic: str
    # Kafka's id of the topic: a topic that is created again has another one.
    topic_id: str
    # The id of the share.
    share: str


class Definition(NamedTuple):
    """How the files of a cut are made. An intent keeps it: a cut is finished with the definition that it began with."""

    # The table's name, with its namespace.
    table: str
    # The layout of the files: for a table of Iceberg, or in folders as Hive names them.
    layout: Layout = "iceberg"
    # The time that a file covers.
    bucket: Bucket = "hour"
    # Paths of fields that may hold the time of a row's event, the best first.
    event_time: tuple[str, ...] = ()
    # The handling of messages without a value: `keep` makes rows, and `erasures` rows of a table of their own.
    tombstones: Tombstones = "ignore"
    # The handling of a message that is not of its schema: `bytes` keeps it as bytes, `dead_letter` sends it to the
    # dead-letter topic, and `skip` leaves it out.
    on_error: Literal["stop", "bytes", "dead_letter", "skip"] = "stop"
    # The most rows of a row group of a file.
    row_group_rows: int = 131_072
    # The form of the messages: Avro with Confluent's header, JSON of one schema, or anything.
    format: Literal["avro", "json", "bytes"] = "avro"
    # The subject of the registry whose newest schema JSON has.
    subject: str = ""
    # What messages do that were deleted before they were read: they stop the share, or are counted and named.
    lost: Literal["stop", "accept"] = "stop"

    def as_json(self) -> dict[str, Any]:
        return {**self._asdict(), "event_time": list(self.event_time)}

    @classmethod
    def from_json(cls, stored: dict[str, Any]) -> Self:
        return cls(**{**stored, "event_time": tuple(stored["event_time"])})


class SchemaPlan(NamedTuple):
    """The way in which messages of one schema become rows."""

    # The id of the schema.
    schema_id: int
    # The form of the rows.
    form: PlanForm
    # The schema version of the table: another one for a schema that the columns before cannot take.
    version: int
    # The number of the list of columns, in this schema version, that has the schema's columns.
    columns: int


class Range(NamedTuple):
    """The messages of one partition in a cut."""

    # The number of the partition.
    partition: int
    # The first offset.
    start: int
    # The offset after the last one.
    end: int
    # The number of rows that the cut has of it.
    rows: int
    # The number of messages without a value that were ignored.
    tombstones: int
    # The number of messages that are not of their schema, and are dead letters or left out.
    refused: int = 0
    # The number of offsets at its start whose messages were deleted before they were read.
    lost: int = 0


class Refused(NamedTuple):
    """A message that is in no file, because it is not of its schema."""

    # The number of its partition.
    partition: int
    # Its offset.
    offset: int
    # Why it cannot be a row. It has no values.
    reason: str


class PlannedFile(NamedTuple):
    """A file of an intent."""

    # The path in the store.
    path: str
    # The form of its rows.
    form: FileForm
    # The id of the schema; None for messages without a schema.
    schema_id: int | None
    # The schema version of the table.
    version: int
    # The number of its hour, or day, since 1970 (UTC).
    bucket: int
    # The number of rows.
    rows: int


class MadeFile(NamedTuple):
    """A stored file."""

    # The file in the intent.
    planned: PlannedFile
    # The number of rows in the file, by its footer. It is less than planned if the topic was compacted in between.
    rows: int
    # The size of the file in bytes.
    size: int
    # The least and the greatest time of a row's event, in µs since 1970.
    event_time_us: tuple[int, int]
    # The least and the greatest Kafka time of a message, in µs since 1970.
    kafka_time_us: tuple[int, int]
    # The first and the last offset, and the number of rows, by partition.
    offsets: dict[int, tuple[int, int, int]]
