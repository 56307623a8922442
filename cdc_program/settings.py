"""The settings of all programs: one TOML file, `cdc.toml`, the environment over it, flags over the environment.

This module is the one place that names a setting, its default and its meaning; docs/configuration.md is generated
from it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal, get_origin
from uuid import UUID  # noqa: TC003 - pydantic needs it

from pydantic import BaseModel, ConfigDict, Field, SecretStr, ValidationInfo, field_validator

TablePattern = Annotated[str, Field(pattern=r"^\w+\.(\w+|\*)$")]


class Table(BaseModel):
    """One table of cdc.toml; an unknown key is an error."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    @field_validator("*", mode="before")
    @classmethod
    def _from_text(cls, value: object, info: ValidationInfo) -> object:
        """Environment and flags have only text: `a,b` is a list, and nothing is None where None is allowed."""
        field = cls.model_fields[info.field_name or ""]
        if value == "" and field.default is None:
            return None
        if isinstance(value, str) and get_origin(field.annotation) is list:
            return [item.strip() for item in value.split(",") if item.strip()]
        return value


class CassandraSettings(Table):
    """How to reach Cassandra; the publisher and the filler use it."""

    contact_points: Annotated[list[str], Field(description="Nodes of the CDC datacenter to connect to first.")] = [
        "127.0.0.1"
    ]
    port: Annotated[int, Field(description="Port of the native transport.", ge=1, le=65535)] = 9042
    username: Annotated[str, Field(description="Role to log in as; empty for no authentication.")] = ""
    password: Annotated[SecretStr, Field(description="Its password.")] = SecretStr("")
    password_file: Annotated[Path | None, Field(description="A file that holds the password.")] = None
    ssl: Annotated[bool, Field(description="Whether to speak TLS (client_encryption_options).")] = False
    ssl_ca_file: Annotated[
        Path | None, Field(description="Certificates of the authorities to trust (PEM); empty for the system's.")
    ] = None
    ssl_identity_file: Annotated[
        Path | None, Field(description="Our certificate and its private key (PEM), if the nodes ask for one.")
    ] = None
    ssl_check_hostname: Annotated[
        bool, Field(description="Whether the nodes' certificates must be of the addresses that are connected to.")
    ] = True
    connect_timeout_seconds: Annotated[float, Field(description="How long to wait for a connection.", gt=0)] = 10.0


class KafkaSettings(Table):
    """How to reach Kafka, and how the topics are made that are not there yet."""

    bootstrap_servers: Annotated[str, Field(description="Brokers to connect to first, host:port, by commas.")] = (
        "127.0.0.1:9092"
    )
    topic_prefix: Annotated[
        str, Field(description="First part of every topic's name.", pattern=r"^[a-zA-Z0-9_-]+$")
    ] = "cdc"
    security_protocol: Annotated[
        Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"], Field(description="Kafka's security.protocol.")
    ] = "PLAINTEXT"
    sasl_mechanism: Annotated[str, Field(description="Kafka's sasl.mechanism.")] = "PLAIN"
    sasl_username: Annotated[str, Field(description="SASL user.")] = ""
    sasl_password: Annotated[SecretStr, Field(description="SASL password.")] = SecretStr("")
    sasl_password_file: Annotated[Path | None, Field(description="A file that holds the SASL password.")] = None
    ssl_ca_file: Annotated[Path | None, Field(description="Certificates of the authorities to trust (PEM).")] = None
    ssl_identity_file: Annotated[
        Path | None, Field(description="Our certificate and its private key (PEM), if the brokers ask for one.")
    ] = None
    replication_factor: Annotated[
        int, Field(description="Replicas of each topic that is made; -1 for the broker's default.")
    ] = -1
    raw_partitions: Annotated[
        int, Field(description="Partitions of each raw topic that is made; fixed for its life.", ge=1)
    ] = 8
    change_partitions: Annotated[
        int, Field(description="Partitions of each change topic that is made; fixed for its life.", ge=1)
    ] = 8
    raw_retention_hours: Annotated[int, Field(description="How long raw messages are kept.", ge=1)] = 14 * 24
    min_compaction_lag_hours: Annotated[
        int, Field(description="How long every change is kept before compaction.", ge=0)
    ] = 7 * 24
    connect_timeout_seconds: Annotated[float, Field(description="How long to wait for a broker at start.", gt=0)] = 15.0


