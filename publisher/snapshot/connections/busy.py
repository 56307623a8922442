"""Lowers a snapshot's rate while its node is busy.

Signs: the load average of the machine; reads or writes that wait for a thread of Cassandra, by
`system_views.thread_pools` (Cassandra 3.11: `nodetool tpstats`); compactions that wait, by `nodetool compactionstats`.
"""

from __future__ import annotations

import os
from time import monotonic
from typing import TYPE_CHECKING

import structlog

from cdc_common.errors.codes import CdcError, Code
from publisher.interval import Interval

if TYPE_CHECKING:
    from collections.abc import Callable

    from publisher.settings import PublisherSettings
    from publisher.snapshot.connections.link import Link
    from publisher.snapshot.connections.nodetool import Nodetool

MEASURE_SECONDS = 5.0
NODETOOL_SECONDS = 60.0  # each call starts a JVM
LEAST_SHARE = 0.125  # a snapshot that stood still would hold up purging
REQUEST_POOLS = ("ReadStage", "MutationStage", "CounterMutationStage")
_NO_ANSWER = "it does not answer"
_RISE = 1.5

log = structlog.get_logger(__name__)


class NodeLoad:
    """Measures the load of a node. None stands for a sign that the node does not show, or not to this user; that is
    logged once.
    """

    def __init__(self, link: Link, nodetool: Nodetool) -> None:
        self._link = link
        self._nodetool = nodetool
        self._refused: set[str] = set()

    def load_per_core(self) -> float:
        """The load average of the last minute, divided by the number of cores."""
        return os.getloadavg()[0] / (os.cpu_count() or 1)

    def waiting_requests(self) -> int | None:
        """Reads, or writes, that wait for a thread: the greater number. CdcError CASSANDRA_UNREACHABLE."""
        return self._asked("reads and writes that wait", self._of_thread_pools)

    def waiting_compactions(self) -> int | None:
        return self._asked("compactions that wait", self._nodetool.waiting_compactions)

    def _of_thread_pools(self) -> int:
        rows = self._link.client.rows("SELECT name, pending_tasks FROM system_views.thread_pools")
        return max((row["pending_tasks"] for row in rows if row["name"] in REQUEST_POOLS), default=0)

    def _asked(self, what: str, ask: Callable[[], int]) -> int | None:
        try:
            return ask()
        except CdcError as error:
            if error.code is Code.CASSANDRA_UNREACHABLE:
                raise
            if what not in self._refused:
                self._refused.add(what)
                log.warning("a sign of a busy node is not known", sign=what, problem=error.problem)
            return None


class LegacyNodeLoad(NodeLoad):
    """The load of a node of Cassandra 3.11, which has no virtual tables: nodetool says how many tasks wait."""

    def __init__(self, link: Link, nodetool: Nodetool) -> None:
        super().__init__(link, nodetool)
        self._interval = Interval(NODETOOL_SECONDS, monotonic() - NODETOOL_SECONDS)
        self._waiting = 0

    def _of_thread_pools(self) -> int:
        if self._interval.is_due(monotonic()):
            pools = self._nodetool.waiting_tasks()
            self._waiting = max((pools.get(name, 0) for name in REQUEST_POOLS), default=0)
        return self._waiting


class BusyNode:
    """The share of its rate that a snapshot may use. Each measurement that finds the node busy halves it, down to
    LEAST_SHARE, and each other one raises it by half. The bounds are the settings'; 0 for none.
    """

    def __init__(self, settings: PublisherSettings, load: NodeLoad) -> None:
        self._most_load = settings.snapshot_busy_load_per_core
        self._most_requests = settings.snapshot_busy_waiting_requests
        self._most_compactions = settings.snapshot_busy_waiting_compactions
        self._load = load
        self._interval = Interval(MEASURE_SECONDS, monotonic() - MEASURE_SECONDS)
        self._compactions_interval = Interval(NODETOOL_SECONDS, monotonic() - NODETOOL_SECONDS)
        self._compactions = 0
        self._reason = ""
        self.share = 1.0

    def measure_share(self) -> float:
        """Return the share, measured again if it is time to."""
        if self._interval.is_due(monotonic()):
            self._adapt(self._sign())
        return self.share

    @property
    def problem(self) -> str:
        """Return why the snapshot is slower than it might be; empty if it is not."""
        return f"the node is busy: {self._reason}; {self.share:.0%} of the rate" if self.share < 1 else ""

    def _adapt(self, sign: str) -> None:
        before = self.share
        self.share = max(LEAST_SHARE, before / 2) if sign else min(1.0, before * _RISE)
        self._reason = sign or self._reason
        if self.share < before == 1:
            log.info("a snapshot slows down", reason=sign)
        elif before < self.share == 1:
            log.info("a snapshot returns to its full rate")

    def _sign(self) -> str:
        """Return the sign that the node is busy; empty if it is not."""
        if self._most_load and (load := self._load.load_per_core()) > self._most_load:
            return f"its load is {load:.1f} for each core"
        try:
            requests = self._load.waiting_requests() if self._most_requests else None
        except CdcError:
            return _NO_ANSWER
        if requests is not None and requests > self._most_requests:
            return f"{requests} reads or writes wait for a thread"
        if self._most_compactions and self._compactions_interval.is_due(monotonic()):
            self._compactions = self._load.waiting_compactions() or 0
        if self._most_compactions and self._compactions > self._most_compactions:
            return f"{self._compactions} compactions wait"
        return ""


def open_busy_node(settings: PublisherSettings, link: Link, nodetool: Nodetool) -> BusyNode:
    """A BusyNode for the node to which the link connects."""
    kind = LegacyNodeLoad if link.node.release.startswith("3.") else NodeLoad
    return BusyNode(settings, kind(link, nodetool))
