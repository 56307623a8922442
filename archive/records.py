"""Records that pass between the rooms: how files are made, the parts of a cut, and its files."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple, Self

Layout = Literal["iceberg", "hive"]
Bucket = Literal["hour", "day"]
FileForm = Literal["avro", "bytes"]
"""`avro`: the columns of a schema. `bytes`: key and value as they are."""
BUCKET_US = {"hour": 3_600_000_000, "day": 86_400_000_000}


class ShareName(NamedTuple):
    """What the names of a share's intents and files have in common."""

    topic: str
    topic_id: str
    share: str


class Definition(NamedTuple):
    """How the files of a cut are made. An intent keeps it: a cut is finished with the definition that it began with."""

    table: str
    """The table's name, with its namespace."""
    layout: Layout = "iceberg"
    bucket: Bucket = "hour"
    event_time: tuple[str, ...] = ()
    """Paths of fields that may hold the time of a row's event, the best first."""
    tombstones: Literal["ignore", "keep"] = "ignore"
    on_error: Literal["stop", "bytes"] = "stop"
    """What to do with a message that is not of its schema."""
    row_group_rows: int = 131_072

    def as_json(self) -> dict[str, Any]:
        return {**self._asdict(), "event_time": list(self.event_time)}

    @classmethod
    def from_json(cls, stored: dict[str, Any]) -> Self:
        return cls(**{**stored, "event_time": tuple(stored["event_time"])})


class SchemaPlan(NamedTuple):
    """How messages of one schema become rows."""

    schema_id: int
    form: FileForm
    version: int
    """The schema version of the table: another one for a schema that the columns before cannot take."""
    columns: int
    """The number of the list of columns, in this schema version, that has the schema's columns."""


class Range(NamedTuple):
    """The messages of one partition in a cut: the offsets [start, end)."""

    partition: int
    start: int
    end: int
    rows: int
    """How many rows the cut has of it."""
    tombstones: int
    """How many messages without a value were ignored."""


class PlannedFile(NamedTuple):
    """A file of an intent."""

    path: str
    form: FileForm
    schema_id: int | None
    """None for messages without a schema."""
    version: int
    bucket: int
    """The number of its hour, or day, since 1970 (UTC)."""
    rows: int


class MadeFile(NamedTuple):
    """A stored file."""

    planned: PlannedFile
    rows: int
    """The rows in the file, by its footer. Fewer than planned if the topic was compacted in between."""
    size: int
    event_time_us: tuple[int, int]
    """The least and the greatest."""
    kafka_time_us: tuple[int, int]
    offsets: dict[int, tuple[int, int, int]]
    """By partition: the first and the last offset, and the number of rows."""