class RegistrySettings(Table):
    """Where the schema registry answers: ours (`cassandra-schematizer`) or any other with Confluent's API."""

    url: Annotated[str, Field(description="A schema registry with Confluent's API.", pattern="^https?://")] = (
        "http://127.0.0.1:8081"
    )
    username: Annotated[str, Field(description="User of HTTP basic authentication; empty for none.")] = ""
    password: Annotated[SecretStr, Field(description="Its password.")] = SecretStr("")
    password_file: Annotated[Path | None, Field(description="A file that holds the password.")] = None


class PublisherSettings(Table):
    """The sidecar of a Cassandra node, `cassandra-publisher`."""

    cdc_raw_directory: Annotated[Path, Field(description="The node's cdc_raw_directory.")] = Path(
        "/var/lib/cassandra/cdc_raw"
    )
    state_directory: Annotated[
        Path, Field(description="Where the position, the schemas and the registry ids are kept.")
    ] = Path("/var/lib/cassandra-publisher")
    keystore: Annotated[
        Path | None, Field(description="The node's JCEKS keystore, if its commit log is encrypted.")
    ] = None
    keystore_password: Annotated[SecretStr, Field(description="Its password.")] = SecretStr("")
    keystore_password_file: Annotated[Path | None, Field(description="A file that holds the password.")] = None
    key_password: Annotated[SecretStr, Field(description="The key's password, if it is not the keystore's.")] = (
        SecretStr("")
    )
    key_password_file: Annotated[Path | None, Field(description="A file that holds the key's password.")] = None
    allow_plaintext_downstream: Annotated[
        bool, Field(description="Publish an encrypted commit log, which Kafka then holds in the clear.")
    ] = False
    max_segment_mib: Annotated[
        int, Field(description="Largest commitlog_segment_size; what claims to be larger is damage.", ge=1, le=2047)
    ] = 128
    poll_interval_ms: Annotated[int, Field(description="How often cdc_raw is looked at when nothing is new.", ge=1)] = (
        50
    )
    schema_poll_seconds: Annotated[float, Field(description="How often the schema is read again.", gt=0)] = 1.0
    heartbeat_seconds: Annotated[
        float, Field(description="A raw partition quiet for this long gets a heartbeat; 0 for none.", ge=0)
    ] = 10.0
    accept_loss: Annotated[
        list[Literal["cdc_block_writes", "cdc_on_repair_enabled", "durable_writes", "replication"]],
        Field(description="Findings of `check` that would lose changes and are to be started with all the same."),
    ] = []
    include_tables: Annotated[
        list[TablePattern],
        Field(
            description="The tables to publish, of those with cdc = true: `KEYSPACE.TABLE` or `KEYSPACE.*`; none for "
            "all of them."
        ),
    ] = []
    exclude_tables: Annotated[
        list[TablePattern],
        Field(description="Tables not to publish, in the same form; over `include_tables`."),
    ] = []
    processed_segments: Annotated[
        str,
        Field(
            description="What becomes of a segment once it is complete and wholly acknowledged: `delete`, `keep`, or "
            "the folder, by its whole path, that it is moved to.",
            pattern=r"^(delete|keep|/.+)$",
        ),
    ] = "delete"
    on_full: Annotated[
        Literal["wait", "spool"],
        Field(
            description="When cdc_raw is nearly full: wait, until Cassandra refuses CDC writes on this node, or move "
            "complete segments to the spool."
        ),
    ] = "wait"
    spool_directory: Annotated[
        Path | None,
        Field(description="Where they go, a folder for each node; empty: `spool` in the state directory."),
    ] = None
    spool_max_mib: Annotated[
        int,
        Field(description="Most that the spool holds; a tenth of its disk stays free in any case.", ge=0),
    ] = 16384
    quarantine_max_mutations: Annotated[
        int,
        Field(description="Mutations that cannot be decoded and are put aside before it stops.", ge=0),
    ] = 1000
    quarantine_max_mib: Annotated[int, Field(description="Size of what is put aside before it stops.", ge=0)] = 64
    commitlog_directory: Annotated[
        Path | None,
        Field(description="The node's commitlog_directory; of use for 3.11, which counts it to cdc_total_space."),
    ] = None
    cdc_total_space_mib: Annotated[
        int, Field(description="The node's cdc_total_space, where it does not tell it (3.11); 0: its default.", ge=0)
    ] = 0
    commitlog_segment_mib: Annotated[
        int, Field(description="The node's commitlog_segment_size, where it does not tell it (3.11).", ge=1)
    ] = 32
    operations_address: Annotated[str, Field(description="Where /metrics, /health and /status are served.")] = (
        "127.0.0.1"
    )
    operations_port: Annotated[int, Field(description="Their port; 0 for none.", ge=0, le=65535)] = 9470


