"""The settings of `cassandra-archive`."""

from __future__ import annotations

from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field, field_validator
from pydantic_core import PydanticCustomError

from archive.records import Definition, Tombstones
from archive.table_names import table_name
from archive.topic_settings import EntryError, parse_entry
from cdc_common.settings import shared
from stream_runtime.settings import ChosenTopicsSettings

if TYPE_CHECKING:
    from collections.abc import Mapping

NOTHING: Mapping[str, Any] = MappingProxyType({})


class ArchiveSettings(ChosenTopicsSettings):
    """The Spark job of `cassandra-archive`, which keeps topics as Parquet files and tables (docs/guides/archive.md)."""

    group_id: Annotated[
        str,
        Field(
            description="Name of the job, and its consumer group. Its committed offsets say what is archived.",
            min_length=1,
        ),
    ] = "cassandra-archive"
    operations_port: Annotated[int, Field(description="Port of that address; 0 for none.", ge=0, le=65535)] = 9475
    location: Annotated[
        str,
        Field(
            description="Folder of the files and tables, which all workers reach and no other group has, or "
            "s3://bucket/folder. Options of S3 follow a `?`: region, scheme, endpoint_override, path_style."
        ),
    ] = "/var/lib/cassandra-archive/lake"
    spool_directory: Annotated[
        Path, Field(description="Folder of each worker for rows that wait for the end of their cut.")
    ] = Path("/var/lib/cassandra-archive/spool")
    events_topic: Annotated[
        str, Field(description="Topic of the file events, which is created with unlimited retention.", min_length=1)
    ] = "cdc.archive.files"
    namespace: Annotated[
        str,
        Field(description="Namespace of tables whose topics have names of one part.", pattern="^[a-z0-9_]+$"),
    ] = "topics"
    layout: Annotated[
        Literal["iceberg", "hive"],
        Field(description="`iceberg`: files of Iceberg tables. `hive`: folders that readers of Hive tables take."),
    ] = "iceberg"
    bucket: Annotated[
        Literal["hour", "day"], Field(description="Range of event times of the rows that one file may hold (UTC).")
    ] = "hour"
    event_time: list[str] = Field(
        default=["event_time", "event_timestamp", "occurred_at", "created_at", "timestamp", "time", "ts"],
        description="Fields that may hold the time of a row's event, the best first; `a.b` is a field of a record. "
        "Envelopes have theirs already. A row without one has its Kafka time.",
    )
    tombstones: Annotated[
        Tombstones,
        Field(
            description="What messages without a value become: nothing (`ignore`), rows without a value (`keep`), or "
            "rows of a table of keys to be erased, which ends in `__erasures` (`erasures`)."
        ),
    ] = "ignore"
    on_error: Annotated[
        Literal["stop", "bytes", "dead_letter", "skip"],
        Field(
            description="What a message that is not of its schema does: `stop` its share, become a row of `bytes`, go "
            "to the topic of dead letters (`dead_letter`), or be left out (`skip`)."
        ),
    ] = "stop"
    dead_letter_topic: Annotated[
        str, Field(description="Topic of dead letters, which is created with unlimited retention.", min_length=1)
    ] = "cdc.archive.dead_letters"
    format: Annotated[
        Literal["avro", "json", "bytes"],
        Field(
            description="What messages are: `avro` with Confluent's header, `json` texts of the newest schema of the "
            "registry's subject `TOPIC-value`, or `bytes`."
        ),
    ] = "avro"
    lost: Annotated[
        Literal["stop", "accept"],
        Field(
            description="What messages do that were deleted before they were read: `stop` their share, or be counted "
            "and named in the file event (`accept`)."
        ),
    ] = "stop"
    deployment: Annotated[
        str,
        Field(
            description="Environment of topic files (`topics apply`) whose topics with an `[archive]` table are "
            "archived too, as their files say; empty for none. The registry knows them."
        ),
    ] = ""
    topic_settings: list[str] = Field(
        default=[],
        description="Settings of single topics: `cdc\\.shop\\..* layout=hive bucket=day` for a name or a regular "
        "expression. Keys: `table` (such as `shop.orders`), `layout`, `bucket`, `event_time` (fields with `|` between "
        "them), `tombstones`, `on_error`, `lost`, `format`, and `subject` (the registry's, for JSON). The last entry "
        "counts.",
    )
    cut_rows: Annotated[int, Field(description="Number of messages of a share after which a cut ends.", ge=1)] = (
        1_000_000
    )
    cut_bytes: Annotated[int, Field(description="Size of a share's messages after which a cut ends (bytes).", ge=1)] = (
        512 * 1024 * 1024
    )
    cut_seconds: Annotated[float, Field(description="Time after its first message at which a cut ends (s).", gt=0)] = (
        40.0
    )
    cut_files: Annotated[int, Field(description="Number of files of a cut after which it ends.", ge=1, le=1000)] = 500
    cut_at_new_schema: Annotated[
        bool, Field(description="Whether a message whose schema the share has not met yet ends a cut.")
    ] = False
    idle_seconds: Annotated[
        float,
        Field(
            description="Time after which an event without files moves the offsets past markers of transactions (s).",
            gt=0,
        ),
    ] = 300.0
    row_group_rows: Annotated[int, Field(description="Maximum number of rows in a row group.", ge=1)] = 131_072
    buffer_bytes: Annotated[
        int, Field(description="Maximum size of all rows that a worker keeps in memory (bytes).", ge=1_048_576)
    ] = 64 * 1024 * 1024
    partitions_per_share: Annotated[
        int,
        Field(
            description="Number of partitions whose messages share files, and one transaction. It must never change.",
            ge=1,
            le=16,
        ),
    ] = 8
    catalog_type: Annotated[
        Literal["none", "sql", "rest", "glue"],
        Field(
            description="Iceberg catalog that the tables of the layout `iceberg` are registered in: an SQL database, a "
            "REST service, or AWS Glue."
        ),
    ] = "none"
    hive_catalog_type: Annotated[
        Literal["none", "glue"],
        Field(description="Catalog that the tables and partitions of the layout `hive` are registered in: AWS Glue."),
    ] = "none"
    catalog_uri: Annotated[
        str, Field(description="URL of the catalog, such as sqlite:////var/lib/catalog.db or http://catalog:8181.")
    ] = ""
    catalog_name: Annotated[
        str,
        Field(
            description="Name of the catalog. PyIceberg's own settings for this name, such as those of "
            "PYICEBERG_CATALOG__LAKE__TOKEN, are used too.",
            min_length=1,
        ),
    ] = "lake"
    register_seconds: Annotated[
        float, Field(description="Time between two commits of new files to the tables (s).", gt=0)
    ] = 10.0

    def definition_of(self, topic: str, from_file: Mapping[str, Any] = NOTHING) -> Definition:
        """How the files of a topic are made now. Of several entries for one field, the last one counts. `from_file`:
        the fields that its topic file sets; entries count before these.
        """
        definition = Definition(
            table=table_name(topic, self.namespace),
            layout=self.layout,
            bucket=self.bucket,
            event_time=tuple(self.event_time),
            tombstones=self.tombstones,
            on_error=self.on_error,
            row_group_rows=self.row_group_rows,
            format=self.format,
            subject=f"{topic}-value",
            lost=self.lost,
        )._replace(**from_file)
        for entry in map(parse_entry, self.topic_settings):
            if entry.matches(topic):
                definition = definition._replace(**entry.values)
        return definition

    @property
    def has_catalog(self) -> bool:
        """Whether tables of a layout are registered."""
        return {self.catalog_type, self.hive_catalog_type} != {"none"}

    @property
    def sends_dead_letters(self) -> bool:
        """Whether a topic may have dead letters."""
        chosen = [entry.values.get("on_error") for entry in map(parse_entry, self.topic_settings)]
        return "dead_letter" in {self.on_error, *chosen}

    @field_validator("topic_settings")
    @classmethod
    def _check_topic_settings(cls, value: list[str]) -> list[str]:
        for entry in value:
            try:
                parse_entry(entry)
            except EntryError as error:
                raise PydanticCustomError("topic_settings", "{reason}", {"reason": error.reason}) from None
        return value


class Settings(shared.Settings):
    """The tables of cdc.toml that the archive reads."""

    archive: ArchiveSettings = ArchiveSettings()
