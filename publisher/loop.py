"""The loop: what is durable in cdc_raw is read, split, sent; the position follows the acknowledgements."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from functools import partial
from math import inf
from time import monotonic, time_ns
from typing import TYPE_CHECKING, TypeVar

import structlog

from cassandra_storage.errors import FormatError, UnknownColumnError, UnknownTableError
from cassandra_storage.mutation import only_table
from cdc_messages import raw
from cdc_program.errors import CdcError, Code
from publisher.cdc_raw import segments
from publisher.heartbeats import Heartbeats
from publisher.inflight import InFlight, Mark
from publisher.memory import give_back
from publisher.messages import NOTHING, Origin, Outcome, gap_messages, heartbeat, raw_messages
from publisher.progress import Every, Report
from publisher.quarantine import Gap
from publisher.raw_topics import send_everywhere
from publisher.spool import spool_above

if TYPE_CHECKING:
    from collections.abc import Callable

    from cassandra_storage.commitlog import CommitLogEntry
    from cdc_program.settings import PublisherSettings
    from publisher.kafka import Sender
    from publisher.loss_watch import Watch
    from publisher.position import Positions
    from publisher.quarantine import Quarantine
    from publisher.raw_topics import Channels
    from publisher.schema import Schema
    from publisher.segment_disposal import Disposal
    from publisher.space import Space
    from publisher.spool import Spool
    from publisher.status_collector import Overview
    from publisher.tail import SegmentTail, Tails

SAVE_SECONDS = 0.2
SEGMENTS_AT_ONCE = 4
SERVE_EVERY_MUTATIONS = 200
SCHEMA_WAIT_SECONDS = 10.0
RETRY_SECONDS = 0.5
BESIDE_SECONDS = 0.02  # what is done beside the loop is nearly always done at once
STOP_SECONDS = 5.0
_WORTH_WAITING = frozenset({Code.CASSANDRA_UNREACHABLE, Code.KAFKA_UNREACHABLE, Code.REGISTRY_UNREACHABLE})

T = TypeVar("T")
log = structlog.get_logger(__name__)


class Publisher:
    """Publishes one node's log until it is interrupted, or raises CdcError."""

    def __init__(  # noqa: PLR0913 - the parts that it drives
        self,
        *,
        settings: PublisherSettings,
        host_id: bytes,
        schema: Schema,
        channels: Channels,
        sender: Sender,
        positions: Positions,
        tails: Tails,
        watch: Watch,
        quarantine: Quarantine,
        spool: Spool,
        disposal: Disposal,
        overview: Overview,
        beat: Callable[[], None],
    ) -> None:
        now = monotonic()
        self._settings = settings
        self._host_id = host_id
        self._schema = schema
        self._channels = channels
        self._sender = sender
        self._positions = positions
        self._tails = tails
        self._watch = watch
        self._quarantine = quarantine
        self._spool = spool
        self._disposal = disposal
        self._overview = overview
        self._beat = beat
        self._in_flight = InFlight()
        self._report = Report(now)
        self._heartbeats = Heartbeats(settings.heartbeat_seconds)
        self._save_time = Every(SAVE_SECONDS, now)
        self._second = Every(1.0, now)
        self._watch_time = Every(60.0, now)
        self._count_time = Every(60.0, now)
        self._schema_time = Every(settings.schema_poll_seconds, now)
        self._has_finished = True
        self._absent: set[str] = set()  # what was waited for in vain, once

    def open(self) -> None:
        """Open what the node's tables need in Kafka. Who has published before waits for it, cdc_raw guarded meanwhile;
        at a first start its absence is a CdcError, as settings that never worked are to be mended at once.
        """
        if self._positions.published_up_to.segment_id:
            self._patiently(self._open)
        else:
            self._open()
        self._overview.look(monotonic(), self._report)  # was cdc_raw full, before the first segment goes?

    def _open(self) -> None:
        self._schema.refresh()  # what is dropped while Kafka is away is known, too
        self._tails.poll()  # tells how far behind we are
        self._beside(self._channels.start)
        self.follow_schema()

    def run(self) -> None:
        """Never returns; on the way out it waits a moment for what is in flight and saves the position."""
        try:
            while True:
                next_look = monotonic() + self._settings.poll_interval_ms / 1000
                self.read_new()
                self._serve(0)
                if self._count_time.is_due(monotonic()):
                    self._recount()
                if self._schema_time.is_due(monotonic()):
                    self._patiently(self.follow_schema)
                while (rest := next_look - monotonic()) > 0:
                    self._serve(rest)
        finally:
            self._sender.flush(STOP_SECONDS)
            self._take_acknowledged()
            self._positions.save()

    def follow_schema(self) -> bool:
        """Read the schema if it has changed, and open the channels of the node's tables; True if it has."""
        has_changed = self._schema.refresh()
        for table in self._schema.current():
            if self._channels.opened(table) is None:
                self._channels.get(table)
                self._serve(0)  # of a thousand new tables it takes more than a minute
        return has_changed

    def read_new(self) -> None:
        """Send what is durable now; of a backlog the first few segments."""
        clock = time_ns() // 1000
        tails = self._tails.poll()
        if tails:
            # After the durable offsets were read: what lies before them can be read by the schema as it is now.
            self._patiently(self.follow_schema)
        for tail in tails[:SEGMENTS_AT_ONCE]:
            self._read(tail)
        if len(tails) <= SEGMENTS_AT_ONCE and not self._in_flight.tick(clock):
            self._positions.clock = clock

    def _read(self, tail: SegmentTail) -> None:
        segment = tail.file.id
        for count, entry in enumerate(tail.entries(), start=1):
            self._publish(tail, entry)
            if not count % SERVE_EVERY_MUTATIONS:
                self._serve(0)
        if tail.is_at_end:
            self._in_flight.add(Mark(segment, tail.position, is_end=True))
        elif tail.position:
            self._in_flight.move(segment, tail.position)

    def _publish(self, tail: SegmentTail, entry: CommitLogEntry) -> None:
        origin = Origin(self._host_id, tail.file.id, tail.file.path.name, tail.messaging_version, entry.end_position)
        outcome = self._decode(entry.mutation, origin)
        self._report.mutations += 1
        self._report.excluded += outcome.excluded
        if not outcome.messages and outcome.filler_written_at is None:
            self._in_flight.move(origin.segment, origin.position)
            return
        mark = Mark(origin.segment, origin.position, len(outcome.messages), written_at=outcome.filler_written_at)
        self._in_flight.add(mark)
        for table, key, message in outcome.messages:
            channel = self._channels.opened(table) or self._patiently(partial(self._channels.get, table))
            value = raw.encode(message, channel.schema_id)
            if message.kind == "gap" and not key:
                self._recount()  # it is for those that are there since a moment, too
                channel = self._patiently(partial(self._channels.get, table))
                send_everywhere(self._sender, channel, value, mark, partial(self._serve, 0.1))
                mark.acknowledge()  # it stands for one message, and waits for those of all partitions now
                continue
            while not self._sender.send(channel.topic, key, value, mark):
                self._serve(0.1)
            self._report.messages += 1
            self._report.bytes += len(value)

    def _decode(self, mutation: bytes, origin: Origin) -> Outcome:
        """The messages of a mutation; if the schema does not fit it is read again for a while."""
        deadline = monotonic() + SCHEMA_WAIT_SECONDS
        while True:
            try:
                return raw_messages(mutation, origin, self._schema)
            except FormatError as error:
                self._schema.forget_version()
                if self._patiently(self.follow_schema):
                    continue
                outcome = self._decode_otherwise(mutation, origin)
                if outcome is not None:
                    return outcome
                may_come = (
                    isinstance(error, UnknownTableError | UnknownColumnError) and error.reason not in self._absent
                )
                if monotonic() > deadline or not may_come:
                    self._absent.add(error.reason)
                    return self._pass_over(mutation, origin, error)
                self._serve(RETRY_SECONDS)

    def _decode_otherwise(self, mutation: bytes, origin: Origin) -> Outcome | None:
        """By what the tables may have been when the mutation was written."""
        known = self._schema.known_before_drops()
        try:
            return None if known is None else raw_messages(mutation, origin, known)
        except FormatError:
            return None

    def _pass_over(self, mutation: bytes, origin: Origin, error: FormatError) -> Outcome:
        """A mutation of one table that was dropped before it was ever seen is nothing: no row of it is to be told.

        The node did know the table when it wrote the mutation, and has been asked since. Any other is put aside, with
        word of it to the tables that it may be of.
        """
        if isinstance(error, UnknownTableError) and only_table(mutation) is not None:
            table = error.table_id
            self._schema.ignore(table)
            log.warning("mutations of a table that is gone", code=Code.SCHEMA_UNKNOWN.text, table_id=table.hex())
            return NOTHING
        outcome = gap_messages(mutation, origin, self._schema)
        gaps = [Gap(table.id, key) for table, key, _ in outcome.messages]
        self._quarantine.put(origin, mutation, error.reason, gaps)
        log.error(
            "a mutation cannot be decoded and is put aside",
            code=Code.QUARANTINED.text,
            file=origin.file,
            position=origin.position,
            reason=error.reason,
            bytes=len(mutation),
            fix="cassandra-publisher quarantine ls",
        )
        return outcome

    def _patiently(self, action: Callable[[], T]) -> T:
        """Do it, again and again while one of the servers is away: reading waits and nothing is lost."""
        has_waited = False
        while True:
            try:
                result = action()
                break
            except CdcError as error:
                if error.code not in _WORTH_WAITING:
                    raise
                self._report.complain(monotonic(), error, inf)
            has_waited = True
            self._serve(RETRY_SECONDS)
        if has_waited:
            self._report.settle()
        return result

    def _recount(self) -> None:
        self._patiently(partial(self._beside, self._channels.recount))

    def _beside(self, action: Callable[[], T]) -> T:
        """Do it while the loop goes on: a server that is away is asked for as long as a connection may take."""
        with ThreadPoolExecutor(1) as pool:
            asked = pool.submit(action)
            while not asked.done():
                self._serve(BESIDE_SECONDS)
            return asked.result()

    def _serve(self, seconds: float) -> None:
        """Take acknowledgements for up to so long, and do what is due."""
        self._beat()
        self._sender.poll(seconds)
        self._take_acknowledged()
        now = monotonic()
        if self._save_time.is_due(now):
            self._positions.save()
            self._dispose_of_finished(now)
        if self._second.is_due(now):
            self._send_heartbeats(now)
            self._report.stall(now, self._sender.acknowledged, len(self._sender), self._in_flight.oldest)
            self._report.progress(now, self._positions, len(self._sender))
            self._relieve(self._overview.look(now, self._report))
        if self._watch_time.is_due(now):
            self._watch.look()
            self._positions.check_node(self._watch.node.host_id)
            self._overview.follow(self._watch.node, self._watch.told)
            give_back()

    def _take_acknowledged(self) -> None:
        marks = self._in_flight.take_acknowledged()
        self._positions.move(marks)
        self._report.take(marks)
        for mark in marks:
            if mark.is_end:
                self._has_finished = True
                log.info("segment finished", segment=mark.segment, size=mark.position)

    def _dispose_of_finished(self, now: float) -> None:
        """Only after the position is durable; what cannot be moved now is tried again."""
        if not self._has_finished:
            return
        files = [*segments(self._tails.folder), *self._spool.files()]
        try:
            for file in files:
                if self._positions.is_finished(file.id) and self._disposal.dispose(file):
                    self._spool.forget(file)
        except CdcError as error:
            self._report.complain(now, error)
            return
        self._has_finished = False
        self._positions.forget({file.id for file in files})

    def _relieve(self, space: Space) -> None:
        """Cassandra links a segment here again if it crashes before it has flushed it: the spool has all of it."""
        spooled = {file.id for file in self._spool.files()}
        here = segments(self._tails.folder)
        for file in here:
            if file.id in spooled:
                file.delete()
        waiting = [file for file in here if file.id not in spooled and not self._positions.is_finished(file.id)]
        for moved in self._spool.relieve(waiting, space.used - spool_above(space)):
            self._tails.relocate(moved)

    def _send_heartbeats(self, now: float) -> None:
        segment, position = self._positions.published_up_to
        origin = Origin(self._host_id, segment, "", 0, position)
        channels = [self._channels.opened(table) for table in self._schema.current()]
        for channel, partition in self._heartbeats.due(filter(None, channels), self._sender.last_sent, now):
            value = raw.encode(heartbeat(channel.table, origin, self._positions.clock), channel.schema_id)
            if not self._sender.send_to_partition(channel.topic, partition, value):
                break  # else of many partitions the same ones would find the queue full each time
