"""A publisher's status: taken once a second; shown as metrics, as JSON, and as text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from prometheus_client.core import GaugeMetricFamily

from cdc_common.program.metrics import as_lines, as_size, as_time, counters, gauges, summary
from publisher.snapshot.state import shown
from publisher.snapshot.state.shown import Shown
from publisher.topics.waiting import ShownTable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from prometheus_client.metrics_core import Metric

_LISTS = ("losses", "need_snapshot", "excluded_tables", "refused_tables")
LEAST_SECONDS = 600.0  # a stop is safe if cdc_raw has room for at least this time


class Status(NamedTuple):
    """The state of a publisher. Sizes are in bytes, times in seconds."""

    # The node's host id.
    host_id: str
    # The Cassandra cluster's name.
    cluster: str
    # Cassandra's release.
    cassandra: str
    # Whether the native core is in use.
    is_compiled: bool
    # The number of published tables.
    tables: int = 0
    # The number of mutations published since the start.
    mutations: int = 0
    # those of `mutations` that the native core took
    native_mutations: int = 0
    # The number of raw messages sent since the start.
    messages: int = 0
    # The bytes of the commit log published since the start.
    bytes: int = 0
    # updates of the excluded tables
    excluded_updates: int = 0
    # tables that the settings exclude
    excluded_tables: tuple[str, ...] = ()
    # tables with `cdc = true` that cannot be published, each with the reason
    refused_tables: tuple[str, ...] = ()
    # tables that wait while the others go on
    waiting_tables: tuple[ShownTable, ...] = ()
    # The number of messages that Kafka has not acknowledged yet.
    in_flight: int = 0
    # The number of acknowledgements since the start.
    deliveries: int = 0
    # The sum of the times from sending to acknowledgement.
    delivery_seconds: float = 0.0
    # The bytes of the commit log that are not published yet.
    lag_bytes: int = 0
    # age of the oldest durable log data that Kafka has not acknowledged; None before the first acknowledgement
    lag_seconds: float | None = None
    # time from write to publishing of the last filler row
    log_latency_seconds: float | None = None
    # the number of filler rows that were reached
    filler_rows: int = 0
    # the sum of their times from write to publishing
    filler_rows_seconds: float = 0.0
    # The number of segments in cdc_raw.
    segments: int = 0
    # see log.space.Space, up to `seconds_to_full`
    used: int = 0
    # The bytes at which Cassandra refuses CDC writes.
    full_at: int = 0
    # The bytes a second that arrive in cdc_raw.
    arriving: float = 0.0
    # The bytes a second that are deleted from cdc_raw.
    leaving: float = 0.0
    # The time until cdc_raw is full; None if it does not fill up.
    seconds_to_full: float | None = None
    # without a publisher
    seconds_to_full_if_stopped: float | None = None
    # The number of mutations in quarantine.
    quarantined: int = 0
    # The number of segments in the spool folder.
    spool_segments: int = 0
    # The size of these segments.
    spool_bytes: int = 0
    # 0 if the spool is off
    spool_max: int = 0
    # why no segment can move to the spool, or empty
    spool_problem: str = ""
    # segments since the start
    spooled: int = 0
    # The memory of the process.
    memory: int = 0
    # the reason why the publisher waits, or empty
    waiting: str = ""
    # the settings that lose changes now
    losses: tuple[str, ...] = ()
    # tables that lack changes
    need_snapshot: tuple[str, ...] = ()
    # the newest one of each table that has had one
    snapshots: tuple[Shown, ...] = ()

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> Status:
        """Return the status of a publisher of this version; TypeError for another version."""
        lists = {name: tuple(value.get(name, ())) for name in _LISTS}
        snapshots = tuple(Shown(**snapshot) for snapshot in value.get("snapshots", ()))
        waiting = tuple(ShownTable(*table) for table in value.get("waiting_tables", ()))
        return cls(**{**value, **lists, "snapshots": snapshots, "waiting_tables": waiting})

    def to_json(self) -> dict[str, Any]:
        """Return the JSON that `from_json` reads."""
        return {**self._asdict(), "snapshots": [snapshot._asdict() for snapshot in self.snapshots]}


def metrics(status: Status) -> Iterator[Metric]:
    """Yield the Prometheus metrics of the status."""
    yield from counters("cdc_publisher", _counters(status))
    yield summary(
        "cdc_publisher_delivery_seconds",
        "Time from handing a message to the Kafka client to its acknowledgement.",
        status.deliveries,
        status.delivery_seconds,
    )
    yield summary(
        "cdc_publisher_write_to_publish_seconds",
        "Time from the write of a filler row to the acknowledgement of all before it, by the clocks of both machines.",
        status.filler_rows,
        status.filler_rows_seconds,
    )
    yield from gauges("cdc_publisher", _gauges(status))
    yield _waiting_tables(status)
    yield from shown.metrics(status.snapshots)


def _waiting_tables(status: Status) -> Metric:
    family = GaugeMetricFamily(
        "cdc_publisher_waiting_table",
        "1 for each table that waits while the others go on, with the code of the reason.",
        labels=["table", "code"],
    )
    for table in status.waiting_tables:
        family.add_metric([table.name, table.code], 1)
    return family


def _counters(status: Status) -> tuple[tuple[str, str, float], ...]:
    return (
        ("mutations", "Mutations read from the commit log.", status.mutations),
        (
            "native_mutations",
            "Mutations decoded by the native core. Python decodes the others.",
            status.native_mutations,
        ),
        ("messages", "Raw messages sent, one per row.", status.messages),
        ("bytes", "Size of the raw messages sent.", status.bytes),
        ("excluded_updates", "Updates skipped because the settings exclude their table.", status.excluded_updates),
        ("spooled_segments", "Segments moved to the spool.", status.spooled),
    )


def _gauges(status: Status) -> tuple[tuple[str, str, float | None], ...]:
    return (
        ("tables", "Number of published tables.", status.tables),
        ("in_flight_messages", "Messages sent that Kafka has not acknowledged yet.", status.in_flight),
        ("lag_bytes", "Durable commit log data that Kafka has not acknowledged yet.", status.lag_bytes),
        (
            "lag_seconds",
            "Age of the oldest durable commit log data that Kafka has not acknowledged yet.",
            status.lag_seconds,
        ),
        (
            "log_latency_seconds",
            "Time from the write of the newest filler row to the acknowledgement of all before it.",
            status.log_latency_seconds,
        ),
        ("cdc_raw_segments", "Number of segments in cdc_raw.", status.segments),
        ("cdc_raw_bytes", "Size of the segments in cdc_raw, counted as the node counts.", status.used),
        ("cdc_raw_full_at_bytes", "Size of cdc_raw above which the node refuses CDC writes.", status.full_at),
        ("cdc_raw_arriving_bytes_per_second", "Rate at which the node adds to cdc_raw.", status.arriving),
        ("cdc_raw_leaving_bytes_per_second", "Rate at which the publisher removes from cdc_raw.", status.leaving),
        (
            "cdc_raw_full_in_seconds",
            "Forecast of the time until the node refuses CDC writes. Absent if none is in sight.",
            status.seconds_to_full,
        ),
        ("refused_tables", "Number of tables with cdc = true that cannot be published.", len(status.refused_tables)),
        ("waiting_tables", "Number of tables that wait while the others go on.", len(status.waiting_tables)),
        ("quarantined_mutations", "Number of mutations in quarantine, which could not be decoded.", status.quarantined),
        ("spool_segments", "Number of segments in the spool.", status.spool_segments),
        ("spool_bytes", "Size of the segments in the spool.", status.spool_bytes),
        ("spool_max_bytes", "Maximum size of the spool; 0 if it is off.", status.spool_max),
        (
            "spool_stuck",
            "1 while cdc_raw fills up and no segment can be moved to the spool.",
            float(bool(status.spool_problem)),
        ),
        ("waiting", "1 while the publisher waits for Cassandra, Kafka or the registry.", float(bool(status.waiting))),
        ("tables_needing_snapshot", "Number of published tables that lack changes.", len(status.need_snapshot)),
        ("losing_changes", "Number of settings of the node and its keyspaces that lose changes.", len(status.losses)),
    )


def text(status: Status) -> str:
    """Return the status as text. The last line says whether it is safe to stop the publisher."""
    speed = f"filled by {_rate(status.arriving)}, emptied by {_rate(status.leaving)}"
    lines = [
        ("node", f"{status.host_id} of {status.cluster}, Cassandra {status.cassandra}"),
        ("tables", f"{status.tables} published{_excluded(status)}"),
        ("read", f"{status.mutations:,} mutations"),
        ("sent", f"{status.messages:,} messages, {as_size(status.bytes)}; {status.in_flight:,} in flight"),
        ("lag", f"{as_time(status.lag_seconds)}, {as_size(status.lag_bytes)}"),
        ("delivery", f"{1000 * status.delivery_seconds / max(status.deliveries, 1):.0f} ms on average"),
        ("cdc_raw", f"{as_size(status.used)} of {as_size(status.full_at)} in {status.segments} segments, {speed}"),
        ("full in", as_time(status.seconds_to_full, "not in sight")),
        ("memory", f"{as_size(status.memory)}{'' if status.is_compiled else ', not compiled'}"),
        *_optional_lines(status),
    ]
    return "\n".join([*as_lines(lines), verdict(status)])


def _optional_lines(status: Status) -> Iterator[tuple[str, str]]:
    yield from (("refused", refused) for refused in status.refused_tables)
    yield from (("table waits", table.text) for table in status.waiting_tables)
    if status.log_latency_seconds is not None:
        yield "log", f"{as_time(status.log_latency_seconds)} from the last filler write to its publishing"
    if status.spool_max or status.spool_segments:
        room = f" of {as_size(status.spool_max)}" if status.spool_max else " (off)"
        yield "spool", f"{as_size(status.spool_bytes)}{room} in {status.spool_segments} segments"
    if status.spool_problem:
        yield "spool", status.spool_problem
    if status.quarantined:
        yield "quarantined", f"{status.quarantined} mutations: cassandra-publisher quarantine ls"
    if status.waiting:
        yield "waiting", status.waiting
    for problem in status.losses:
        yield "losing", problem
    if status.need_snapshot:
        yield "incomplete", f"a snapshot is needed of {', '.join(status.need_snapshot)}"
    for snapshot in status.snapshots:
        yield "snapshot", shown.text(snapshot)


def _excluded(status: Status) -> str:
    if not status.excluded_tables:
        return ""
    names = ", ".join(status.excluded_tables)
    return f"; excluded by the settings: {names} ({status.excluded_updates:,} updates skipped)"


def verdict(status: Status) -> str:
    """Return whether the publisher may be stopped for a while: the position is always kept, but cdc_raw fills up."""
    if status.full_at and status.used > status.full_at:
        return "not safe to stop: cdc_raw is full, the node refuses CDC writes until segments are published"
    left = status.seconds_to_full_if_stopped
    if left is not None and left < LEAST_SECONDS:
        return f"not safe to stop: without a publisher cdc_raw is full in {as_time(left)}, and CDC writes are refused"
    again = f"; {status.in_flight:,} messages in flight are sent again" if status.in_flight else ""
    room = f" for {as_time(left)}" if left is not None else ""
    return f"safe to stop: nothing is lost, cdc_raw has room{room}{again}"


def _rate(count: float) -> str:
    return f"{as_size(count)}/s"
