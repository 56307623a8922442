"""Checks what the filler needs, puts its parts together, and goes round once a period."""

from __future__ import annotations

from time import monotonic, sleep
from typing import TYPE_CHECKING

import structlog

from cdc_program.cassandra import check_cdc_enabled, connect, live_settings, read_node
from cdc_program.errors import CdcError, Code
from cdc_program.metrics import Collected
from cdc_program.operations import Operations
from filler.filler import Filler
from filler.flush import needs_flush
from filler.node import NodeWatch, limits
from filler.status import metrics

if TYPE_CHECKING:
    from cdc_program.cassandra import Node
    from cdc_program.settings import FillerSettings, Settings

COMPLAINT_SECONDS = 60.0
_PASSING = frozenset(
    {Code.CASSANDRA_UNREACHABLE, Code.CASSANDRA_QUERY, Code.CDC_DISABLED, Code.NODETOOL_FAILED, Code.CDC_RAW_MISSING}
)

log = structlog.get_logger(__name__)


def run(settings: Settings) -> None:
    """Write until interrupted; CdcError if it cannot begin."""
    own = settings.filler
    with connect(settings.cassandra, only=settings.cassandra.contact_points[0]) as client:
        node = read_node(client)
        told = live_settings(client)
        check_cdc_enabled(told)
        _check_folder(node, own)
        found = limits(told, own)
        watch = NodeWatch(own, found, node.release)
        watch.look(monotonic())
        filler = Filler(client, own, node, watch, found.segment_bytes)
        operations = Operations(own.operations_address, own.operations_port, filler.describe)
        operations.registry.register(Collected(lambda: metrics(filler.newest())))
        with operations:
            try:
                _go_round(filler, own.period_seconds, operations)
            finally:
                filler.stop()


def _check_folder(node: Node, settings: FillerSettings) -> None:
    if needs_flush(node.release) and settings.commitlog_directory is None:
        raise CdcError(
            Code.CONFIG_INVALID,
            f"filler.commitlog_directory is not set, and Cassandra {node.release} shows its segments nowhere else.",
            "Set it to the node's commitlog_directory (cassandra.yaml).",
        )


def _go_round(filler: Filler, period: float, operations: Operations) -> None:
    """What fails is said, and tried again: the next period is a fresh start."""
    complained_at = -COMPLAINT_SECONDS
    while True:
        operations.beat()
        now = monotonic()
        try:
            filler.period(now, now + period)
        except CdcError as error:
            if error.code not in _PASSING:
                raise
            filler.fail(error)
            if now - complained_at >= COMPLAINT_SECONDS:
                complained_at = now
                log.warning("left out", code=error.code.text, problem=error.problem, fix=error.fix)
        sleep(max(0.0, now + period - monotonic()))
