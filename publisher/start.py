"""Checks what the publisher needs, one clear error for each thing missing, and puts its parts together."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import structlog

from cassandra_files.segments import remove_orphaned_indexes
from cdc_program.cassandra import check_cdc_enabled, connect, read_node
from cdc_program.errors import CdcError, Code
from publisher import cdc_raw, state_files
from publisher.channels import Channels, RegistryIds
from publisher.check import Watch
from publisher.kafka import Sender, Topics
from publisher.position import Positions
from publisher.publish import Publisher
from publisher.schema import Schema
from publisher.tail import Tails

if TYPE_CHECKING:
    from pathlib import Path

    from cdc_program.cassandra import CassandraClient
    from cdc_program.registry import RegistryClient
    from cdc_program.settings import RegistrySettings, Settings

log = structlog.get_logger(__name__)


def run(settings: Settings) -> None:
    """Publish until interrupted; CdcError if it cannot begin or go on."""
    own = settings.publisher
    with connect(settings.cassandra, only=settings.cassandra.contact_points[0]) as client:
        node = read_node(client)
        check_cdc_enabled(client)
        _check_cdc_raw(own.cdc_raw_directory, client)
        watch = Watch(client, node, own)
        watch.start()
        codecs = cdc_raw.open_codecs(own)
        state_files.make_folder(own.state_directory)
        with state_files.locked(own.state_directory):
            schema = Schema(
                own.state_directory / "schema.json", client.rows, (settings.filler.keyspace, settings.filler.table)
            )
            schema.load()
            positions = Positions.load(own.state_directory / "position.json", node.host_id)
            sender = Sender(settings.kafka)
            publisher = Publisher(
                settings=own,
                host_id=node.host_id.bytes,
                schema=schema,
                channels=_channels(settings, node.cluster, sender),
                sender=sender,
                positions=positions,
                watch=watch,
                tails=Tails(own.cdc_raw_directory, positions, codecs, own.max_segment_mib << 20),
            )
            publisher.follow_schema()
            log.info(
                "ready",
                host_id=str(node.host_id),
                cluster=node.cluster,
                cassandra=node.release,
                tables=sorted(table.table.qualified_name for table in schema.current()),
                published_up_to=list(positions.published_up_to),
            )
            publisher.run()


def _channels(settings: Settings, cluster: str, sender: Sender) -> Channels:
    registry = settings.registry
    ids = RegistryIds(settings.publisher.state_directory / "registry.json", registry.url, partial(_registry, registry))
    channels = Channels(settings.kafka.topic_prefix, cluster, Topics(settings.kafka), sender, ids)
    channels.start()
    return channels


def _registry(settings: RegistrySettings) -> RegistryClient:
    """Imported only when a subject's id is not known yet: it takes 15 MB."""
    from cdc_program.registry import RegistryClient  # noqa: PLC0415 - see above

    return RegistryClient(settings)


def _check_cdc_raw(folder: Path, client: CassandraClient) -> None:
    """The folder is there and is the node's."""
    cdc_raw.segments(folder)
    remove_orphaned_indexes(folder)
    try:
        rows = client.rows("SELECT value FROM system_views.settings WHERE name = 'cdc_raw_directory'")
    except CdcError as error:
        if error.code is Code.CASSANDRA_UNREACHABLE:
            raise
        return
    if rows and rows[0]["value"] != str(folder):
        log.warning("the node names another cdc_raw directory", node=rows[0]["value"], ours=str(folder))
