"""The publisher's loop: follow the segments, decode each mutation, send its messages, note the position to reach.

A mutation takes this way: SegmentTails find what is durable. NativeSplitter splits many mutations at once into raw
messages, and MutationDecoder splits the others one by one. MutationSender sends the messages. Acknowledgements move the
position. SegmentCleanup disposes of finished segments. RowEndSender sends the messages of TRUNCATE and DROP.
"""

from __future__ import annotations

from contextlib import closing
from time import monotonic, time_ns
from typing import TYPE_CHECKING, TypeVar

import structlog

from cassandra_storage.formats.commitlog.segment import CommitLogEntry
from cassandra_storage.formats.rows.mutation import only_table
from cdc_common.errors.codes import CdcError, Code
from publisher.inflight import PendingPosition
from publisher.interval import Interval
from publisher.mutations.messages import NO_MESSAGES, Origin
from publisher.mutations.mutation_decoder import MutationDecoder
from publisher.mutations.native_splitter import open_splitter
from publisher.sending.catch_up import CatchUp
from publisher.sending.mutation_sender import MutationSender
from publisher.sending.row_end_sender import RowEndSender
from publisher.topics.missing_schemas import MissingSchemas
from publisher.topics.server_calls import ServerCalls
from publisher.topics.table_follower import TableFollower
from publisher.upkeep.housekeeping import Housekeeping

if TYPE_CHECKING:
    from collections.abc import Callable

    from publisher.log.batch_reader import SplitEntries
    from publisher.log.tail import SegmentTail
    from publisher.monitoring.status_collector import StatusCollector
    from publisher.mutations.messages import DecodedMutation
    from publisher.parts import KafkaParts, NodeParts
    from publisher.settings import PublisherSettings
    from publisher.waits import Waits

SEGMENTS_AT_ONCE = 4
SERVE_EVERY_MUTATIONS = 200
PARTITION_COUNT_SECONDS = 60.0
REQUEST_SECONDS = 60.0
STOP_SECONDS = 5.0

log = structlog.get_logger(__name__)

T = TypeVar("T")


