"""The settings of `cassandra-materializer`."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated, Literal
from uuid import UUID  # noqa: TC003 - pydantic needs it

from pydantic import Field, field_validator
from pydantic_core import PydanticCustomError

from cdc_common.messages.avro.form_entries import parse_entry, split_entries
from cdc_common.messages.avro.type_forms import (
    DEFAULT_FORMS,
    Collections,
    Decimals,
    Durations,
    Maps,
    OutOfRange,
    StaticRows,
    UserTypes,
    Varints,
)
from cdc_common.messages.errors import MessageError
from cdc_common.settings import shared
from cdc_common.settings.tables import View
from stream_runtime.settings import JobSettings


class MaterializerSettings(JobSettings):
    """The Spark job, `cassandra-materializer`."""

    group_id: Annotated[
        str, Field(description="Consumer group whose committed offsets are the job's position.", min_length=1)
    ] = "cassandra-materializer"
    checkpoint_location: Annotated[
        str,
        Field(
            description="Directory or URI (s3://bucket/folder?region=eu-west-1) of changelogs and snapshots. All "
            "workers must reach it.",
            min_length=1,
        ),
    ] = "/var/lib/cassandra-materializer/checkpoint"
    state_directory: Annotated[Path, Field(description="Local directory of a worker's RocksDB databases.")] = Path(
        "/var/lib/cassandra-materializer/state"
    )
    max_open_raw_partitions: Annotated[
        int,
        Field(
            description="Maximum number of raw partitions a worker keeps open. Each takes about 4 threads, 16 files "
            "and 2 MiB.",
            ge=1,
        ),
    ] = 64
    idle_commit_seconds: Annotated[
        float,
        Field(
            description="Minimum time between two folds of an idle raw partition that only purge (s), and maximum time "
            "for which heartbeats of older publishers wait. Idle: without other messages, and without a timer that is "
            "due.",
            ge=0,
        ),
    ] = 60.0
    chunk_max_changes: Annotated[
        int,
        Field(
            description="Approximate maximum number of rows that one transaction reads or changes. Their size is at "
            "most four times `chunk_max_bytes`. A write that affects more, such as the deletion of a wide Cassandra "
            "partition, takes several transactions.",
            ge=1,
        ),
    ] = 40_000
    chunk_max_seconds: Annotated[
        float, Field(description="Maximum time for which a worker collects the messages of one transaction (s).", gt=0)
    ] = 10.0
    snapshot_every_versions: Annotated[
        int, Field(description="Number of versions after which a worker uploads the next snapshot of the state.", ge=1)
    ] = 50
    changelog_retention_versions: Annotated[
        int, Field(description="Minimum number of versions whose changelogs are retained.", ge=1)
    ] = 100
    changelog_retention_seconds: Annotated[
        float,
        Field(
            description="Minimum time for which changelogs are retained (s). A worker that owned the raw partition "
            "within this time catches up by changelogs, without a snapshot.",
            ge=0,
        ),
    ] = 3600.0
    max_old_value_hours: Annotated[
        float,
        Field(
            description="Maximum time for which a local state's files hold values that a later change has replaced or "
            "deleted (hours). At this age of a change RocksDB rewrites the files with the old values, and the next "
            "snapshot uploads them.",
            gt=0,
        ),
    ] = 7 * 24.0
    restore_reads: Annotated[
        int,
        Field(
            description="Maximum number of concurrent reads of the checkpoint location while a worker restores states; "
            "at most four if it is a folder. Each takes 4 MiB of memory.",
            ge=1,
        ),
    ] = 16
    unused_state_seconds: Annotated[
        float,
        Field(
            description="Time after which a worker deletes a local state that no worker of its machine uses, because "
            "the raw partition has moved away (s). The state can be restored at any time.",
            ge=0,
        ),
    ] = 3600.0
    unused_state_bytes: Annotated[
        int,
        Field(
            description="Maximum size of all unused local states of a machine (bytes). Those unused for the longest "
            "time are deleted first.",
            ge=0,
        ),
    ] = 10 * 1024**3
    max_clock_ahead_hours: Annotated[
        float,
        Field(
            description="Maximum time by which a raw partition's time, which the brokers set, may be ahead of both the "
            "worker's clock and most publishers' clocks (hours). Beyond it the raw partition stops. Its idle time does "
            "not matter.",
            gt=0,
        ),
    ] = 1.0
    reorder_seconds: Annotated[
        float,
        Field(
            description="Time from a write's arrival in Kafka for which it waits in the reorder buffer for earlier "
            "writes of other replicas (s). Expiry waits for the same time.",
            ge=0,
        ),
    ] = 0.0
    purge_margin_seconds: Annotated[
        int, Field(description="Time for which tombstones are retained after gc_grace_seconds (s).", ge=0)
    ] = 3600
    stalled_publisher_seconds: Annotated[
        float,
        Field(
            description="Time without a message or watermark after which a publisher is reported as stalled (s). It "
            "blocks purging.",
            gt=0,
        ),
    ] = 3600.0
    forgotten_publishers: list[UUID] = Field(
        default=[], description="Host ids of publishers that will never return. Purging does not wait for them."
    )
    truncate_seconds: Annotated[
        float,
        Field(
            description="Maximum time between the first and the last node's execution of one TRUNCATE (s). The "
            "publishers need the same value. Changes written after a TRUNCATE are published after twice this time. If "
            "a node is known not to have truncated one minute after this time, the table needs a snapshot.",
            gt=0,
        ),
    ] = 15.0
    dropped_tables: Annotated[
        Literal["delete", "keep"],
        Field(
            description="Handling of the rows of a dropped table. `delete`: each gets a delete. `keep`: they stay in "
            "the topic until a table of that name is created."
        ),
    ] = "delete"
    on_large_message: Annotated[
        Literal["stop", "without_before", "dead_letter"],
        Field(
            description="Handling of a change larger than its topic's max.message.bytes. `stop`: the raw partition "
            "stops. `without_before`: the change is sent without `before`; if that is still too large, the raw "
            "partition stops. `dead_letter`: the change is sent to the dead-letter topic."
        ),
    ] = "stop"
    max_dead_letters: Annotated[
        int,
        Field(
            description="Maximum number of dead-lettered messages of a raw partition. One more stops it; 0 stops it at "
            "the first unreadable message.",
            ge=0,
        ),
    ] = 100
    topics: Annotated[
        Literal["template", "registry"],
        Field(
            description="Source of the change topics' names. `template`: kafka.topic_prefix, keyspace and table. "
            "`registry`: the registry assigns them by compatibility and personal data; only cassandra-schematizer can."
        ),
    ] = "template"
    topics_seconds: Annotated[
        float,
        Field(
            description="Interval at which the job asks the registry for its topics again (s), if `topics` is "
            "`registry`.",
            gt=0,
        ),
    ] = 60.0
    tombstones: Annotated[
        bool, Field(description="Send a message without a value after each delete, for log compaction.")
    ] = True
    decimals: Annotated[
        Decimals,
        Field(
            description="Form of decimals in change messages. `string`: text, such as 29.97. `exact`: a record of "
            "scale and value. `double`: the nearest double; key columns are text. A topic keeps the forms that it "
            "began with."
        ),
    ] = DEFAULT_FORMS.decimals
    varints: Annotated[
        Varints,
        Field(
            description="Form of varints. `string`: text. `bytes`: two's complement. `decimal`: Avro's decimal(38,0); "
            "a value of more digits is null and named in `source.unreadable`; key columns are text."
        ),
    ] = DEFAULT_FORMS.varints
    durations: Annotated[
        Durations,
        Field(
            description="Form of durations. `text`: ISO 8601, such as P1M2DT3H. `record`: months, days and nanos. "
            "`nanoseconds`: a number, with days of 24 hours; a duration with months is null and named in "
            "`source.unreadable`."
        ),
    ] = DEFAULT_FORMS.durations
    user_types: Annotated[
        UserTypes,
        Field(
            description="Form of user types and tuples. `json`: a column that has one is JSON text. `record`: Avro "
            "records. `columns`: each field of a column is a column, such as home_street; keys, and what is within "
            "collections and fields, are JSON text."
        ),
    ] = DEFAULT_FORMS.user_types
    maps: Annotated[
        Maps,
        Field(
            description="Form of maps. `json`: a column that has one is JSON text. `native`: an Avro map if keys are "
            "text, otherwise an array of entries."
        ),
    ] = DEFAULT_FORMS.maps
    collections: Annotated[
        Collections,
        Field(
            description="Form of lists, sets and vectors of collections, blobs or timestamps. `json`: JSON text. "
            "`native`: arrays, which Debezium's JDBC sink does not take. Others are always arrays."
        ),
    ] = DEFAULT_FORMS.collections
    out_of_range: Annotated[
        OutOfRange,
        Field(
            description="Handling of dates and timestamps outside the years 1 to 9999. `as_is`: they are sent. `null`: "
            "the column is null and named in `source.unreadable`. `error`: the raw partition stops."
        ),
    ] = DEFAULT_FORMS.out_of_range
    static_rows: Annotated[
        StaticRows,
        Field(
            description="Handling of Cassandra partitions that have only static columns. `leave_out`: no message. "
            "`include`: a row whose clustering columns are null, which most tables of other systems do not take."
        ),
    ] = DEFAULT_FORMS.static_rows
    type_forms: list[str] = Field(
        default=[],
        description="These settings for single tables and columns: `shop.orders maps=native static_rows=include` for a "
        "table, `shop.orders.price decimal(12,2)` for a decimal or varint column as Avro's decimal; a value that it "
        "cannot hold is null and named in `source.unreadable`.",
    )
    operations_port: Annotated[int, Field(description="Port of that address; 0 for none.", ge=0, le=65535)] = 9472

    @field_validator("type_forms", mode="before")
    @classmethod
    def _split_type_forms(cls, value: object) -> object:
        """From the environment, entries are separated by commas that are not in brackets."""
        return split_entries(value) if isinstance(value, str) else value

    @field_validator("type_forms")
    @classmethod
    def _check_type_forms(cls, value: list[str]) -> list[str]:
        for entry in value:
            try:
                parse_entry(entry)
            except MessageError as error:
                raise PydanticCustomError("type_forms", "{reason}", {"reason": error.reason}) from None
        return value


class FillerView(View):
    """The keyspace in which publishers coordinate, and the age at which each commit log segment is full."""

    keyspace: str
    max_segment_age_seconds: float


class Settings(shared.Settings):
    """The tables of cdc.toml that the materializer reads."""

    materializer: MaterializerSettings = MaterializerSettings()
    filler: FillerView = Field(default_factory=partial(FillerView.of, "filler"))
