"""How much the commit log lacks: a segment is to be full when it is `max_segment_age` old. Pure: no I/O, no clock."""

from __future__ import annotations

from dataclasses import dataclass, field

# Of the age: so far the log may lie behind before anything is written. It is more than a sync period of Cassandra's.
SLACK = 0.1


@dataclass(frozen=True, slots=True)
class Schedule:
    """`segment_bytes` of a whole segment; `max_age` and `period`, from one look to the next, in s."""

    segment_bytes: int
    max_age: float
    period: float

    def lacking(self, written: int, age: float) -> int:
        """How many of the segment's bytes must be written until the next look: what lies below the straight line from
        empty, a tenth of the age after its first write, to full a period before it is too old.
        """
        slack = self.max_age * SLACK
        line = (age + 2 * self.period - slack) / (self.max_age - slack)
        return max(0, int(self.segment_bytes * min(1.0, line)) - written)


@dataclass(slots=True)
class SegmentAge:
    """Since when the segment that the node writes to has been filling, in the filler's own clock.

    A segment is met at most a period after its first write. What was there at the filler's start is as old as that
    start: the bound holds from then on.
    """

    _segment: int = field(default=-1)
    _since: float = 0.0

    def of(self, segment: int, now: float) -> float:
        if segment != self._segment:
            self._segment, self._since = segment, now
        return now - self._since
