"""Parts of a job's status that every job has: stopped shares and lag, as JSON, metrics and text."""

from __future__ import annotations

import math
from collections import Counter
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from prometheus_client.core import GaugeMetricFamily

from cdc_common.program.metrics import as_time

if TYPE_CHECKING:
    from collections.abc import Iterator

    from prometheus_client.metrics_core import Metric

    from stream_runtime.driver.lag_watch import Lag
    from stream_runtime.driver.stopped import Stop, StoppedShares
    from stream_runtime.records import Share
    from stream_runtime.words import Words

_LABELS = ("topic", "partition")
RETRIES = "Errors that a retry heals: a server was away, or the brokers had forgotten an idle producer."
SPARK_RESTARTS = "Restarts of Spark's query after failures that a restart heals."
LAG_AGE = "Time since the last measurement of the lag."


def age_of(measured_at: float | None, now: float) -> float | None:
    """The seconds since a measurement; None if there was none."""
    return None if measured_at is None else max(0.0, now - measured_at)


def _hours(seconds: float | None) -> float | None:
    return None if seconds is None or seconds == math.inf else round(seconds / 3600, 1)


def least_hours_left(lags: dict[Share, Lag], now: float) -> float | None:
    """The smallest value of all shares whose messages have waited for minutes."""
    return min((hours for lag in lags.values() if (hours := _hours(lag.seconds_left(now))) is not None), default=None)


def stop_metrics(words: Words, now: float, stops: dict[Share, Stop]) -> Iterator[Metric]:
    codes = GaugeMetricFamily(
        f"{words.metrics}_stopped_{words.key}s",
        f"Number of stopped {words.partitions}, by error code.",
        labels=("code",),
    )
    for code, count in Counter(stop.failure.error.code.text for stop in stops.values()).items():
        codes.add_metric((code,), count)
    yield codes
    seconds = GaugeMetricFamily(
        f"{words.metrics}_stopped_seconds",
        f"Time since the {words.partition} stopped.",
        labels=(*_LABELS, "code"),
    )
    for share, stop in stops.items():
        labels = (share.stream, share.number, stop.failure.error.code.text)
        seconds.add_metric(labels, max(0.0, now - stop.since))
    yield seconds


def stops_json(words: Words, stopped: StoppedShares, lags: dict[Share, Lag], now: float) -> list[dict[str, Any]]:
    """One object for each stopped share."""
    return [
        {words.key: str(share), **_stop_json(stop, stopped.seconds_to_next_try(stop), lags.get(share), now)}
        for share, stop in stopped.all().items()
    ]


def _stop_json(stop: Stop, next_try: float, lag: Lag | None, now: float) -> dict[str, Any]:
    error = stop.failure.error
    left = None if lag is None else lag.seconds_left(now)
    return {
        "code": error.code.text,
        "problem": error.problem,
        "fix": error.fix,
        "since": datetime.fromtimestamp(stop.since, UTC).isoformat(timespec="seconds"),
        "seconds": round(max(0.0, now - stop.since), 1),
        "attempts": stop.attempts,
        "next_try_seconds": round(next_try, 1),
        "offset": None if lag is None else lag.offset,
        "lag": None if lag is None else lag.messages,
        "hours_left": _hours(left),
        "is_kept": left == math.inf,
        "is_lost": lag is not None and lag.is_lost,
        "has_max_bytes": lag is not None and lag.has_max_bytes,
    }


def lag_metrics(prefix: str, meaning: str, now: float, lags: dict[Share, Lag]) -> Iterator[Metric]:
    """`meaning`: of the number of messages."""
    messages = GaugeMetricFamily(f"{prefix}_lag_messages", meaning, labels=_LABELS)
    left = GaugeMetricFamily(
        f"{prefix}_retention_seconds_left",
        "Time until Kafka may delete the first unread message; 0 if it has. Absent unless messages wait for minutes.",
        labels=_LABELS,
    )
    age = GaugeMetricFamily(
        f"{prefix}_lag_seconds",
        "Age of the first unread message; 0 unless messages have waited for minutes.",
        labels=_LABELS,
    )
    for share, lag in lags.items():
        labels = share.stream, share.number
        messages.add_metric(labels, lag.messages)
        age.add_metric(labels, 0.0 if lag.since is None else max(0.0, now - lag.since))
        seconds = lag.seconds_left(now)
        if seconds is not None and seconds < math.inf:
            left.add_metric(labels, seconds)
    yield messages
    yield age
    yield left


def stop_text(words: Words, stop: dict[str, Any]) -> str:
    """A stopped share with its fix, as text."""
    offset, lag = stop["offset"], stop["lag"]
    at = "offset unknown" if offset is None else f"offset {offset:,}"
    behind = "lag unknown" if lag is None else f"lag {lag:,}"
    wait = stop["next_try_seconds"]
    next_try = f"next in {as_time(wait)}" if wait else "trying now"
    return (
        f"{stop[words.key]}  {stop['code']}  since {stop['since']}  {at}  {behind}  {_left_text(stop)}  "
        f"attempts {stop['attempts']}, {next_try}\n  {stop['problem']}\n  fix: {stop['fix']}"
    )


def _left_text(stop: dict[str, Any]) -> str:
    """Return how long there is to act."""
    if stop["is_lost"]:
        return "LOST: Kafka has deleted unread messages"
    if stop["is_kept"]:
        return "retention.ms deletes nothing"
    if stop["hours_left"] is None:
        return "nothing unread" if stop["lag"] == 0 else "time left unknown"
    size = ", or earlier by retention.bytes" if stop["has_max_bytes"] else ""
    return f"{stop['hours_left']:g} h left until Kafka may delete it{size}"
