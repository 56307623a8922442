"""Gives each raw partition the heartbeats that watermarks stand for, once it has all that they speak of.

The order of three steps makes this right: a watermark is read, then the end of the raw partition is asked for, then the
raw partition is read up to that end. A publisher sends a watermark only when Kafka has acknowledged what the watermark
speaks of. So this lies before the end (decision 0048).
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol

import structlog

from cdc_common.errors.codes import CdcError
from materializer.records import RawPartition
from materializer.worker.watermarks import Heartbeat, Watermarks

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from materializer.planning.plan import TopicPlan
    from materializer.worker.backlog import RawBacklog
    from stream_runtime.kafka.raw_reader import Read

_logger = structlog.get_logger(__name__)
_PAUSE_SECONDS = 0.5  # between two questions for ends
_REST_FACTOR = 50  # the pause is so many times as long as the last question took: 2 % of a core
_RETRY_SECONDS = 5.0
_STALLED_SECONDS = 30.0  # between two reports of stalled publishers


class Ends(Protocol):
    """stream_runtime.kafka.Topics."""

    def ends(self, partitions: Collection[RawPartition], /) -> Mapping[RawPartition, int]: ...


class Reading(Protocol):
    """stream_runtime.kafka.RawReader."""

    def add_whole(self, partition: RawPartition, /) -> None: ...

    def remove(self, partitions: Iterable[RawPartition], /) -> None: ...

    def next_offset(self, partition: RawPartition, /) -> int: ...


class _Awaited(NamedTuple):
    """Heartbeats that a raw partition gets when it has been read up to `end`."""

    end: int
    heartbeats: Sequence[Heartbeat]


class WatermarkFeed:
    """Feeds the backlog of a worker. forgotten: the ids of hosts that say nothing more."""

    def __init__(self, backlog: RawBacklog, reader: Reading, ends: Ends, forgotten: Collection[bytes]) -> None:
        self._backlog = backlog
        self._reader = reader
        self._ends = ends
        self._watermarks = Watermarks(forgotten)
        self._place: RawPartition | None = None
        self._awaited: dict[RawPartition, _Awaited] = {}
        self._has_news = False
        self._next_question = 0.0
        self._next_stalled = 0.0

    def open(self, topic: str) -> None:
        """Read the topic of watermarks from its beginning, if that is not done yet: a host that is away counts too."""
        if self._place is None:
            place = RawPartition(topic, 0)
            try:
                self._reader.add_whole(place)
            except CdcError as error:
                _logger.warning("watermarks not read", code=error.code.text, problem=error.problem)
            else:
                self._place = place

    def take(self, read: Read) -> None:
        """Take the watermarks from what was read. After a failure, or if another topic has its name by now, the topic
        is read from its beginning again.
        """
        place = self._place
        if place is None:
            return
        self._has_news = self._watermarks.take(read.records.pop(place, ())) or self._has_news
        problem = read.errors.pop(place, None)
        if problem is not None:
            _logger.warning("watermarks not read", code=problem.code.text, problem=problem.problem, fix=problem.fix)
        if problem is not None or place in read.lost:
            read.lost.discard(place)
            self._reader.remove([place])
            self._place = None

    def stalled(self, seconds: float) -> tuple[str, ...]:
        """The ids of the publishers that have sent no watermark for so long while others have; from time to time."""
        if time.monotonic() < self._next_stalled:
            return ()
        self._next_stalled = time.monotonic() + _STALLED_SECONDS
        return self._watermarks.stalled(1000 * seconds)

    def look_again(self) -> None:
        """There are other raw partitions or tables: watermarks that are known already may concern them."""
        self._has_news = True

    def forget(self, raw_partition: RawPartition) -> None:
        self._awaited.pop(raw_partition, None)

    def feed(self, plans: Mapping[str, TopicPlan]) -> None:
        """Give heartbeats to the raw partitions that have work with them. Ask at most from time to time."""
        self._give()
        now = time.monotonic()
        if not self._has_news or now < self._next_question:
            return
        self._has_news = False
        if wanted := self._find_work(plans, now):
            try:
                ends = self._ends.ends(wanted)
            except CdcError as error:
                _logger.warning("watermarks wait", code=error.code.text, problem=error.problem)
                self._has_news, self._next_question = True, now + _RETRY_SECONDS
                return
            self._awaited |= {
                raw_partition: _Awaited(end, wanted[raw_partition]) for raw_partition, end in ends.items()
            }
            self._has_news = self._has_news or len(ends) < len(wanted)
            self._give()
        self._next_question = time.monotonic() + max(_PAUSE_SECONDS, _REST_FACTOR * (time.monotonic() - now))

    def _find_work(self, plans: Mapping[str, TopicPlan], now: float) -> dict[RawPartition, Sequence[Heartbeat]]:
        """The heartbeats for each raw partition, except those that wait for earlier ones still."""
        by_topic: dict[str, list[Heartbeat]] = {}
        wanted: dict[RawPartition, Sequence[Heartbeat]] = {}
        for raw_partition in self._backlog.raw_partitions - self._awaited.keys():
            topic = raw_partition.topic
            if topic not in by_topic:
                plan = plans.get(topic)
                ids = {schema.table_id for schema in plan.schemas} if plan is not None else ()
                by_topic[topic] = self._watermarks.of_tables(ids)
            if by_topic[topic] and (new := self._backlog.new_heartbeats(raw_partition, by_topic[topic], now)):
                wanted[raw_partition] = new
        return wanted

    def _give(self) -> None:
        """Give their heartbeats to the raw partitions that are read up to the end."""
        for raw_partition, (end, heartbeats) in list(self._awaited.items()):
            if self._reader.next_offset(raw_partition) >= end:
                del self._awaited[raw_partition]
                self._backlog.append_heartbeats(raw_partition, end, heartbeats)
