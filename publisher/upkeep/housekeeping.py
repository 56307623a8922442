"""Does the publisher's work besides reading: acknowledgements, the saved position, watermarks, status, node checks."""

from __future__ import annotations

from time import monotonic
from typing import TYPE_CHECKING

from publisher.interval import Interval
from publisher.monitoring.memory import release_free_memory
from publisher.topics.table_problems import TableProblems
from publisher.upkeep.acknowledgements import Acknowledgements
from publisher.upkeep.heartbeats import WatermarkSender
from publisher.upkeep.segment_cleanup import SegmentCleanup

if TYPE_CHECKING:
    from collections.abc import Callable

    from publisher.monitoring.status_collector import StatusCollector
    from publisher.parts import KafkaParts, NodeParts
    from publisher.settings import PublisherSettings

SAVE_SECONDS = 0.2
STATUS_SECONDS = 1.0
NODE_CHECK_SECONDS = 60.0


class Housekeeping:
    """The loop, and no other module, calls `serve`: between mutations and wherever it waits. `beat` reports to the
    health check. `problems`: makes tables wait.
    """

    def __init__(
        self,
        settings: PublisherSettings,
        node: NodeParts,
        kafka: KafkaParts,
        status: StatusCollector,
        beat: Callable[[], None],
    ) -> None:
        now = monotonic()
        self._node = node
        self._kafka = kafka
        self._status = status
        self._progress = status.progress
        self._beat = beat
        self.problems = TableProblems(node.positions, node.waiting, kafka.raw_topics, kafka.sender, kafka.in_flight)
        self._acknowledgements = Acknowledgements(kafka, node.positions, status.progress, self.problems)
        self._cleanup = SegmentCleanup(node.tails.folder, node, status.progress, settings.waiting_max_percent)
        self._watermarks = WatermarkSender(settings.heartbeat_seconds, node, kafka)
        self._save_interval = Interval(SAVE_SECONDS, now)
        self._status_interval = Interval(STATUS_SECONDS, now)
        self._node_check_interval = Interval(NODE_CHECK_SECONDS, now)

    def serve(self, seconds: float) -> None:
        """Handle acknowledgements for up to `seconds`, then do the work that is due."""
        self._beat()
        if self._acknowledgements.collect(seconds):
            self._cleanup.request()
        now = monotonic()
        if self._save_interval.is_due(now):
            self._node.waiting.save()
            self._node.positions.save()
            self._cleanup.dispose_of_finished(now)
        if self._status_interval.is_due(now):
            self._watermarks.send_if_due(now)
            self._log_progress(now)
            space = self._status.collect(now)
            self._cleanup.relieve_cdc_raw(space)
            self._node.snapshots.serve(now, space.percent, self._published())
        if self._node_check_interval.is_due(now):
            self._check_node()
            release_free_memory()

    def stop(self, seconds: float) -> None:
        """Wait up to `seconds` for the messages in flight, and save the position."""
        self._node.snapshots.stop()
        self._acknowledgements.collect_last(seconds, self._node.waiting)

    def _published(self) -> tuple[tuple[int, int], float]:
        """See node.Published. Row images must not overtake the end of the rows before them."""
        schema, waiting = self._node.schema, self._node.waiting
        not_yet = {schema.tables[table_id].qualified_name for table_id in schema.row_ends.pending}
        if self._node.snapshots.current in not_yet | {waiting.tables[table_id].name for table_id in waiting.held_back}:
            return (0, 0), 0.0
        segment, position = self._node.positions.published_up_to
        return (segment, position), self._node.positions.clock / 1e6

    def _log_progress(self, now: float) -> None:
        sender = self._kafka.sender
        self._progress.check_stall(now, sender.acknowledged, len(sender), self._kafka.in_flight.oldest)
        self._progress.log_progress(now, self._node.positions.published_up_to, len(sender))

    def _check_node(self) -> None:
        self._node.loss_watch.check_again()
        self._node.positions.check_node(self._node.loss_watch.node.host_id)
        self._status.update_node()
