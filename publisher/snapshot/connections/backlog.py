"""Pauses a snapshot while the materializer is far from the raw topic's end: more messages would only wait there, and
the topic's retention might end before they are read.
"""

from __future__ import annotations

from collections import deque
from time import monotonic
from typing import TYPE_CHECKING

import structlog

from cdc_common.errors.codes import CdcError, Code
from cdc_common.program.metrics import as_size, as_time
from publisher.interval import Interval
from publisher.kafka.unread import GroupReader

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from publisher.kafka.unread import Unread
    from publisher.settings import Settings
    from publisher.topics.raw_topics import RawTopic

ASK_SECONDS = 5.0
GO_ON = 0.5  # of a bound: what holds it up ends below this
_MOST_ENDS = 10_000  # of each raw partition

log = structlog.get_logger(__name__)


def open_backlog(settings: Settings, raw_topic: RawTopic) -> Backlog:
    """Measures the lag of the materializer's group in a raw topic, with the settings' limits."""
    own = settings.publisher
    seconds, size = own.snapshot_max_lag_seconds, own.snapshot_max_lag_mib * (1 << 20)
    if not seconds and not size:
        return Backlog(dict, 0, 0)
    group = GroupReader(settings.kafka, settings.materializer.group_id, raw_topic.name, raw_topic.partitions)
    return Backlog(group.read, seconds, size)


class Backlog:
    """Measures whether the materializer is too far from the end, by what its consumer group has committed.

    read: the offsets by raw partition. seconds, size: the bounds, 0 for none; `size` in bytes of messages before
    compression. The time is that since which a message is there that is not read: how long it waits so far. Of a raw
    partition without a committed offset nothing is known, and it holds nothing up; nor does a group that this user may
    not describe.
    """

    def __init__(self, read: Callable[[], Mapping[int, Unread]], seconds: float, size: float) -> None:
        self._read = read
        self._seconds = seconds
        self._size = size
        self._ends: dict[int, deque[tuple[float, int]]] = {}
        self._interval = Interval(ASK_SECONDS, monotonic() - ASK_SECONDS)
        self._is_known = bool(seconds or size)
        self.reason = ""

    def reason_to_wait(self, bytes_per_message: float) -> str:
        """Ask again if it is time to; return why the snapshot is to wait, or ""."""
        now = monotonic()
        if self._is_known and self._interval.is_due(now):
            self._ask(now, bytes_per_message)
        return self.reason

    def _ask(self, now: float, bytes_per_message: float) -> None:
        try:
            found = self._read()
        except CdcError as error:
            if error.code is not Code.KAFKA_REFUSED:
                return  # the sender says that Kafka is away
            log.warning("the materializer's lag is not known", code=error.code.text, problem=error.problem)
            self._is_known, self.reason = False, ""
            return
        seconds = max((self._waiting(partition, unread, now) for partition, unread in found.items()), default=0.0)
        size = sum(unread.end - unread.committed for unread in found.values()) * bytes_per_message
        share = GO_ON if self.reason else 1.0
        is_late = self._seconds and seconds > self._seconds * share
        is_large = self._size and size > self._size * share
        lag = f"the materializer has {as_size(size)} to read, the oldest for {as_time(seconds)}"
        self.reason = lag if is_late or is_large else ""

    def _waiting(self, partition: int, unread: Unread, now: float) -> float:
        """Return for how many seconds the oldest unread message has waited; 0 if all are read."""
        ends = self._ends.setdefault(partition, deque(maxlen=_MOST_ENDS))
        if not ends or ends[-1][1] < unread.end:
            ends.append((now, unread.end))
        while ends and ends[0][1] <= unread.committed:
            ends.popleft()
        return now - ends[0][0] if ends else 0.0
