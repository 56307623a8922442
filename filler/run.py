"""The filler's loop: look at the node once a period, tell the others, and write what the neediest node lacks."""

from __future__ import annotations

import math
import os
from time import monotonic, sleep
from typing import TYPE_CHECKING

import structlog

from cdc_program.cassandra import check_cdc_enabled, connect, live_settings, read_node
from cdc_program.errors import CdcError, Code
from filler.election import PERIODS_TO_LIVE, Member, share
from filler.flush import flush, needs_flush
from filler.keyspace import Members, follow_nodes, prepare
from filler.node import NodeWatch, limits

if TYPE_CHECKING:
    from cdc_program.cassandra import CassandraClient, Node
    from cdc_program.settings import FillerSettings, Settings

NODES_SECONDS = 60.0  # from one look at the datacenter's nodes and at cdc_enabled to the next
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
        watch = NodeWatch(own, limits(told, own))
        watch.held()
        watch.lacking(monotonic())
        Filler(client, own, node, watch).run()


def _check_folder(node: Node, settings: FillerSettings) -> None:
    if needs_flush(node.release) and settings.commitlog_directory is None:
        raise CdcError(
            Code.CONFIG_INVALID,
            f"filler.commitlog_directory is not set, and Cassandra {node.release} shows its segments nowhere else.",
            "Set it to the node's commitlog_directory (cassandra.yaml).",
        )


class Filler:
    """One node's. What fails while it runs is said, and tried again: the next period is a fresh start."""

    def __init__(self, client: CassandraClient, settings: FillerSettings, node: Node, watch: NodeWatch) -> None:
        self._client = client
        self._settings = settings
        self._node = node
        self._watch = watch
        self._members = Members(client, settings, math.ceil(settings.period_seconds * PERIODS_TO_LIVE))
        self._insert = (
            f"INSERT INTO {settings.keyspace}.{settings.table} (id, filling) VALUES (0, ?)"  # noqa: S608 - the names are checked settings
            f" USING TTL {settings.ttl_seconds}"
        )
        self._is_ready = False
        self._nodes_at = self._flushed_at = monotonic()
        self._complained_at = -COMPLAINT_SECONDS
        self._held = ""
        self._is_writer = False

    def run(self) -> None:
        while True:
            following = monotonic() + self._settings.period_seconds
            try:
                self._period(following)
            except CdcError as error:
                if error.code not in _PASSING:
                    raise
                self._complain(error)
            sleep(max(0.0, following - monotonic()))

    def _period(self, following: float) -> None:
        now = monotonic()
        if not self._is_ready:
            prepare(self._client, self._settings, self._node)
            self._is_ready = True
            log.info("ready", max_segment_age_seconds=self._settings.max_segment_age_seconds)
        if now - self._nodes_at >= NODES_SECONDS:
            self._nodes_at = now
            check_cdc_enabled(live_settings(self._client))
            follow_nodes(self._client, self._settings, self._node)
        own = Member(self._node.host_id, self._watch.lacking(now), self._hold())
        self._members.tell(own)
        members = [own, *self._members.others(own.host_id)]
        self._say_role(is_writer=own.host_id == min(member.host_id for member in members))
        self._write(share(own.host_id, members), following)
        if needs_flush(self._node.release) and now - self._flushed_at >= self._settings.flush_seconds:
            self._flushed_at = now
            if self._watch.full_segments():
                flush(self._settings.nodetool)

    def _write(self, size: int, following: float) -> None:
        """So many bytes, spread over what is left of the period."""
        size = min(size, int(self._settings.max_bytes_per_second * self._settings.period_seconds))
        count = math.ceil(size / self._settings.write_bytes)
        for number in range(count, 0, -1):
            # Random bytes: a compressed commit log must not shrink them.
            self._client.write(self._insert, (os.urandom(math.ceil(size / count)),))
            sleep(max(0.0, following - monotonic()) / number)
        if size:
            log.debug("written", bytes=size)

    def _hold(self) -> str:
        held = self._watch.held()
        if held and not self._held:
            log.warning("writing nothing", code=Code.FILLER_HELD.text, problem=held)
        elif self._held and not held:
            log.info("writing again")
        self._held = held
        return held

    def _say_role(self, *, is_writer: bool) -> None:
        if is_writer != self._is_writer:
            self._is_writer = is_writer
            log.info("this node's filler writes for all" if is_writer else "another node's filler writes for all")

    def _complain(self, error: CdcError) -> None:
        now = monotonic()
        if now - self._complained_at >= COMPLAINT_SECONDS:
            self._complained_at = now
            log.warning("left out", code=error.code.text, problem=error.problem, fix=error.fix)