class FillerSettings(Table):
    """The program that bounds the latency of quiet clusters, `cassandra-filler`."""

    keyspace: Annotated[str, Field(description="The filler's own keyspace.", pattern=r"^[a-z][a-z0-9_]*$")] = (
        "cdc_filler"
    )
    table: Annotated[str, Field(description="The filler's own table.", pattern=r"^[a-z][a-z0-9_]*$")] = "filler"
    max_segment_age_seconds: Annotated[
        float,
        Field(description="How old a commit log segment may get before it is full and handed over.", ge=1),
    ] = 600.0
    period_seconds: Annotated[
        float,
        Field(description="How often it looks at the log and tells the other fillers.", gt=0, le=30),
    ] = 10.0
    max_bytes_per_second: Annotated[
        int, Field(description="Never more than this, however much the log lacks.", ge=1)
    ] = 1 << 20
    write_bytes: Annotated[int, Field(description="Size of one write at most.", ge=1, le=100_000)] = 50_000
    ttl_seconds: Annotated[int, Field(description="How long a write of it lives.", ge=1)] = 600
    commitlog_directory: Annotated[
        Path | None,
        Field(description="The node's commitlog_directory (cassandra.yaml); only 3.11 needs it."),
    ] = None
    cdc_raw_directory: Annotated[Path, Field(description="The node's cdc_raw_directory (cassandra.yaml).")] = Path(
        "/var/lib/cassandra/cdc_raw"
    )
    cdc_raw_percent: Annotated[
        int,
        Field(
            description="Nothing is written while cdc_raw holds more of what it may (cdc_total_space less a segment); "
            "the publisher's first warning comes at 50.",
            ge=1,
            le=100,
        ),
    ] = 50
    disk_free_percent: Annotated[
        int, Field(description="Nothing is written while less of the disk of cdc_raw is free.", ge=0, le=100)
    ] = 10
    cdc_total_space_mib: Annotated[
        int, Field(description="The node's cdc_total_space where it does not say it itself (3.11).", ge=1)
    ] = 4096
    commitlog_segment_mib: Annotated[
        int, Field(description="The node's commitlog_segment_size where it does not say it itself (3.11).", ge=1)
    ] = 32
    flush_seconds: Annotated[
        float, Field(description="How often a full segment is flushed out of a 3.11 node's commit log.", ge=1)
    ] = 300.0
    nodetool: Annotated[
        list[str], Field(description="The command, and its first arguments, that flushes a 3.11 node.")
    ] = ["nodetool"]
    operations_address: Annotated[str, Field(description="Where /metrics, /health and /status are served.")] = (
        "127.0.0.1"
    )
    operations_port: Annotated[int, Field(description="Their port; 0 for none.", ge=0, le=65535)] = 9471


