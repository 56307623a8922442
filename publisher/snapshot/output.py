"""Sends a snapshot's units to its raw topic, and records how far it is."""

from __future__ import annotations

from functools import partial
from time import monotonic
from typing import TYPE_CHECKING, Protocol

from cassandra_storage.formats.primitives.token_ranges import spans
from publisher.interval import Interval
from publisher.snapshot.parts import share_done

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cassandra_storage.formats.primitives.token_ranges import TokenRange
    from publisher.snapshot.backlog import Backlog
    from publisher.snapshot.busy import BusyNode
    from publisher.snapshot.link import Link
    from publisher.snapshot.records import Record
    from publisher.snapshot.sending import Progress
    from publisher.topics.raw_topics import RawTopic


class Recorded(Protocol):
    """The snapshot and its record."""

    record: Record

    def save(self, **changes: object) -> None: ...

    def set_problem(self, problem: str, pace: float = 1.0) -> None: ...

    def check_disk(self) -> None:
        """Raise LowDiskError if its SSTables must go."""
        ...


class RawTopicOutput:
    """The raw topic as the place where units go (sending.Output)."""

    def __init__(self, link: Link, raw_topic: RawTopic, run: Recorded, backlog: Backlog, busy: BusyNode) -> None:
        self._link = link
        self._run = run
        self._backlog = backlog
        self._busy = busy
        self.send = partial(link.send, raw_topic)
        self.send_batch = partial(link.send_batch, (raw_topic.name,))
        self.wait = link.wait

    def poll(self) -> None:
        """Handle acknowledgements, and wait while the materializer is too far from the end. LowDiskError as
        Recorded.check_disk.
        """
        self._link.sender.poll(0)
        self._link.serve()
        self._run.check_disk()
        record = self._run.record
        size = record.bytes / record.rows if record.rows else 0.0
        while reason := self._backlog.look(size):
            self._run.set_problem(reason)
            self.wait()
            self._run.check_disk()
        self._run.set_problem(self._busy.problem, self._busy.share)


class Reports:
    """Records the progress from time to time, added to what was sent before the snapshot resumed. `ranges`: all that
    this node sends.
    """

    def __init__(self, run: Recorded, ranges: Sequence[TokenRange], seconds: float) -> None:
        self._run = run
        self._before = run.record
        self._sent = spans(ranges)
        self._interval = Interval(seconds, monotonic())

    def add(self, progress: Progress) -> None:
        if self._interval.is_due(monotonic()):
            self.save(progress)

    def save(self, progress: Progress) -> None:
        before = self._before
        reached = before.moved(place=progress.place).reached
        self._run.save(
            place=progress.place,
            rows=before.rows + progress.rows,
            bytes=before.bytes + progress.bytes,
            partitions=before.partitions + progress.partitions,
            done=share_done(self._sent, reached),
        )
