"""Collects the publisher's status once a second, and warns while cdc_raw fills up."""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC, datetime
from time import time
from typing import TYPE_CHECKING, Any

import structlog

import cdc_native
from cdc_common.errors.codes import Code
from cdc_common.node.sizes import node_sizes
from publisher.log.cdc_raw import list_cdc_segments
from publisher.log.space import SpaceAlerts, SpaceWatch
from publisher.monitoring.memory import resident_bytes
from publisher.monitoring.status import Status

if TYPE_CHECKING:
    from pathlib import Path

    from cdc_common.clients.cassandra import Node
    from cdc_common.settings import NodeSettings
    from publisher.kafka.sender import Sender
    from publisher.log.space import FullSpan, Space
    from publisher.parts import NodeParts
    from publisher.progress import Progress

log = structlog.get_logger(__name__)


class StatusCollector:
    """Keeps the newest status, which other threads may read."""

    def __init__(self, settings: NodeSettings, node_parts: NodeParts, sender: Sender, progress: Progress) -> None:
        self.progress = progress
        self._settings = settings
        self._node_parts = node_parts
        self._sender = sender
        self._alerts = SpaceAlerts()
        self._node = node_parts.loss_watch.node
        self._status = Status(str(self._node.host_id), self._node.cluster, self._node.release, cdc_native.is_enabled())
        self._sizes = node_sizes(node_parts.loss_watch.live_settings, settings)
        self._space = SpaceWatch(self._sizes.cdc_total, self._sizes.segment)
        if self._sizes.is_default:
            log.warning(
                "the node does not report its cdc_total_space: assuming Cassandra's default",
                mib=self._sizes.cdc_total >> 20,
                setting="node.cdc_total_space_mib",
            )

    def update_node(self) -> None:
        """Take the node's release and live settings from the loss watch: it may have been upgraded or restarted."""
        node = self._node_parts.loss_watch.node
        if node.release != self._node.release:
            log.info("the node has a new version", cassandra=node.release, before=self._node.release)
        self._node = node
        self._status = self._status._replace(cassandra=node.release)
        self._sizes = node_sizes(self._node_parts.loss_watch.live_settings, self._settings)
        self._space.set_allowance(self._sizes.cdc_total, self._sizes.segment)

    def newest(self) -> Status:
        return self._status

    def newest_as_json(self) -> dict[str, Any]:
        return self._status.to_json()

    def collect(self, now: float) -> Space:
        """Collect the status, and return the space in cdc_raw. `now`: of the monotonic clock."""
        own = self._settings
        sizes = segment_sizes(own.cdc_raw_directory, unflushed_folder(self._node, own), self._sizes.segment)
        waiting = self.progress.current_problem(now)
        space = self._space.update(now, sizes, is_waiting=bool(waiting))
        self._status = self._make_status(space, len(sizes), waiting)
        self._warn_of_full_space(space)
        return space

    def _make_status(self, space: Space, segment_count: int, waiting: str) -> Status:
        node, progress, sender, spool = self._node_parts, self.progress, self._sender, self._node_parts.spool
        return Status(
            host_id=self._status.host_id,
            cluster=self._status.cluster,
            cassandra=self._status.cassandra,
            is_compiled=self._status.is_compiled,
            tables=len(node.schema.current_tables()),
            mutations=progress.mutations,
            native_mutations=progress.native_mutations,
            messages=progress.messages,
            bytes=progress.bytes,
            excluded_updates=progress.excluded_updates,
            excluded_tables=tuple(node.schema.excluded_names()),
            refused_tables=tuple(f"{name}: {reason}" for name, reason in node.schema.refusals().items()),
            waiting_tables=node.waiting.shown(),
            in_flight=len(sender),
            deliveries=sender.acknowledged,
            delivery_seconds=sender.latency_seconds,
            lag_bytes=node.tails.unacknowledged_bytes(),
            lag_seconds=_seconds_since(node.positions.clock),
            log_latency_seconds=progress.log_latency,
            filler_rows=progress.filler_rows,
            filler_rows_seconds=progress.filler_rows_seconds,
            segments=segment_count,
            used=space.used,
            full_at=space.full_at,
            arriving=space.arriving,
            leaving=space.leaving,
            seconds_to_full=space.seconds_to_full,
            seconds_to_full_if_stopped=space.seconds_without_drain,
            quarantined=len(node.quarantine),
            spool_segments=len(spool.files()),
            spool_bytes=spool.bytes,
            spool_max=spool.max_bytes if spool.is_on else 0,
            spool_problem=spool.problem,
            spooled=spool.moved,
            memory=resident_bytes(),
            waiting=waiting,
            losses=node.loss_watch.current_losses,
            need_snapshot=tuple(node.schema.names_needing_snapshot()),
            snapshots=node.snapshots.shown(),
        )

    def _warn_of_full_space(self, space: Space) -> None:
        crossed = self._alerts.find_crossed(space)
        if crossed is not None:
            log.warning(
                "cdc_raw is filling up",
                code=Code.CDC_RAW_FILLING.text,
                percent=crossed,
                used_mib=space.used >> 20,
                full_at_mib=space.full_at >> 20,
                full_in_seconds=space.seconds_to_full and round(space.seconds_to_full),
                waiting=self._status.waiting,
                fix="Restore Kafka, or raise cdc_total_space. When cdc_raw is full, the node refuses CDC writes.",
            )
        span = self._alerts.find_full_span(space, time())
        if span is not None:
            self._log_full_span(span)

    def _log_full_span(self, span: FullSpan) -> None:
        """Log a time in which cdc_raw was full. 4.0 writes no hints for refused writes: only a repair restores them."""
        tables = sorted(table.table.qualified_name for table in self._node_parts.schema.current_tables())
        needs_repair = self._node.release.startswith("4.0")
        log.error(
            "cdc_raw was full: the node refused CDC writes",
            code=Code.CDC_RAW_WAS_FULL.text,
            since=("before " if span.began_before else "") + _iso(span.start),
            until=_iso(span.end),
            tables=tables,
            fix="Run nodetool repair on this node for these tables."
            if needs_repair
            else "None if other nodes' hints reach this node (nodetool statushandoff); otherwise repair the tables.",
        )


def segment_sizes(folder: Path, unflushed: Path | None, segment_size: int) -> dict[int, int]:
    """The bytes of each segment in cdc_raw with its index, by id. Segments in the folder `unflushed` count in full."""
    found = [] if unflushed is None else list_cdc_segments(unflushed, "node.commitlog_directory")
    sizes = {file.id: segment_size for file in found}
    for file in list_cdc_segments(folder):
        sizes[file.id] = 0  # the node may have released it a moment ago
        for path in (file.path, file.index_path):
            with suppress(FileNotFoundError):
                sizes[file.id] += path.stat().st_size
    return sizes


def unflushed_folder(node: Node, settings: NodeSettings) -> Path | None:
    """The commit log's folder for 3.11, which releases a segment when it is flushed; otherwise None."""
    return settings.commitlog_directory if is_released_when_flushed(node) else None


def is_released_when_flushed(node: Node) -> bool:
    """Return True for 3.11: a segment comes to cdc_raw when it is full and flushed."""
    return node.release.startswith("3.")


def _seconds_since(clock: int) -> float | None:
    """Return the seconds since `clock` (µs, 0 if unknown); None if unknown. At least 0: the wall clock
    may be set back.
    """
    return max(0.0, time() - clock / 1e6) if clock else None


def _iso(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")
