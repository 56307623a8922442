"""Checks what the publisher needs, one clear error for each thing missing, and puts its parts together."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import structlog

from cassandra_files.segments import remove_orphaned_indexes
from cdc_program.cassandra import check_cdc_enabled, connect, live_settings, read_node
from cdc_program.compiled import warn_if_not_compiled
from cdc_program.metrics import Collected
from cdc_program.operations import Operations
from publisher import cdc_raw, state_files
from publisher.kafka import Sender, Topics
from publisher.loop import Publisher
from publisher.loss_watch import Watch
from publisher.position import Positions
from publisher.quarantine import open_quarantine
from publisher.raw_topics import Channels, RegistryIds
from publisher.schema import Schema
from publisher.segment_disposal import open_disposal
from publisher.selection import selection_of
from publisher.spool import open_spool
from publisher.status import metrics
from publisher.status_collector import Overview, Parts
from publisher.tail import Tails

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from cdc_program.registry import RegistryClient
    from cdc_program.settings import RegistrySettings, Settings

log = structlog.get_logger(__name__)


def run(settings: Settings) -> None:
    """Publish until interrupted; CdcError if it cannot begin or go on."""
    own = settings.publisher
    warn_if_not_compiled()
    with connect(settings.cassandra, only=settings.cassandra.contact_points[0]) as client:
        node = read_node(client)
        told = live_settings(client)
        check_cdc_enabled(told)
        _check_cdc_raw(settings.node.cdc_raw_directory, told)
        watch = Watch(client, node, settings)
        watch.start()
        codecs = cdc_raw.open_codecs(own, settings.node.cdc_raw_directory)
        state_files.make_folder(own.state_directory)
        with state_files.locked(own.state_directory):
            schema = Schema(
                own.state_directory / "schema.json",
                client.rows,
                (settings.filler.keyspace, settings.filler.table),
                selection_of(own),
            )
            schema.load()
            positions = Positions.load(own.state_directory / "position.json", node.host_id)
            sender = Sender(settings.kafka)
            spool = open_spool(own, node.host_id)
            tails = Tails(settings.node.cdc_raw_directory, positions, codecs, own.max_segment_mib << 20, spool)
            quarantine = open_quarantine(own)
            parts = Parts(schema, sender, positions, tails, watch, quarantine, spool)
            overview = Overview(node, told, settings.node, parts)
            operations = Operations(own.operations_address, own.operations_port, overview.describe)
            operations.registry.register(Collected(lambda: metrics(overview.newest())))
            publisher = Publisher(
                settings=own,
                host_id=node.host_id.bytes,
                schema=schema,
                channels=make_channels(settings, node.cluster, sender),
                sender=sender,
                positions=positions,
                watch=watch,
                tails=tails,
                quarantine=quarantine,
                spool=spool,
                disposal=open_disposal(own),
                overview=overview,
                beat=operations.beat,
            )
            with operations:
                publisher.open()
                log.info(
                    "ready",
                    host_id=str(node.host_id),
                    cluster=node.cluster,
                    cassandra=node.release,
                    tables=sorted(table.table.qualified_name for table in schema.current()),
                    left_out=schema.left_out(),
                    published_up_to=list(positions.published_up_to),
                )
                publisher.run()


def make_channels(settings: Settings, cluster: str, sender: Sender) -> Channels:
    """Not started yet, for Kafka may be away; CdcError if the registry must be asked and is away or refuses."""
    registry = settings.registry
    ids = RegistryIds(settings.publisher.state_directory / "registry.json", registry.url, partial(_registry, registry))
    ids.check()
    return Channels(settings.kafka.topic_prefix, cluster, Topics(settings.kafka), sender, ids)


def _registry(settings: RegistrySettings) -> RegistryClient:
    """Imported only when a subject's id is not known yet: it takes 15 MB."""
    from cdc_program.registry import RegistryClient  # noqa: PLC0415 - see above

    return RegistryClient(settings)


def _check_cdc_raw(folder: Path, settings: Mapping[str, str] | None) -> None:
    """The folder is there and is the node's."""
    cdc_raw.segments(folder)
    remove_orphaned_indexes(folder)
    named = (settings or {}).get("cdc_raw_directory", str(folder))
    if named != str(folder):
        log.warning("the node names another cdc_raw directory", node=named, ours=str(folder))
