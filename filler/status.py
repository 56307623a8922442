"""What a filler is doing, at a glance: taken each period, shown as metrics, as JSON and to a person."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from cdc_program.metrics import as_size, as_time, counters, gauges

if TYPE_CHECKING:
    from collections.abc import Iterator

    from prometheus_client.metrics_core import Metric


class Status(NamedTuple):
    """Sizes are bytes, times seconds. `fillers`: those that are heard of, this one among them; `segment_written` of
    `segment_bytes` and `segment_age`: of the segment that the node writes to; `lacking`: what its log lacks until the
    next period; `writes`, `written`, `flushes`: since the start. `held`: why nothing may be written to this node,
    `waiting`: the problem because of which nothing is done at all; empty if there is none.
    """

    host_id: str
    cluster: str
    cassandra: str
    max_segment_age: float
    segment_bytes: int
    fillers: int = 0
    is_writer: bool = False
    segment_written: int = 0
    segment_age: float = 0.0
    lacking: int = 0
    writes: int = 0
    written: int = 0
    flushes: int = 0
    held: str = ""
    waiting: str = ""

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> Status:
        """Of a filler of this version; TypeError of another."""
        return cls(**value)


def metrics(status: Status) -> Iterator[Metric]:
    """For Prometheus."""
    yield from counters(
        "cdc_filler",
        (
            ("writes", "Writes for all nodes.", status.writes),
            ("written_bytes", "Bytes of these writes, before replication.", status.written),
            ("flushes", "Flushes of this 3.11 node.", status.flushes),
        ),
    )
    yield from gauges(
        "cdc_filler",
        (
            ("fillers", "Fillers of the datacenter that are heard of, this one among them.", status.fillers),
            ("writer", "1 if this one writes for all.", float(status.is_writer)),
            ("segment_age_seconds", "Age of the segment that the node writes to.", status.segment_age),
            ("segment_written_bytes", "Bytes in it.", status.segment_written),
            ("lacking_bytes", "What the node's log lacks until the next period.", status.lacking),
            ("max_segment_age_seconds", "The bound.", status.max_segment_age),
            ("held", "1 while nothing may be written because of this node.", float(bool(status.held))),
            ("waiting", "1 while nothing is done because of an error.", float(bool(status.waiting))),
        ),
    )


def text(status: Status) -> str:
    """For a person; the last line says what it does now."""
    filled = f"{as_size(status.segment_written)} of {as_size(status.segment_bytes)}"
    lines = [
        ("node", f"{status.host_id} of {status.cluster}, Cassandra {status.cassandra}"),
        ("fillers", f"{status.fillers}, {'this one writes for all' if status.is_writer else 'another writes for all'}"),
        ("segment", f"{filled}, {as_time(status.segment_age)} of at most {as_time(status.max_segment_age)} old"),
        ("written", f"{as_size(status.written)} in {status.writes:,} writes"),
    ]
    if status.flushes:
        lines.append(("flushes", f"{status.flushes:,}"))
    return "\n".join([*(f"{name:<9} {value}" for name, value in lines), _verdict(status)])


def _verdict(status: Status) -> str:
    if status.waiting:
        return f"does nothing: {status.waiting}"
    if status.held:
        return f"nobody writes: {status.held}"
    return "works"
