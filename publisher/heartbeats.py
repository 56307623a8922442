"""Which raw partitions have received nothing for so long, or no heartbeat for so much longer, that one is due."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from publisher.raw_topics import Channel


BUSY_PERIODS = 6  # a busy partition needs to know how far its publishers have got, though not so soon


class Heartbeats:
    """A partition is quiet from when it is first seen, or from its last message or heartbeat."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._since: dict[tuple[str, int], float] = {}

    def due(
        self, channels: Iterable[Channel], last_sent: Mapping[tuple[str, int], float], now: float
    ) -> Iterator[tuple[Channel, int]]:
        """The partitions that get one now; where the iteration is left, that one and the rest stay due. `last_sent`:
        when each (topic, partition) last had a message; `now`: the same clock.
        """
        if not self._seconds:
            return
        for channel in channels:
            for partition in range(channel.partitions):
                place = channel.topic, partition
                since = self._since.setdefault(place, now)
                quiet_since = max(last_sent.get(place, 0.0), since)
                if now - quiet_since >= self._seconds or now - since >= BUSY_PERIODS * self._seconds:
                    yield channel, partition
                    self._since[place] = now