class MaterializerSettings(Table):
    """The Spark job, `cassandra-materializer`."""

    group_id: Annotated[str, Field(description="Consumer group whose offsets are the position.")] = (
        "cassandra-materializer"
    )
    checkpoint_location: Annotated[
        str,
        Field(
            description="Folder, or URI such as s3://bucket/folder?region=eu-west-1, of changelogs and snapshots; all "
            "workers reach it."
        ),
    ] = "/var/lib/cassandra-materializer/checkpoint"
    state_directory: Annotated[Path, Field(description="Local folder of the RocksDB states of a worker.")] = Path(
        "/var/lib/cassandra-materializer/state"
    )
    spark_master: Annotated[str, Field(description="Spark's master, when not set by spark-submit.")] = (
        "local-cluster[2,1,1024]"
    )
    trigger_interval_ms: Annotated[
        int, Field(description="How long a worker collects raw messages before it folds them.", ge=0)
    ] = 100
    max_offsets_per_trigger: Annotated[
        int, Field(description="Most raw messages, of all workers, that are read and not folded yet.", ge=1)
    ] = 200_000
    open_partitions: Annotated[
        int,
        Field(
            description="Of so many raw partitions a worker keeps the producer and the state open: about 4 threads, "
            "16 files and 2 MiB each.",
            ge=1,
        ),
    ] = 64
    idle_commit_seconds: Annotated[
        float,
        Field(
            description="How long a raw partition's heartbeats wait, at most, to be folded and their offsets to be "
            "committed, where nothing else has come and nothing is due.",
            ge=0,
        ),
    ] = 60.0
    chunk_max_bytes: Annotated[int, Field(description="Most bytes of raw messages in one transaction.", ge=1)] = (
        16 * 1024 * 1024
    )
    chunk_max_messages: Annotated[int, Field(description="Most raw messages in one transaction.", ge=1)] = 20_000
    chunk_max_changes: Annotated[
        int,
        Field(
            description="Most rows, about, that one transaction reads or changes; of their bytes at most four times "
            "`chunk_max_bytes`. What reaches more, such as a wide partition's deletion, is told in several.",
            ge=1,
        ),
    ] = 40_000
    chunk_max_seconds: Annotated[float, Field(description="Longest a chunk is collected for.", gt=0)] = 10.0
    snapshot_every_versions: Annotated[
        int, Field(description="A snapshot is uploaded when the state is this many versions past the last one.", ge=1)
    ] = 50
    changelogs_kept_versions: Annotated[
        int, Field(description="Changelogs of at least this many versions are kept.", ge=1)
    ] = 100
    changelogs_kept_seconds: Annotated[
        float,
        Field(
            description="… and those of at least this many seconds: a worker that had the partition so long ago reads "
            "them and no snapshot.",
            ge=0,
        ),
    ] = 3600.0
    max_clock_jump_hours: Annotated[
        float, Field(description="A raw partition whose time leaps by more stops.", gt=0)
    ] = 24.0
    reorder_seconds: Annotated[
        float,
        Field(
            description="How long writes wait, from their arrival in Kafka, for those of other replicas that belong "
            "before them; expiry waits as long.",
            ge=0,
        ),
    ] = 0.0
    purge_margin_seconds: Annotated[
        int, Field(description="How much longer than gc_grace_seconds a tombstone is kept.", ge=0)
    ] = 3600
    stalled_publisher_seconds: Annotated[
        float,
        Field(
            description="A publisher unheard of for this long is reported: it holds purging back. A busy one is heard "
            "of every sixth publisher.heartbeat_seconds.",
            gt=0,
        ),
    ] = 3600.0
    forgotten_publishers: Annotated[
        list[UUID],
        Field(description="Host ids of publishers that will not come back: purging does not wait for them."),
    ] = []
    transaction_timeout_seconds: Annotated[
        float,
        Field(
            description="After so long the brokers abort a chunk's transaction, and it runs again; storing its "
            "changelog, and waiting for what the checkpoint location is asked for, is given up after three quarters of "
            "it. At most the brokers' transaction.max.timeout.ms.",
            ge=2,
        ),
    ] = 120.0
    offset_refresh_hours: Annotated[
        float,
        Field(
            description="A position that has not moved for so long is committed again; well below the brokers' "
            "offsets.retention.minutes, after which they forget it.",
            gt=0,
        ),
    ] = 12.0
    on_large_message: Annotated[
        Literal["stop", "without_before", "dead_letter"],
        Field(
            description="What is done with a change larger than its topic's max.message.bytes: stop the partition; "
            "leave out `before`, and stop if that is not enough; or send it to the dead-letter topic instead."
        ),
    ] = "stop"
    max_dead_letters: Annotated[
        int,
        Field(
            description="How many messages of a raw partition that cannot be read are put aside before it stops; 0 to "
            "stop at the first.",
            ge=0,
        ),
    ] = 100
    tombstones: Annotated[
        bool, Field(description="Follow each delete by a message without a value, for compaction.")
    ] = True
    schema_wait_seconds: Annotated[
        float, Field(description="How long to wait for an unknown table schema before stopping.", gt=0)
    ] = 30.0


class SchematizerSettings(Table):
    """Our schema registry, `cassandra-schematizer`."""

    host: Annotated[str, Field(description="Address to listen on.")] = "127.0.0.1"
    port: Annotated[int, Field(description="Port to listen on.", ge=0, le=65535)] = 8081
    database_url: Annotated[str, Field(description="SQLAlchemy URL of the database; SQLite is embedded.")] = (
        "sqlite:////var/lib/cassandra-schematizer/registry.db"
    )


class LogSettings(Table):
    """What every program logs to stderr."""

    format: Annotated[
        Literal["auto", "console", "json"], Field(description="auto: readable on a terminal, else JSON.")
    ] = "auto"
    level: Annotated[Literal["debug", "info", "warning", "error"], Field(description="Least level that is logged.")] = (
        "info"
    )


class Settings(Table):
    """All of cdc.toml."""

    cassandra: CassandraSettings = CassandraSettings()
    kafka: KafkaSettings = KafkaSettings()
    registry: RegistrySettings = RegistrySettings()
    publisher: PublisherSettings = PublisherSettings()
    filler: FillerSettings = FillerSettings()
    materializer: MaterializerSettings = MaterializerSettings()
    schematizer: SchematizerSettings = SchematizerSettings()
    log: LogSettings = LogSettings()
