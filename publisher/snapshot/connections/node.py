"""Reads from the node what a snapshot needs: data directories, hosts, the table's options, and the end of the log."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from cassandra_storage.formats.commitlog.segment import CommitLogPosition
from cdc_common.clients.cassandra import live_settings
from cdc_common.errors.codes import CdcError, Code
from publisher.log.cdc_raw import list_cdc_segments
from publisher.losses.loss_rules import sync_period_ms

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from uuid import UUID

    from cassandra_storage.formats.schema.tables import TableMetadata
    from cassandra_storage.formats.sstable.metadata import StatsMetadata
    from cdc_common.clients.cassandra import CassandraClient
    from cdc_common.settings import NodeSettings
    from publisher.settings import PublisherSettings

_DEFAULT_SYNC_SECONDS = 10.0
_DEFAULT_DATA = Path("/var/lib/cassandra/data")


class Published(NamedTuple):
    """The part of the node's log that Kafka has acknowledged."""

    # a place: all before it
    up_to: tuple[int, int]
    # a time (s; 0: none): all that was durable then
    clock: float


def data_directories(client: CassandraClient, settings: PublisherSettings) -> list[Path]:
    """Return the node's data directories. CdcError CONFIG_INVALID if none of them exists, or one cannot be read."""
    given = settings.snapshot_data_directories or _reported_directories(client) or [_DEFAULT_DATA]
    for folder in given:
        try:
            next(folder.iterdir(), None)
        except OSError as error:
            raise CdcError(
                Code.CONFIG_INVALID,
                f"The node's data directory {folder} cannot be read: {error.strerror}.",
                "Set publisher.snapshot_data_directories to its data_file_directories, and let the publisher's user"
                " read them: the group of Cassandra's user may read SSTables.",
            ) from error
    return given


def sync_seconds(client: CassandraClient) -> float:
    """See durable_seconds."""
    return durable_seconds(live_settings(client) or {})


def durable_seconds(reported: Mapping[str, str]) -> float:
    """Return the seconds after which a write is durable in the log, also on a busy disk: three sync periods. reported:
    the node's live settings.
    """
    return 3 * (sync_period_ms(reported) / 1000 or _DEFAULT_SYNC_SECONDS)


def _reported_directories(client: CassandraClient) -> list[Path]:
    value = (live_settings(client) or {}).get("data_file_directories", "")
    return [Path(part.strip()) for part in value.strip("[]").split(",") if part.strip()]


def broadcast_address(client: CassandraClient) -> str:
    """Return the address by which nodetool names this node."""
    return str(client.rows("SELECT broadcast_address FROM system.local WHERE key = 'local'")[0]["broadcast_address"])


def purges_only_repaired(client: CassandraClient, table: TableMetadata) -> bool:
    """The table's compaction option only_purge_repaired_tombstones."""
    rows = client.rows(
        "SELECT compaction FROM system_schema.tables WHERE keyspace_name = %s AND table_name = %s",
        (table.keyspace, table.name),
    )
    options = dict(rows[0]["compaction"] or {}) if rows else {}
    return str(options.get("only_purge_repaired_tombstones", "false")).lower() == "true"


def newest_segment(settings: NodeSettings) -> int:
    """The id of the newest segment that the node has begun, as far as its directories show."""
    folders = [settings.cdc_raw_directory, settings.commitlog_directory]
    return max((file.id for folder in folders if folder for file in list_cdc_segments(folder)), default=0)


def own_flush(stats: Iterable[StatsMetadata], host_id: UUID) -> tuple[int, int]:
    """The place in this node's log up to which its SSTables have all that it wrote to the table, as far as SSTables say
    which node's log they are from; (0, 0) where none does.
    """
    own = [stat.commit_log_upper_bound for stat in stats if stat.originating_host_id == host_id]
    return max([(0, 0), *own])


def last_flush(bounds: Iterable[tuple[int, int]], newest: int) -> CommitLogPosition:
    """The place in this node's log up to which the newest of its SSTables holds all writes. `bounds`: of the SSTables
    (StatsMetadata.commit_log_upper_bound); one that came from another node has that node's segments, and those that
    this node has not begun say nothing about its log.
    """
    own = [CommitLogPosition(*bound) for bound in bounds if 0 <= bound[0] <= newest]
    return max(own, default=CommitLogPosition(0, 0))
