"""The settings of `cassandra-publisher`."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field, SecretStr

from cdc_common.settings import shared
from cdc_common.settings.base import Conflict, Table
from cdc_common.settings.tables import View

if TYPE_CHECKING:
    from collections.abc import Iterator

TablePattern = Annotated[str, Field(pattern=r"^\w+\.(\w+|\*)$")]


class PublisherSettings(Table):
    """The publisher, `cassandra-publisher`, which runs on the machine of each Cassandra node."""

    state_directory: Annotated[
        Path, Field(description="Directory of the publisher's position, table schemas and registry ids.")
    ] = Path("/var/lib/cassandra-publisher")
    keystore: Annotated[
        Path | None, Field(description="The node's JCEKS keystore, if its commit log is encrypted.")
    ] = None
    keystore_password: Annotated[SecretStr, Field(description="Password of the keystore.")] = SecretStr("")
    keystore_password_file: Annotated[Path | None, Field(description="File that holds the keystore's password.")] = None
    key_password: Annotated[SecretStr, Field(description="Password of the key, if it differs from the keystore's.")] = (
        SecretStr("")
    )
    key_password_file: Annotated[Path | None, Field(description="File that holds the key's password.")] = None
    allow_plaintext_downstream: Annotated[
        bool, Field(description="Publish an encrypted commit log. Kafka then stores its content unencrypted.")
    ] = False
    max_segment_mib: Annotated[
        int,
        Field(
            description="Largest commitlog_segment_size to expect (MiB). A segment that claims more is damaged.",
            ge=1,
            le=2047,
        ),
    ] = 128
    poll_interval_ms: Annotated[
        int, Field(description="Interval at which the publisher polls an idle cdc_raw directory (ms).", ge=1)
    ] = 50
    schema_poll_seconds: Annotated[
        float, Field(description="Interval at which the publisher polls the node's schema (s).", gt=0)
    ] = 1.0
    heartbeat_seconds: Annotated[
        float,
        Field(
            description="Interval at which the publisher sends its watermark: how far Kafka has the node's log (s). "
            "0 for never; then rows of idle tables do not expire, and nothing is purged.",
            ge=0,
        ),
    ] = 10.0
    drop_seconds: Annotated[
        float,
        Field(
            description="Time from a DROP TABLE until the publisher ends the table's rows (s). Other publishers may "
            "still send changes of the table in this time. The publisher does not wait if the table is created again "
            "with the same id.",
            ge=0,
        ),
    ] = 60.0
    accept_loss: list[Literal["cdc_block_writes", "cdc_on_repair_enabled", "durable_writes", "replication"]] = Field(
        default=[],
        description="Checks of `cassandra-publisher check` that may fail: the publisher starts despite them, and "
        "loses changes.",
    )
    include_tables: list[TablePattern] = Field(
        default=[],
        description="Tables with cdc = true to publish: `KEYSPACE.TABLE` or `KEYSPACE.*`. Empty for all.",
    )
    exclude_tables: list[TablePattern] = Field(
        default=[], description="Tables not to publish, in the same form. Overrides `include_tables`."
    )
    processed_segments: Annotated[
        str,
        Field(
            description="Handling of a complete segment once Kafka has acknowledged all of it: `delete`, `keep`, or "
            "the absolute path of a directory to move it to.",
            pattern=r"^(delete|keep|/.+)$",
        ),
    ] = "delete"
    on_full: Annotated[
        Literal["wait", "spool"],
        Field(
            description="Action when cdc_raw is nearly full. `wait`: none; Cassandra rejects CDC writes on this node "
            "once it is full. `spool`: move complete segments to the spool."
        ),
    ] = "wait"
    spool_directory: Annotated[
        Path | None,
        Field(
            description="Directory of the spool, with a subdirectory for each node; empty for `spool` in "
            "`state_directory`."
        ),
    ] = None
    spool_max_mib: Annotated[
        int,
        Field(
            description="Maximum size of the spool (MiB). The publisher always leaves a tenth of the disk free.", ge=0
        ),
    ] = 16384
    waiting_max_percent: Annotated[
        int,
        Field(
            description="Maximum share of cdc_raw, and of the spool if it is on, that segments kept only for waiting "
            "tables may take (%). Above it the table with the oldest one is marked as needing a snapshot, and its "
            "segments are let go.",
            ge=0,
            le=100,
        ),
    ] = 25
    quarantine_max_mutations: Annotated[
        int,
        Field(description="Maximum number of quarantined mutations. The table of one more waits.", ge=0),
    ] = 1000
    quarantine_max_mib: Annotated[
        int, Field(description="Maximum size of the quarantine (MiB). The table of more waits.", ge=0)
    ] = 64
    snapshot: Annotated[
        Literal["never", "when_needed", "initial"],
        Field(
            description="When the publisher takes a snapshot of a table by itself. `never`: only on the command "
            "`cassandra-publisher snapshot`. `when_needed`: if the table is marked as needing one. `initial`: also "
            "once for each table that never had one."
        ),
    ] = "never"
    snapshot_max_mib_per_second: Annotated[
        float,
        Field(
            description="Maximum rate of a snapshot, before compression (MiB/s); 0 for no limit, not even on a busy "
            "node.",
            ge=0,
        ),
    ] = 10.0
    snapshot_max_lag_seconds: Annotated[
        float,
        Field(
            description="Maximum lag of the materializer on the raw topic during a snapshot (s); 0 for no limit. Above "
            "it the snapshot waits until the lag is half of it. It must be less than the topic's retention.",
            ge=0,
        ),
    ] = 3600.0
    snapshot_max_lag_mib: Annotated[
        float,
        Field(
            description="Maximum lag of the materializer on the raw topic during a snapshot (MiB of messages before "
            "compression); 0 for no limit. Above it the snapshot waits until the lag is half of it.",
            ge=0,
        ),
    ] = 10_240.0
    snapshot_busy_load_per_core: Annotated[
        float,
        Field(
            description="One-minute load average of the machine for each core above which the node is busy; 0 to "
            "ignore it. On a busy node the rate of a snapshot is halved every 5 s, down to an eighth of "
            "`snapshot_max_mib_per_second`.",
            ge=0,
        ),
    ] = 1.0
    snapshot_busy_waiting_requests: Annotated[
        int,
        Field(
            description="Number of reads, or of writes, waiting for a thread of Cassandra above which the node is "
            "busy; 0 to ignore them.",
            ge=0,
        ),
    ] = 15
    snapshot_busy_waiting_compactions: Annotated[
        int,
        Field(
            description="Number of waiting compactions (`nodetool compactionstats`, once a minute) above which the "
            "node is busy; 0 to ignore them.",
            ge=0,
        ),
    ] = 100
    snapshot_min_free_percent: Annotated[
        float,
        Field(
            description="Minimum free space of each data directory's disk (%); 0 for none. Below it a snapshot removes "
            "its links to SSTables, waits until 1 % more is free, and continues with new ones.",
            ge=0,
            lt=100,
        ),
    ] = 10.0
    snapshot_part_gib: Annotated[
        float,
        Field(
            description="Size of a table's SSTables (GiB) above which a snapshot sends it in parts, token range by "
            "token range. Each part has its own links to SSTables, which are removed at its end; 0 for one part.",
            ge=0,
        ),
    ] = 64.0
    snapshot_data_directories: list[Path] = Field(
        default=[],
        description="The node's data_file_directories (cassandra.yaml). Empty for those that the node reports. "
        "Cassandra 3.11 reports none; the default is then /var/lib/cassandra/data.",
    )
    nodetool: list[str] = Field(
        default=["nodetool"],
        min_length=1,
        description="Command that runs nodetool, with its first arguments. Snapshots need it.",
    )
    operations_address: Annotated[
        str, Field(description="Address that serves /metrics, /health and /status.", min_length=1)
    ] = "127.0.0.1"
    operations_port: Annotated[int, Field(description="Port of that address; 0 for none.", ge=0, le=65535)] = 9470

    def conflicts(self, shared: shared.Settings) -> Iterator[Conflict]:
        """Folders for segments that are taken out of cdc_raw: Cassandra counts all that is below it."""
        cdc_raw = shared.node.cdc_raw_directory
        folders = {
            "publisher.processed_segments": Path(self.processed_segments),
            "publisher.spool_directory": self.spool_directory,
            "publisher.state_directory": self.state_directory,
        }
        for name, folder in folders.items():
            if folder is not None and folder.is_absolute() and folder.is_relative_to(cdc_raw):
                yield Conflict(
                    name,
                    f"is in node.cdc_raw_directory, {cdc_raw}, whose size Cassandra limits",
                    "Set it to a folder outside of it.",
                )


class FillerView(View):
    """The table that the publisher does not publish, and the keyspace in which publishers coordinate."""

    keyspace: str
    table: str


class MaterializerView(View):
    """The consumer of the raw topics, and how long it waits for writes."""

    group_id: str
    reorder_seconds: float
    truncate_seconds: float


class Settings(shared.Settings):
    """The tables of cdc.toml that the publisher reads."""

    publisher: PublisherSettings = PublisherSettings()
    filler: FillerView = Field(default_factory=partial(FillerView.of, "filler"))
    materializer: MaterializerView = Field(default_factory=partial(MaterializerView.of, "materializer"))
