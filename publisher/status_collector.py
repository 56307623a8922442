"""Takes the publisher's status once a second, and warns of what cannot wait: a cdc_raw that fills."""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC, datetime
from time import time
from typing import TYPE_CHECKING, Any, NamedTuple

import structlog

from cdc_program.compiled import is_compiled
from cdc_program.errors import Code
from cdc_program.node_sizes import node_sizes
from publisher.cdc_raw import segments
from publisher.kafka import Sender
from publisher.loss_watch import Watch
from publisher.memory import resident_bytes
from publisher.position import Positions
from publisher.quarantine import Quarantine
from publisher.schema import Schema
from publisher.space import Alerts, SpaceWatch
from publisher.spool import Spool
from publisher.status import Status
from publisher.tail import Tails

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from cdc_program.cassandra import Node
    from cdc_program.settings import NodeSettings
    from publisher.progress import Report
    from publisher.space import FullSpan, Space

log = structlog.get_logger(__name__)


class Parts(NamedTuple):
    """What the status is made of."""

    schema: Schema
    sender: Sender
    positions: Positions
    tails: Tails
    watch: Watch
    quarantine: Quarantine
    spool: Spool


class Overview:
    """Keeps the newest status, which other threads may ask for."""

    def __init__(self, node: Node, told: Mapping[str, str] | None, settings: NodeSettings, parts: Parts) -> None:
        """`told`: the node's live settings, None of 3.11."""
        self._settings = settings
        self._parts = parts
        self._alerts = Alerts()
        self._status = Status(str(node.host_id), node.cluster, node.release, is_compiled=is_compiled())
        self._node = node
        self._sizes = node_sizes(told, settings)
        self._space = SpaceWatch(self._sizes.cdc_total, self._sizes.segment)
        if self._sizes.is_default:
            log.warning(
                "the node does not report cdc_total_space: assuming Cassandra's default",
                mib=self._sizes.cdc_total >> 20,
                setting="node.cdc_total_space_mib",
            )

    def follow(self, node: Node, told: Mapping[str, str] | None) -> None:
        """The node as it is now: upgraded maybe, or started again with other settings."""
        if node.release != self._node.release:
            log.info("the node is of another version now", cassandra=node.release, before=self._node.release)
        self._node = node
        self._status = self._status._replace(cassandra=node.release)
        self._sizes = node_sizes(told, self._settings)
        self._space.allow(self._sizes.cdc_total, self._sizes.segment)

    def newest(self) -> Status:
        return self._status

    def describe(self) -> dict[str, Any]:
        """The newest status for JSON."""
        return self._status._asdict()

    def look(self, now: float, report: Report) -> Space:
        """`now`: of the monotonic clock; gives what there is of cdc_raw."""
        own = self._settings
        sizes = segment_sizes(own.cdc_raw_directory, unflushed(self._node, own), self._sizes.segment)
        waiting = report.waiting(now)
        space = self._space.look(now, sizes, is_waiting=bool(waiting))
        schema, sender, positions, tails, watch, quarantine, spool = self._parts
        self._status = Status(
            host_id=self._status.host_id,
            cluster=self._status.cluster,
            cassandra=self._status.cassandra,
            is_compiled=self._status.is_compiled,
            tables=len(schema.current()),
            mutations=report.mutations,
            messages=report.messages,
            bytes=report.bytes,
            excluded=report.excluded,
            left_out=tuple(schema.left_out()),
            in_flight=len(sender),
            deliveries=sender.acknowledged,
            delivery_seconds=sender.latency_seconds,
            lag_bytes=tails.bytes_behind(),
            lag_seconds=max(0.0, time() - positions.clock / 1e6) if positions.clock else None,  # it may be set back
            log_latency_seconds=report.log_latency,
            filler_rows=report.filler_rows,
            filler_rows_seconds=report.filler_rows_seconds,
            segments=len(sizes),
            used=space.used,
            full_at=space.full_at,
            arriving=space.arriving,
            leaving=space.leaving,
            seconds_to_full=space.seconds_to_full,
            seconds_without_us=space.seconds_without_drain,
            quarantined=len(quarantine),
            spool_segments=len(spool.files()),
            spool_bytes=spool.bytes,
            spool_max=spool.max_bytes if spool.is_on else 0,
            spool_problem=spool.problem,
            spooled=spool.moved,
            memory=resident_bytes(),
            waiting=waiting,
            losing=watch.losing,
        )
        self._alert(space)
        return space

    def _alert(self, space: Space) -> None:
        crossed = self._alerts.crossed(space)
        if crossed is not None:
            log.warning(
                "cdc_raw fills",
                code=Code.CDC_RAW_FILLING.text,
                percent=crossed,
                used_mib=space.used >> 20,
                full_at_mib=space.full_at >> 20,
                full_in_seconds=space.seconds_to_full and round(space.seconds_to_full),
                waiting=self._status.waiting,
                fix="Bring Kafka back, or raise cdc_total_space; when it is full the node refuses CDC writes.",
            )
        span = self._alerts.full_span(space, time())
        if span is not None:
            self._was_full(span)

    def _was_full(self, span: FullSpan) -> None:
        """4.0 writes no hint for what it refused: there only repair brings it."""
        tables = sorted(table.table.qualified_name for table in self._parts.schema.current())
        needs_repair = self._node.release.startswith("4.0")
        log.error(
            "cdc_raw was full: the node refuses CDC writes then",
            code=Code.CDC_RAW_WAS_FULL.text,
            since=("before " if span.began_before else "") + _iso(span.start),
            until=_iso(span.end),
            tables=tables,
            fix="Run nodetool repair on this node for these tables."
            if needs_repair
            else "None if the others' hints reach this node (nodetool statushandoff); else repair these tables.",
        )


def segment_sizes(folder: Path, unflushed: Path | None, segment_size: int) -> dict[int, int]:
    """The bytes of each segment in cdc_raw and its index, by id, and of those in the commit log's folder where they
    count.
    """
    sizes = {} if unflushed is None else {file.id: segment_size for file in segments(unflushed)}
    for file in segments(folder):
        sizes[file.id] = 0  # it may have been handed over just now
        for path in (file.path, file.index_path):
            with suppress(FileNotFoundError):
                sizes[file.id] += path.stat().st_size
    return sizes


def unflushed(node: Node, settings: NodeSettings) -> Path | None:
    """The folder whose segments count, too: of 3.11, which hands a segment over when it is flushed."""
    return settings.commitlog_directory if node.release.startswith("3.") else None


def _iso(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")
