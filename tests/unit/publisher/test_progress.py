"""What is said while Kafka does not acknowledge: nothing at all, or not what the position waits for."""

from __future__ import annotations

from publisher.inflight import Mark
from publisher.progress import STALL_SECONDS, Report

LATER = STALL_SECONDS + 1.0


def test_what_moves_is_not_told() -> None:
    report = Report(0.0)
    for second in range(60):
        report.stall(float(second), acknowledged=second, in_flight=5, oldest=Mark(1, second))
    assert report.waiting(60.0) == ""


def test_nothing_in_flight_is_no_stall() -> None:
    report = Report(0.0)
    report.stall(0.0, acknowledged=3, in_flight=0, oldest=None)
    report.stall(LATER, acknowledged=3, in_flight=0, oldest=None)
    assert report.waiting(LATER) == ""


def test_a_kafka_that_acknowledges_nothing() -> None:
    report, oldest = Report(0.0), Mark(1, 1)
    for second in (0.0, LATER):
        report.stall(second, acknowledged=3, in_flight=5, oldest=oldest)
    assert "Kafka has acknowledged nothing" in report.waiting(LATER)


def test_a_partition_that_is_away_while_the_others_acknowledge() -> None:
    report, oldest = Report(0.0), Mark(1, 1)
    for second in range(int(LATER) + 1):
        report.stall(float(second), acknowledged=second, in_flight=5, oldest=oldest)
    assert "has not the oldest one" in report.waiting(LATER)
    report.stall(LATER, acknowledged=99, in_flight=5, oldest=Mark(1, 2))
    assert report.waiting(LATER) == ""


def test_heartbeats_alone_are_waited_for_too() -> None:
    """Nothing of the log is in flight."""
    report = Report(0.0)
    for second in (0.0, LATER):
        report.stall(second, acknowledged=3, in_flight=2, oldest=None)
    assert "Kafka has acknowledged nothing" in report.waiting(LATER)


def test_a_filler_whose_clock_is_ahead_took_nothing() -> None:
    report = Report(0.0)
    report.take([Mark(1, 1, written_at=2**62)])
    assert (report.log_latency, report.filler_rows, report.filler_rows_seconds) == (0.0, 1, 0.0)
