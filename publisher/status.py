"""What a publisher is doing, at a glance: taken once a second, shown as metrics, as JSON and to a person."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from cdc_program.metrics import as_size, as_time, counters, gauges, summary

if TYPE_CHECKING:
    from collections.abc import Iterator

    from prometheus_client.metrics_core import Metric

LEAST_SECONDS = 600.0  # that a stop must be able to last


class Status(NamedTuple):
    """Sizes are bytes, times seconds.

    `used` to `seconds_to_full`: see publisher.space.Space. `left_out`: tables, by the settings; `excluded`: updates of
    theirs. `lag_seconds`: since when all that was durable then is acknowledged; None before the first time.
    `filler_rows`: how many of a filler's rows were reached, `filler_rows_seconds` after their writes in sum, and
    `log_latency_seconds` of the last. `spool_max`: 0 if nothing goes to the spool; `spool_problem`: why nothing can go
    there though it should; `spooled`: segments, since the start. `waiting`: the problem that is waited for, empty if
    none. `losing`: what loses changes now.
    """

    host_id: str
    cluster: str
    cassandra: str
    is_compiled: bool
    tables: int = 0
    mutations: int = 0
    messages: int = 0
    bytes: int = 0
    excluded: int = 0
    left_out: tuple[str, ...] = ()
    in_flight: int = 0
    deliveries: int = 0
    delivery_seconds: float = 0.0
    lag_bytes: int = 0
    lag_seconds: float | None = None
    log_latency_seconds: float | None = None
    filler_rows: int = 0
    filler_rows_seconds: float = 0.0
    segments: int = 0
    used: int = 0
    full_at: int = 0
    arriving: float = 0.0
    leaving: float = 0.0
    seconds_to_full: float | None = None
    seconds_without_us: float | None = None
    quarantined: int = 0
    spool_segments: int = 0
    spool_bytes: int = 0
    spool_max: int = 0
    spool_problem: str = ""
    spooled: int = 0
    memory: int = 0
    waiting: str = ""
    losing: tuple[str, ...] = ()

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> Status:
        """Of a publisher of this version; TypeError of another."""
        return cls(**{**value, "losing": tuple(value["losing"]), "left_out": tuple(value["left_out"])})


def metrics(status: Status) -> Iterator[Metric]:
    """For Prometheus."""
    yield from counters("cdc_publisher", _counters(status))
    yield summary(
        "cdc_publisher_delivery_seconds",
        "From handing a message to the client to its acknowledgement.",
        status.deliveries,
        status.delivery_seconds,
    )
    yield summary(
        "cdc_publisher_write_to_publish_seconds",
        "From the write of a filler's row to its publishing, by the two machines' clocks.",
        status.filler_rows,
        status.filler_rows_seconds,
    )
    yield from gauges("cdc_publisher", _gauges(status))


def _counters(status: Status) -> tuple[tuple[str, str, float], ...]:
    return (
        ("mutations", "Mutations read.", status.mutations),
        ("messages", "Raw messages sent, a row each.", status.messages),
        ("bytes", "Bytes of raw messages sent.", status.bytes),
        ("excluded_updates", "Updates of tables that the settings leave out, passed over.", status.excluded),
        ("spooled_segments", "Segments moved to the spool.", status.spooled),
    )


def _gauges(status: Status) -> tuple[tuple[str, str, float | None], ...]:
    return (
        ("tables", "Tables published.", status.tables),
        ("in_flight_messages", "Messages not acknowledged yet.", status.in_flight),
        ("lag_bytes", "Durable bytes of the log that are not acknowledged.", status.lag_bytes),
        ("lag_seconds", "Since when all that was durable then is acknowledged.", status.lag_seconds),
        ("log_latency_seconds", "From the newest filler's row's write to its publishing.", status.log_latency_seconds),
        ("cdc_raw_segments", "Segments in cdc_raw.", status.segments),
        ("cdc_raw_bytes", "Bytes in cdc_raw.", status.used),
        ("cdc_raw_full_at_bytes", "Bytes at which CDC writes are refused.", status.full_at),
        ("cdc_raw_arriving_bytes_per_second", "Growth of cdc_raw by the node.", status.arriving),
        ("cdc_raw_leaving_bytes_per_second", "Deleted from cdc_raw.", status.leaving),
        ("cdc_raw_full_in_seconds", "Until CDC writes are refused; absent if not in sight.", status.seconds_to_full),
        ("quarantined_mutations", "Mutations put aside.", status.quarantined),
        ("spool_segments", "Segments in the spool.", status.spool_segments),
        ("spool_bytes", "Bytes in the spool.", status.spool_bytes),
        ("spool_max_bytes", "Bytes that it may hold; 0 if nothing goes there.", status.spool_max),
        ("spool_stuck", "1 while cdc_raw fills and nothing can be moved.", float(bool(status.spool_problem))),
        ("waiting", "1 while Cassandra, Kafka or the registry is waited for.", float(bool(status.waiting))),
        ("losing_changes", "Findings of the preflight that lose changes.", len(status.losing)),
    )


def text(status: Status) -> str:
    """For a person; the last line says whether it is safe to stop."""
    speed = f"filled by {_rate(status.arriving)}, emptied by {_rate(status.leaving)}"
    lines = [
        ("node", f"{status.host_id} of {status.cluster}, Cassandra {status.cassandra}"),
        ("tables", f"{status.tables} published{_left_out(status)}"),
        ("read", f"{status.mutations:,} mutations"),
        ("sent", f"{status.messages:,} messages, {as_size(status.bytes)}; {status.in_flight:,} in flight"),
        ("lag", f"{as_time(status.lag_seconds)}, {as_size(status.lag_bytes)}"),
        ("delivery", f"{1000 * status.delivery_seconds / max(status.deliveries, 1):.0f} ms on average"),
        ("cdc_raw", f"{as_size(status.used)} of {as_size(status.full_at)} in {status.segments} segments, {speed}"),
        ("full in", as_time(status.seconds_to_full, "not in sight")),
        ("memory", f"{as_size(status.memory)}{'' if status.is_compiled else ', not compiled'}"),
    ]
    if status.log_latency_seconds is not None:
        lines.append(("log", f"{as_time(status.log_latency_seconds)} from the last filler's write to its publishing"))
    if status.spool_max or status.spool_segments:
        room = f" of {as_size(status.spool_max)}" if status.spool_max else ", which takes no more"
        lines.append(("spool", f"{as_size(status.spool_bytes)}{room} in {status.spool_segments} segments"))
    if status.spool_problem:
        lines.append(("spool", status.spool_problem))
    if status.quarantined:
        lines.append(("put aside", f"{status.quarantined} mutations: cassandra-publisher quarantine ls"))
    if status.waiting:
        lines.append(("waiting", status.waiting))
    lines += [("losing", problem) for problem in status.losing]
    return "\n".join([*(f"{name:<9} {value}" for name, value in lines), verdict(status)])


def _left_out(status: Status) -> str:
    if not status.left_out:
        return ""
    return f"; left out by the settings: {', '.join(status.left_out)} ({status.excluded:,} updates passed over)"


def verdict(status: Status) -> str:
    """Whether it may be stopped for a while: the position is kept at any time, but cdc_raw fills meanwhile."""
    if status.full_at and status.used > status.full_at:
        return "not safe to stop: cdc_raw is full, the node refuses CDC writes until segments are published"
    left = status.seconds_without_us
    if left is not None and left < LEAST_SECONDS:
        return f"not safe to stop: without a publisher cdc_raw is full in {as_time(left)}, and CDC writes are refused"
    again = f"; {status.in_flight:,} messages in flight are sent again" if status.in_flight else ""
    room = f" for {as_time(left)}" if left is not None else ""
    return f"safe to stop: nothing is lost, cdc_raw has room{room}{again}"


def _rate(count: float) -> str:
    return f"{as_size(count)}/s"
