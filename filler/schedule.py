"""Compute how much padding a segment needs to be full once it is `max_age` old. Pure: no I/O, no clock."""

from __future__ import annotations

from dataclasses import dataclass, field

# Share of the age: the log may be this late before the filler writes. It is longer than Cassandra's sync period.
SLACK = 0.1


@dataclass(frozen=True, slots=True)
class Schedule:
    """The schedule of measurements."""

    # The size of a full segment, in bytes.
    segment_bytes: int
    # The age that a segment may have, in seconds.
    max_age: float
    # The time between two measurements, in seconds.
    period: float

    def padding(self, written: int, age: float) -> int:
        """Return the bytes of padding to write to the segment until the next measurement: what is missing below the
        straight line from empty, a tenth of the age after its first write, to full, a period before it is too old.
        """
        slack = self.max_age * SLACK
        line = (age + 2 * self.period - slack) / (self.max_age - slack)
        return max(0, int(self.segment_bytes * min(1.0, line)) - written)


@dataclass(slots=True)
class SegmentAge:
    """The time for which the node has written to its newest segment, by the filler's own clock.

    The filler sees a segment at most a period after its first write. A segment that exists when the filler starts
    counts from that start: the bound holds from then on.
    """

    _segment: int = field(default=-1)
    _since: float = 0.0

    def measure(self, segment: int, now: float) -> float:
        """The age of the newest segment, in s."""
        if segment != self._segment:
            self._segment, self._since = segment, now
        return now - self._since