class Publisher:
    """Publishes one node's log until it is interrupted, or raises CdcError."""

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
        self._in_flight = kafka.in_flight
        self._status = status
        self._housekeeping = Housekeeping(settings, node, kafka, status, beat)
        self._calls = ServerCalls(status.progress)
        problems = self._housekeeping.problems
        self._tables = TableFollower(node.schema, node.waiting, kafka.raw_topics, problems, self._calls)
        self._splitter = open_splitter(node.schema, kafka.raw_topics, node.waiting, node.host_id)
        self._missing = MissingSchemas(node.schema, node.waiting, self._tables, problems)
        self._decoder = MutationDecoder(node.schema, node.quarantine, self._tables, self._missing)
        self._sender = MutationSender(kafka.sender, self._tables, status.progress)
        self._row_ends = RowEndSender(node, self._sender, settings.drop_seconds)
        self._catch_up = CatchUp(node, kafka, self._decoder, self._sender, self._row_ends)
        self._poll_seconds = settings.poll_interval_ms / 1000
        self._schema_interval = Interval(settings.schema_poll_seconds, now)
        self._partition_count_interval = Interval(PARTITION_COUNT_SECONDS, now)
        self._request_interval = Interval(REQUEST_SECONDS, now)

    def open(self) -> None:
        """Open the topics of the node's tables. A publisher that has published before waits for Kafka, and keeps room
        in cdc_raw; at a first start this is a CdcError, as the settings may be wrong.
        """
        if self._node.positions.published_up_to.segment_id:
            self._do(self._calls.retry_while_unreachable(self._open))
        else:
            self._do(self._open())
        self._status.collect(monotonic())  # before the first segment leaves: cdc_raw may have been full

    def _open(self) -> Waits[None]:
        self._node.schema.refresh()  # remembers tables that are dropped while Kafka is away
        self._poll_segments()  # the status needs it: bytes that are not acknowledged
        yield from self._tables.start()

    def _do(self, work: Waits[T]) -> T:
        """Run the work to its end, and do the upkeep whenever it waits."""
        with closing(work):
            while True:
                try:
                    seconds = next(work)
                except StopIteration as end:
                    result: T = end.value
                    return result
                self._housekeeping.serve(seconds)

    def run(self) -> None:
        """Never returns. When it is interrupted, it waits up to STOP_SECONDS for the messages in flight and saves the
        position.
        """
        try:
            while True:
                next_poll = monotonic() + self._poll_seconds
                self.publish_new()
                self._housekeeping.serve(0)
                self._do(self._update_topics_and_schema())
                self._do(self._missing.give_up_late())
                self._do(self._tables.retry_waiting())
                self._do(self._catch_up.advance())
                while (rest := next_poll - monotonic()) > 0:
                    self._housekeeping.serve(rest)
        finally:
            self._housekeeping.stop(STOP_SECONDS)

    def _update_topics_and_schema(self) -> Waits[None]:
        if self._partition_count_interval.is_due(monotonic()):
            yield from self._tables.refresh_partition_counts()
        if self._request_interval.is_due(monotonic()):
            yield from self._tables.take_requests()
        if self._schema_interval.is_due(monotonic()):
            yield from self._tables.wait_for_schema()
            yield from self._row_ends.send_due()
            yield from self._update_snapshots()

    def _update_snapshots(self) -> Waits[None]:
        self._node.snapshots.begin_due(self._node.schema.current_tables(), monotonic())
        for record in self._node.snapshots.ended():
            table_id = bytes.fromhex(record.table_id)
            begun = int(record.requested_at * 1e6)
            self._node.schema.note_snapshot(table_id, begun)
            yield from self._tables.clear_mark(table_id, begun)
            self._node.snapshots.mark_cleared(record)

    def publish_new(self) -> None:
        """Send what is durable now; of a backlog the first SEGMENTS_AT_ONCE segments."""
        clock = time_ns() // 1000
        tails = self._poll_segments()
        if tails:
            # The durable offsets were read before: the schema of now reads all that lies before them.
            self._do(self._tables.wait_for_schema())
            self._do(self._row_ends.send_due())
        for tail in tails[:SEGMENTS_AT_ONCE]:
            self._publish_segment(tail)
        if len(tails) <= SEGMENTS_AT_ONCE and not self._in_flight.set_clock(clock):
            self._node.positions.clock = clock

    def _poll_segments(self) -> list[SegmentTail]:
        """The segments with something to read. If one has disappeared, all tables may lack changes."""
        tails = self._node.tails.poll()
        lost = self._node.tails.take_lost()
        if lost:
            log.error(
                "segments disappeared before they were completely published",
                code=Code.SEGMENT_LOST.text,
                segments=lost,
                fix="Take a snapshot of each table that is marked as needing one, then audit it.",
            )
            self._node.schema.require_snapshots(table.id for table in self._node.schema.current_tables())
        return tails

    def _publish_segment(self, tail: SegmentTail) -> None:
        unserved = 0
        for event in tail.events(self._splitter):
            if isinstance(event, CommitLogEntry):
                self._do(self._publish_mutation(tail, event))
                unserved += 1
            else:
                self._publish_batch(tail, event)
                unserved += event.batch.mutations
            self._row_ends.note_read(tail.file.id, tail.position)
            if unserved >= SERVE_EVERY_MUTATIONS:
                self._housekeeping.serve(0)
                unserved = 0
        if tail.is_at_end:
            self._in_flight.add(PendingPosition(tail.file.id, tail.position, is_end=True))
        elif tail.position:
            self._in_flight.extend_to(tail.file.id, tail.position)

    def _publish_batch(self, tail: SegmentTail, split: SplitEntries) -> None:
        """The messages of many mutations, which the native core has split."""
        self._status.progress.count_native_mutations(split.batch)
        if not len(split.batch):
            self._in_flight.extend_to(tail.file.id, split.end_position)
            return
        pending = PendingPosition(tail.file.id, split.end_position, outstanding=len(split.batch))
        self._in_flight.add(pending)
        self._do(self._sender.send_batch(split, pending))

    def _publish_mutation(self, tail: SegmentTail, entry: CommitLogEntry) -> Waits[None]:
        origin = Origin(
            self._node.host_id, tail.file.id, tail.file.path.name, tail.messaging_version, entry.end_position
        )
        decoded = yield from self._decode(entry, origin)
        self._status.progress.count_mutation(decoded.excluded_updates)
        messages = yield from self._sender.sendable(decoded.messages, origin.segment, entry.position)
        if not messages and decoded.filler_written_at is None:
            self._in_flight.extend_to(origin.segment, origin.position)
            return
        yield from self._row_ends.send_before(messages, origin)
        pending = PendingPosition(
            origin.segment, origin.position, written_at=decoded.filler_written_at, outstanding=len(messages)
        )
        self._in_flight.add(pending)
        yield from self._sender.send(messages, pending)

    def _decode(self, entry: CommitLogEntry, origin: Origin) -> Waits[DecodedMutation]:
        """The messages of a mutation; none if it is held for its table, which cannot be decoded now."""
        waiting = self._node.waiting
        table_id = only_table(entry.mutation) if waiting.held_back else None
        is_known = table_id in self._node.schema.published and not self._missing.is_awaited(table_id)
        if table_id in waiting.held_back and not is_known:
            waiting.hold(table_id, origin.segment, entry.position)
            return NO_MESSAGES
        try:
            return (yield from self._decoder.decode(entry, origin))
        except CdcError as error:
            if error.code is not Code.QUARANTINE_FULL or not self._tables.wait_for_room(entry.mutation, error):
                raise
            waiting.hold(only_table(entry.mutation) or b"", origin.segment, entry.position)
            return NO_MESSAGES
