"""Checks what the publisher needs, with one clear error for each missing thing, then builds and runs the publisher."""

from __future__ import annotations

from functools import partial
from time import monotonic
from typing import TYPE_CHECKING

import structlog

from cassandra_storage.files.segments import remove_orphaned_indexes
from cdc_common.clients.cassandra import check_cdc_enabled, connect, live_settings, read_node
from cdc_common.node.snapshot_rows import SnapshotRows, datacenter_hosts
from cdc_common.program.compiled import warn_if_not_compiled
from cdc_common.program.metrics import Collected
from cdc_common.program.operations import Operations
from publisher import state_files
from publisher.kafka.sender import Sender
from publisher.log import cdc_raw
from publisher.log.position import Positions
from publisher.log.segment_disposal import open_segment_disposal
from publisher.log.spool import open_spool
from publisher.log.tail import SegmentTails
from publisher.loop import Publisher
from publisher.losses.loss_watch import LossWatch
from publisher.monitoring.status import metrics
from publisher.monitoring.status_collector import StatusCollector, is_released_when_flushed
from publisher.mutations.quarantine import open_quarantine
from publisher.own_connection import schema_file
from publisher.parts import KafkaParts, NodeParts
from publisher.progress import Progress
from publisher.snapshot.connections.node import durable_seconds
from publisher.snapshot.state.cluster import SnapshotGroup
from publisher.snapshot.state.records import Records
from publisher.snapshot.supervisor import Supervisor
from publisher.tables.cdc_switches import ANY_SEGMENT
from publisher.tables.node_schema import NodeSchema
from publisher.tables.row_ends import LogSegments
from publisher.tables.selection import selection_from
from publisher.topics.open_topics import make_raw_topics
from publisher.topics.waiting import WaitingTables

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path
    from uuid import UUID

    from cassandra_storage.formats.commitlog.sections import Codecs
    from cdc_common.clients.cassandra import CassandraClient, Node
    from cdc_common.settings import NodeSettings
    from publisher.settings import Settings

log = structlog.get_logger(__name__)


def run_publisher(settings: Settings) -> None:
    """Publish until interrupted; CdcError if the publisher cannot start or continue."""
    own = settings.publisher
    warn_if_not_compiled()
    with connect(settings.cassandra, only=settings.cassandra.contact_points[0]) as client:
        node = read_node(client)
        reported = live_settings(client)
        check_cdc_enabled(reported)
        _check_cdc_raw(settings.node.cdc_raw_directory, reported)
        loss_watch = LossWatch(client, node, settings)
        loss_watch.check_at_start(is_first=not (own.state_directory / "position.json").exists())
        loss_watch.check_again()
        codecs = cdc_raw.open_codecs(own, settings.node.cdc_raw_directory)
        state_files.make_folder(own.state_directory)
        with state_files.locked(own.state_directory):
            node_parts = _open_node_parts(settings, client, loss_watch, codecs, reported or {})
            sender = Sender(settings.kafka, keeps_refusals=True)
            kafka_parts = KafkaParts(sender, make_raw_topics(settings, node.cluster, sender))
            status = StatusCollector(settings.node, node_parts, sender, Progress(monotonic()))
            operations = Operations(own.operations_address, own.operations_port, status.newest_as_json)
            operations.registry.register(Collected(lambda: metrics(status.newest())))
            publisher = Publisher(own, node_parts, kafka_parts, status, operations.beat)
            with operations:
                publisher.open()
                _log_ready(node, node_parts)
                publisher.run()


def _open_node_parts(
    settings: Settings, client: CassandraClient, loss_watch: LossWatch, codecs: Codecs, reported: Mapping[str, str]
) -> NodeParts:
    own, host_id = settings.publisher, loss_watch.node.host_id
    filler = settings.filler.keyspace, settings.filler.table
    schema = NodeSchema(
        schema_file(settings),
        client.rows,
        filler,
        selection_from(own),
        LogSegments(
            partial(_oldest_segment, settings.node, loss_watch), partial(_newest_segment, settings.node, loss_watch)
        ),
    )
    schema.load()
    positions = Positions.load(own.state_directory / "position.json", host_id)
    in_cdc_raw = {file.id for file in cdc_raw.list_cdc_segments(settings.node.cdc_raw_directory)}
    spool = open_spool(own, host_id, lambda segment: positions.is_finished(segment) or segment in in_cdc_raw)
    return NodeParts(
        host_id=host_id.bytes,
        schema=schema,
        tails=SegmentTails(settings.node.cdc_raw_directory, positions, codecs, own.max_segment_mib << 20, spool),
        positions=positions,
        quarantine=open_quarantine(own),
        spool=spool,
        disposal=open_segment_disposal(own),
        loss_watch=loss_watch,
        snapshots=_open_snapshots(settings, client, host_id),
        waiting=WaitingTables.load(own.state_directory / "waiting.json", positions),
        settle_seconds=2 * settings.materializer.truncate_seconds,
        durable_seconds=None if is_released_when_flushed(loss_watch.node) else durable_seconds(reported),
    )


def _open_snapshots(settings: Settings, client: CassandraClient, host_id: UUID) -> Supervisor:
    records = Records(settings.publisher.state_directory)
    group = SnapshotGroup(SnapshotRows(client.rows, client.write, settings.filler.keyspace), records, host_id)
    return Supervisor(settings, records, group, partial(datacenter_hosts, client))


def _newest_segment(settings: NodeSettings, loss_watch: LossWatch) -> int:
    """The id of the newest segment that the node has begun. 3.11 begins them outside of cdc_raw: all ids are below the
    result if it is unknown where.
    """
    known = _known_segments(settings, loss_watch)
    return ANY_SEGMENT if known is None else max(known, default=0)


def _oldest_segment(settings: NodeSettings, loss_watch: LossWatch) -> int:
    """The id of the oldest segment that the publisher may still read; 0 if that is unknown."""
    known = _known_segments(settings, loss_watch)
    return 0 if known is None else min(known, default=ANY_SEGMENT)


def _known_segments(settings: NodeSettings, loss_watch: LossWatch) -> list[int] | None:
    files = cdc_raw.list_cdc_segments(settings.cdc_raw_directory)
    if is_released_when_flushed(loss_watch.node):
        if settings.commitlog_directory is None:
            return None
        files += cdc_raw.list_cdc_segments(settings.commitlog_directory, "node.commitlog_directory")
    return [file.id for file in files]


def _check_cdc_raw(folder: Path, reported: Mapping[str, str] | None) -> None:
    """The folder must exist, and should be the node's."""
    cdc_raw.list_cdc_segments(folder)
    remove_orphaned_indexes(folder)
    nodes_folder = (reported or {}).get("cdc_raw_directory", str(folder))
    if nodes_folder != str(folder):
        log.warning("the node has another cdc_raw_directory", node=nodes_folder, publisher=str(folder))


def _log_ready(node: Node, node_parts: NodeParts) -> None:
    log.info(
        "ready",
        host_id=str(node.host_id),
        cluster=node.cluster,
        cassandra=node.release,
        tables=sorted(table.table.qualified_name for table in node_parts.schema.current_tables()),
        excluded_tables=node_parts.schema.excluded_names(),
        refused_tables=sorted(node_parts.schema.refusals()),
        waiting_tables=sorted(table.name for table in node_parts.waiting.tables.values()),
        published_up_to=list(node_parts.positions.published_up_to),
    )
