"""Checks what the filler needs, connects its parts, and runs its periods."""

from __future__ import annotations

from time import monotonic
from typing import TYPE_CHECKING

from cdc_common.clients.cassandra import check_cdc_enabled, connect, live_settings, read_node
from cdc_common.errors.codes import CdcError, Code
from cdc_common.node.sizes import node_sizes
from cdc_common.program.metrics import Collected
from cdc_common.program.operations import Operations
from filler.flush import needs_flush
from filler.loop import Filler
from filler.node import NodeWatch
from filler.status import status_metrics

if TYPE_CHECKING:
    from cdc_common.clients.cassandra import Node
    from cdc_common.settings import NodeSettings
    from filler.settings import Settings


def run_filler(settings: Settings) -> None:
    """Write padding until interrupted; CdcError if the filler cannot start."""
    own = settings.filler
    with connect(settings.cassandra, only=settings.cassandra.contact_points[0]) as client:
        node = read_node(client)
        reported = live_settings(client)
        check_cdc_enabled(reported)
        _check_commitlog_directory(node, settings.node)
        sizes = node_sizes(reported, settings.node)
        watch = NodeWatch(settings, sizes, node.release)
        watch.measure(monotonic())
        filler = Filler(client, settings, node, watch, sizes.segment)
        operations = Operations(own.operations_address, own.operations_port, filler.status_json)
        operations.registry.register(Collected(lambda: status_metrics(filler.newest_status())))
        with operations:
            try:
                filler.run_periods(operations.beat)
            finally:
                filler.stop()


def _check_commitlog_directory(node: Node, settings: NodeSettings) -> None:
    if needs_flush(node.release) and settings.commitlog_directory is None:
        raise CdcError(
            Code.CONFIG_INVALID,
            f"node.commitlog_directory is not set, but Cassandra {node.release} has its newest segments only there.",
            "Set it to the node's commitlog_directory (cassandra.yaml).",
        )
