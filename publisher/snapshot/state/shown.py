"""A snapshot as the status, the metrics and the commands show it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from prometheus_client.core import GaugeMetricFamily

from cdc_common.program.metrics import as_size, as_time
from publisher.snapshot.state.records import FINAL, PHASES

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from prometheus_client.metrics_core import Metric

    from publisher.snapshot.state.records import Record

_DOES = {
    "requested": "has been asked for",
    "announced": "takes its files",
    "taken": "waits until the log is published up to its flush",
    "sending": "is being sent",
    "ended": "has ended",
    "given_up": "was given up",
}


class Shown(NamedTuple):
    """A table's newest snapshot."""

    # The table, as KEYSPACE.TABLE.
    table: str
    # The snapshot's id.
    snapshot: str
    # records.Phase
    state: str
    # The number of rows sent so far.
    rows: int
    # The size of the messages sent so far.
    bytes: int
    # from 0 to 1
    done: float
    # seconds since it came further, 0 once it is over
    idle: float
    # at the pace so far, None if it is unknown
    seconds_left: float | None = None
    # why it waits, or why it was given up
    problem: str = ""
    # the share of its rate that it may use, less than 1 on a busy node
    pace: float = 1.0
    # of SSTables that compaction has replaced, and that the snapshot's links keep on disk
    pinned_bytes: int = 0
    # by the command
    is_paused: bool = False


def shown(record: Record, now: float, *, is_paused: bool = False) -> Shown:
    """`now`: s since the epoch."""
    left = None
    if not record.is_final and record.done > 0:
        left = (record.changed_at - record.sending_at) / record.done * (1 - record.done)
    return Shown(
        table=record.name,
        snapshot=str(record.snapshot),
        state=record.phase,
        rows=record.rows,
        bytes=record.bytes,
        done=record.done,
        idle=0.0 if record.is_final else max(0.0, now - record.changed_at),
        seconds_left=left,
        problem=record.problem,
        pace=record.pace,
        pinned_bytes=record.pinned_bytes,
        is_paused=is_paused and not record.is_final,
    )


def text(snapshot: Shown) -> str:
    """One line."""
    sent = f"{snapshot.rows:,} rows, {as_size(snapshot.bytes)}"
    does = "is paused" if snapshot.is_paused else _DOES.get(snapshot.state, snapshot.state)
    line = f"{snapshot.table} {does}: {sent}"
    if snapshot.pinned_bytes:
        line += f", {as_size(snapshot.pinned_bytes)} of replaced SSTables kept on disk"
    if snapshot.is_paused:
        line += f", {snapshot.done:.1%} of its tokens; --resume continues it"
    elif snapshot.state not in FINAL:
        line += f", {snapshot.done:.1%} of its tokens, {as_time(snapshot.seconds_left, 'an unknown time')} left"
    return f"{line}; {snapshot.problem}" if snapshot.problem else line


def metrics(snapshots: Sequence[Shown]) -> Iterator[Metric]:
    """One sample for each table that has had a snapshot, except of the state: one for each state, 1 or 0."""
    rows: tuple[tuple[str, str, list[float]], ...] = (
        (
            "rows",
            "Row images and range deletions of the snapshot that Kafka has acknowledged.",
            [snapshot.rows for snapshot in snapshots],
        ),
        ("bytes", "Size of the snapshot's messages before compression.", [snapshot.bytes for snapshot in snapshots]),
        ("done_ratio", "Share of the node's tokens that is done.", [snapshot.done for snapshot in snapshots]),
        (
            "pace_ratio",
            "Share of its rate that the snapshot may use: less than 1 on a busy node.",
            [snapshot.pace for snapshot in snapshots],
        ),
        (
            "pinned_bytes",
            "Size of SSTables that compaction has replaced, and that only the snapshot's links keep on disk.",
            [snapshot.pinned_bytes for snapshot in snapshots],
        ),
        (
            "idle_seconds",
            "Time since the last progress of an unfinished snapshot.",
            [snapshot.idle for snapshot in snapshots],
        ),
    )
    for name, help_text, values in rows:
        family = GaugeMetricFamily(f"cdc_publisher_snapshot_{name}", help_text, labels=["table"])
        for snapshot, value in zip(snapshots, values, strict=True):
            family.add_metric([snapshot.table], value)
        yield family
    states = GaugeMetricFamily(
        "cdc_publisher_snapshot_state",
        "1 for the state that the table's snapshot is in, 0 for the others.",
        labels=["table", "state"],
    )
    for snapshot in snapshots:
        for phase in PHASES:
            states.add_metric([snapshot.table, phase], float(snapshot.state == phase))
    yield states
