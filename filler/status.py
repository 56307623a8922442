"""The status of a filler, updated each period: as metrics, as JSON and as text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from cdc_common.program.metrics import as_lines, as_size, as_time, counters, gauges

if TYPE_CHECKING:
    from collections.abc import Iterator

    from prometheus_client.metrics_core import Metric


class Status(NamedTuple):
    """The state of a filler. Sizes are in bytes, times in seconds."""

    # The node's host id.
    host_id: str
    # The Cassandra cluster's name.
    cluster: str
    # Cassandra's release.
    cassandra: str
    # The age that a segment may have.
    max_segment_age: float
    # The size of a full segment.
    segment_bytes: int
    # the known fillers, including this one
    fillers: int = 0
    # Whether this filler writes for the datacenter.
    is_writer: bool = False
    # of the node's newest segment, as the next one
    segment_written: int = 0
    # The age of the newest segment.
    segment_age: float = 0.0
    # the bytes that the newest segment needs until the next period
    padding: int = 0
    # since the start, as the next two
    writes: int = 0
    # The bytes written since the start.
    written: int = 0
    # The number of flushes since the start.
    flushes: int = 0
    # why writes to this node must pause, or empty
    paused: str = ""
    # the error that prevents all work, or empty
    waiting: str = ""

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> Status:
        """The status of a filler of this version; TypeError for another version's."""
        return cls(**value)


def status_metrics(status: Status) -> Iterator[Metric]:
    """The status as metrics of Prometheus."""
    yield from counters(
        "cdc_filler",
        (
            ("writes", "Padding writes. Each reaches all nodes of the datacenter.", status.writes),
            ("written_bytes", "Size of the padding written, before replication.", status.written),
            ("flushes", "Completed flushes of this node. Only Cassandra 3.11 needs them.", status.flushes),
        ),
    )
    yield from gauges(
        "cdc_filler",
        (
            ("fillers", "Number of known fillers in the datacenter, including this one.", status.fillers),
            ("writer", "1 if this filler is the one that writes for the datacenter.", float(status.is_writer)),
            ("segment_age_seconds", "Age of the commit log segment that the node writes to.", status.segment_age),
            (
                "segment_written_bytes",
                "Size of the data in the commit log segment that the node writes to.",
                status.segment_written,
            ),
            ("padding_bytes", "Padding that this segment needs until the next period.", status.padding),
            ("max_segment_age_seconds", "The setting filler.max_segment_age_seconds.", status.max_segment_age),
            ("paused", "1 while all fillers of the datacenter pause because of this node.", float(bool(status.paused))),
            ("waiting", "1 while an error stops this filler.", float(bool(status.waiting))),
        ),
    )


def status_text(status: Status) -> str:
    """The status as text; the last line says what the filler does now."""
    filled = f"{as_size(status.segment_written)} of {as_size(status.segment_bytes)}"
    lines = [
        ("node", f"{status.host_id} of {status.cluster}, Cassandra {status.cassandra}"),
        ("fillers", f"{status.fillers}, {'this one writes' if status.is_writer else 'another one writes'}"),
        ("segment", f"{filled}, {as_time(status.segment_age)} of at most {as_time(status.max_segment_age)} old"),
        ("written", f"{as_size(status.written)} in {status.writes:,} writes"),
    ]
    if status.flushes:
        lines.append(("flushes", f"{status.flushes:,}"))
    return "\n".join([*as_lines(lines), _verdict(status)])


def _verdict(status: Status) -> str:
    if status.waiting:
        return f"waiting: {status.waiting}"
    if status.paused:
        return f"paused: {status.paused}"
    return "running"
