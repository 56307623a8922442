"""One node's filler: each period it measures the node, reports to the other fillers, and writes the padding."""

from __future__ import annotations

import math
import os
from time import monotonic, sleep
from typing import TYPE_CHECKING, Any

import structlog

from cdc_common.clients.cassandra import check_cdc_enabled, live_settings, read_node
from cdc_common.errors.codes import CdcError, Code
from cdc_common.node.sizes import node_sizes
from filler.election import PERIODS_TO_LIVE, Member, padding_to_write
from filler.flush import Flusher, needs_flush
from filler.keyspace import Members, create_keyspace, update_replication
from filler.status import Status

if TYPE_CHECKING:
    from collections.abc import Callable

    from cdc_common.clients.cassandra import CassandraClient, Node
    from cdc_common.node.sizes import NodeSizes
    from filler.node import NodeWatch
    from filler.settings import Settings

CLUSTER_CHECK_SECONDS = 60.0  # between two checks of the datacenter's nodes and of cdc_enabled
WARNING_SECONDS = 60.0
_RETRIED = frozenset(
    {
        Code.CASSANDRA_UNREACHABLE,
        Code.CASSANDRA_AUTH,
        Code.CASSANDRA_QUERY,
        Code.CDC_DISABLED,
        Code.NODETOOL_FAILED,
        Code.CDC_RAW_MISSING,
        Code.SEGMENT_CORRUPT,
    }
)

log = structlog.get_logger(__name__)


class Filler:
    """`status` is the newest status; other threads may read it. Times are of the monotonic clock."""

    def __init__(
        self, client: CassandraClient, settings: Settings, node: Node, watch: NodeWatch, segment_bytes: int
    ) -> None:
        own = settings.filler
        self._client = client
        self._settings = own
        self._node_settings = settings.node
        self._node = node
        self._watch = watch
        self._members = Members(client, own, math.ceil(own.period_seconds * PERIODS_TO_LIVE))
        self._flusher = Flusher(own.nodetool)
        self._insert = (
            f"INSERT INTO {own.keyspace}.{own.table} (id, filling) VALUES (0, ?)"  # noqa: S608 - the names are checked settings
            f" USING TTL {own.ttl_seconds}"
        )
        self._is_ready = False
        self._cluster_checked_at = -CLUSTER_CHECK_SECONDS
        self._flushed_at = monotonic()
        self.status = Status(str(node.host_id), node.cluster, node.release, own.max_segment_age_seconds, segment_bytes)

    def run_periods(self, beat: Callable[[], None]) -> None:
        """Run until interrupted; `beat` is called each period. A failure is logged, and the next period tries again;
        CdcError for one that a retry cannot cure.
        """
        warned_at = -WARNING_SECONDS
        while True:
            beat()
            now = monotonic()
            end = now + self._settings.period_seconds
            try:
                self.run_period(now, end)
            except CdcError as error:
                if error.code not in _RETRIED:
                    raise
                self.record_failure(error)
                if now - warned_at >= WARNING_SECONDS:
                    warned_at = now
                    log.warning("period skipped", code=error.code.text, problem=error.problem, fix=error.fix)
            sleep(max(0.0, end - monotonic()))

    def run_period(self, now: float, end: float) -> None:
        """The period from `now` to `end`; CdcError if something fails, or CDC is disabled."""
        if now - self._cluster_checked_at >= CLUSTER_CHECK_SECONDS:
            self._check_cluster()
            self._cluster_checked_at = now
        measured = self._watch.measure(now)
        self._report_pause(measured.paused)
        own = Member(self._node.host_id, measured.padding, measured.paused)
        self._members.report(own)
        members = [own, *self._members.others(own.host_id)]
        self._report_role(is_writer=own.host_id == min(member.host_id for member in members))
        self.status = self.status._replace(
            fillers=len(members),
            segment_written=measured.written,
            segment_age=measured.age,
            padding=measured.padding,
            waiting="",
        )
        self._write_padding(padding_to_write(own.host_id, members), end)
        if needs_flush(self._node.release):
            self._flush_if_due(now)

    def newest_status(self) -> Status:
        return self.status

    def status_json(self) -> dict[str, Any]:
        return self.status._asdict()

    def record_failure(self, error: CdcError) -> None:
        """A period has failed: the next one checks the node and the cluster again."""
        self._cluster_checked_at = -CLUSTER_CHECK_SECONDS
        self.status = self.status._replace(waiting=f"{error.code.text} {error.problem}", is_writer=False)

    def stop(self) -> None:
        """Stop a running nodetool."""
        self._flusher.stop()

    def _check_cluster(self) -> None:
        reported = live_settings(self._client)
        check_cdc_enabled(reported)
        self._update_node(read_node(self._client), node_sizes(reported, self._node_settings))
        if self._is_ready:
            update_replication(self._client, self._settings, self._node)
            return
        create_keyspace(self._client, self._settings, self._node)
        self._is_ready = True
        log.info("ready", max_segment_age_seconds=self._settings.max_segment_age_seconds)

    def _update_node(self, node: Node, sizes: NodeSizes) -> None:
        """The node may have restarted as another version or with other settings."""
        if node.release != self._node.release:
            log.info("the node's version has changed", cassandra=node.release, before=self._node.release)
            self._flusher.stop()
        self._node = node
        self._watch.update_node(sizes, node.release)
        self.status = self.status._replace(cassandra=node.release, segment_bytes=sizes.segment)

    def _write_padding(self, size: int, end: float) -> None:
        """Write `size` bytes, spread over the rest of the period."""
        size = min(size, int(self._settings.max_bytes_per_second * self._settings.period_seconds))
        count = math.ceil(size / self._settings.write_bytes)
        size_of_write = math.ceil(size / max(count, 1))
        for number in range(count, 0, -1):
            # Random bytes: a compressed commit log must not shrink them.
            self._client.write(self._insert, (os.urandom(size_of_write),))
            self.status = self.status._replace(
                writes=self.status.writes + 1, written=self.status.written + size_of_write
            )
            sleep(max(0.0, end - monotonic()) / number)
        if size:
            log.debug("padding written", bytes=size)

    def _flush_if_due(self, now: float) -> None:
        self._flusher.poll()
        self.status = self.status._replace(flushes=self._flusher.completed)
        if not self._flusher.is_running and now - self._flushed_at >= self._settings.flush_seconds:
            self._flushed_at = now
            if self._watch.full_segments():
                self._flusher.start()

    def _report_pause(self, paused: str) -> None:
        if paused and not self.status.paused:
            log.warning("paused", code=Code.FILLER_PAUSED.text, problem=paused)
        elif self.status.paused and not paused:
            log.info("resumed")
        self.status = self.status._replace(paused=paused)

    def _report_role(self, *, is_writer: bool) -> None:
        if is_writer != self.status.is_writer:
            log.info(
                "this filler writes for the datacenter" if is_writer else "another filler writes for the datacenter"
            )
        self.status = self.status._replace(is_writer=is_writer)
