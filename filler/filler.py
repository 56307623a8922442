"""One node's filler: each period it looks at the node, tells the others, and writes what the neediest node lacks."""

from __future__ import annotations

import math
import os
from time import monotonic, sleep
from typing import TYPE_CHECKING, Any

import structlog

from cdc_program.cassandra import check_cdc_enabled, live_settings, read_node
from cdc_program.errors import Code
from filler.election import PERIODS_TO_LIVE, Member, share
from filler.flush import Flusher, needs_flush
from filler.keyspace import Members, follow_nodes, prepare
from filler.node import limits
from filler.status import Status

if TYPE_CHECKING:
    from cdc_program.cassandra import CassandraClient, Node
    from cdc_program.errors import CdcError
    from cdc_program.settings import FillerSettings
    from filler.node import NodeLimits, NodeWatch

NODES_SECONDS = 60.0  # from one look at the datacenter's nodes and at cdc_enabled to the next

log = structlog.get_logger(__name__)


class Filler:
    """`status` is the newest, which other threads may ask for. Times are of the monotonic clock."""

    def __init__(
        self, client: CassandraClient, settings: FillerSettings, node: Node, watch: NodeWatch, segment_bytes: int
    ) -> None:
        self._client = client
        self._settings = settings
        self._node = node
        self._watch = watch
        self._members = Members(client, settings, math.ceil(settings.period_seconds * PERIODS_TO_LIVE))
        self._flusher = Flusher(settings.nodetool)
        self._insert = (
            f"INSERT INTO {settings.keyspace}.{settings.table} (id, filling) VALUES (0, ?)"  # noqa: S608 - the names are checked settings
            f" USING TTL {settings.ttl_seconds}"
        )
        self._is_ready = False
        self._nodes_at = -NODES_SECONDS
        self._flushed_at = monotonic()
        self.status = Status(
            str(node.host_id), node.cluster, node.release, settings.max_segment_age_seconds, segment_bytes
        )

    def period(self, now: float, following: float) -> None:
        """From `now` until `following`, when the next one begins; CdcError if something fails, or CDC is off."""
        if now - self._nodes_at >= NODES_SECONDS:
            self._follow_cluster()
            self._nodes_at = now
        look = self._watch.look(now)
        self._say_held(look.held)
        own = Member(self._node.host_id, look.lacking, look.held)
        self._members.tell(own)
        members = [own, *self._members.others(own.host_id)]
        self._say_role(is_writer=own.host_id == min(member.host_id for member in members))
        self.status = self.status._replace(
            fillers=len(members),
            segment_written=look.written,
            segment_age=look.age,
            lacking=look.lacking,
            waiting="",
        )
        self._write(share(own.host_id, members), following)
        if needs_flush(self._node.release):
            self._flush(now)

    def newest(self) -> Status:
        return self.status

    def describe(self) -> dict[str, Any]:
        """The newest status for JSON."""
        return self.status._asdict()

    def fail(self, error: CdcError) -> None:
        """A period has: nothing is known of the node and the cluster until they have been looked at again."""
        self._nodes_at = -NODES_SECONDS
        self.status = self.status._replace(waiting=f"{error.code.text} {error.problem}", is_writer=False)

    def stop(self) -> None:
        """Leave no nodetool behind."""
        self._flusher.stop()

    def _follow_cluster(self) -> None:
        told = live_settings(self._client)
        check_cdc_enabled(told)
        self._follow_node(read_node(self._client), limits(told, self._settings))
        if self._is_ready:
            follow_nodes(self._client, self._settings, self._node)
            return
        prepare(self._client, self._settings, self._node)
        self._is_ready = True
        log.info("ready", max_segment_age_seconds=self._settings.max_segment_age_seconds)

    def _follow_node(self, node: Node, found: NodeLimits) -> None:
        """It may have come back upgraded, or with other settings."""
        if node.release != self._node.release:
            log.info("the node is of another version now", cassandra=node.release, before=self._node.release)
            self._flusher.stop()
        self._node = node
        self._watch.follow(found, node.release)
        self.status = self.status._replace(cassandra=node.release, segment_bytes=found.segment_bytes)

    def _write(self, size: int, following: float) -> None:
        """So many bytes, spread over what is left of the period."""
        size = min(size, int(self._settings.max_bytes_per_second * self._settings.period_seconds))
        count = math.ceil(size / self._settings.write_bytes)
        each = math.ceil(size / max(count, 1))
        for number in range(count, 0, -1):
            # Random bytes: a compressed commit log must not shrink them.
            self._client.write(self._insert, (os.urandom(each),))
            self.status = self.status._replace(writes=self.status.writes + 1, written=self.status.written + each)
            sleep(max(0.0, following - monotonic()) / number)
        if size:
            log.debug("written", bytes=size)

    def _flush(self, now: float) -> None:
        self._flusher.look()
        self.status = self.status._replace(flushes=self._flusher.done)
        if not self._flusher.is_running and now - self._flushed_at >= self._settings.flush_seconds:
            self._flushed_at = now
            if self._watch.full_segments():
                self._flusher.start()

    def _say_held(self, held: str) -> None:
        if held and not self.status.held:
            log.warning("writing nothing", code=Code.FILLER_HELD.text, problem=held)
        elif self.status.held and not held:
            log.info("writing again")
        self.status = self.status._replace(held=held)

    def _say_role(self, *, is_writer: bool) -> None:
        if is_writer != self.status.is_writer:
            log.info("this node's filler writes for all" if is_writer else "another node's filler writes for all")
        self.status = self.status._replace(is_writer=is_writer)
