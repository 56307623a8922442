"""Sends a snapshot's units to its raw topic, and records how far it is."""

from __future__ import annotations

from functools import partial
from time import monotonic
from typing import TYPE_CHECKING

from cassandra_storage.formats.primitives.token_ranges import spans
from publisher.interval import Interval
from publisher.snapshot.state.parts import share_done

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from cassandra_storage.formats.primitives.token_ranges import TokenRange
    from publisher.snapshot.connections.backlog import Backlog
    from publisher.snapshot.connections.busy import BusyNode
    from publisher.snapshot.connections.link import Link
    from publisher.snapshot.rows.sending import Progress
    from publisher.snapshot.state.current_record import CurrentRecord
    from publisher.topics.raw_topics import RawTopic


class RawTopicOutput:
    """Sends units to the raw topic (sending.Output)."""

    def __init__(self, link: Link, raw_topic: RawTopic, throttle: Throttle) -> None:
        self._link = link
        self._throttle = throttle
        self.send = partial(link.send, raw_topic)
        self.send_batch = partial(link.send_batch, (raw_topic.name,))
        self.wait = link.wait

    def poll(self) -> None:
        """Handle acknowledgements, then wait as long as the throttle says."""
        self._link.sender.poll(0)
        self._link.serve()
        self._throttle.wait_until_free()


class Throttle:
    """Holds the sending up while the materializer is too far from the end, and records why the snapshot is slow."""

    def __init__(
        self, link: Link, current: CurrentRecord, check_disk: Callable[[], None], backlog: Backlog, busy: BusyNode
    ) -> None:
        """`check_disk`: raises LowDiskError if the SSTables must be given up."""
        self._link = link
        self._current = current
        self._check_disk = check_disk
        self._backlog = backlog
        self._busy = busy

    def wait_until_free(self) -> None:
        """Return once the sending may go on. LowDiskError if the SSTables must be given up."""
        self._check_disk()
        record = self._current.record
        size = record.bytes / record.rows if record.rows else 0.0
        while reason := self._backlog.reason_to_wait(size):
            self._current.set_problem(reason)
            self._link.wait()
            self._check_disk()
        self._current.set_problem(self._busy.problem, self._busy.share)


class Reports:
    """Records the progress from time to time, added to what was sent before the snapshot resumed. `ranges`: all that
    this node sends.
    """

    def __init__(self, current: CurrentRecord, ranges: Sequence[TokenRange], seconds: float) -> None:
        self._current = current
        self._before = current.record
        self._sent = spans(ranges)
        self._interval = Interval(seconds, monotonic())

    def add(self, progress: Progress) -> None:
        if self._interval.is_due(monotonic()):
            self.save(progress)

    def save(self, progress: Progress) -> None:
        before = self._before
        reached = before.moved(place=progress.place).reached
        self._current.save(
            place=progress.place,
            rows=before.rows + progress.rows,
            bytes=before.bytes + progress.bytes,
            partitions=before.partitions + progress.partitions,
            done=share_done(self._sent, reached),
        )
