"""The status while Kafka acknowledges nothing, or not the messages that the position waits for."""

from __future__ import annotations

from math import inf

from cdc_common.errors.codes import CdcError, Code
from publisher.inflight import PendingPosition
from publisher.progress import STALL_SECONDS, Progress

LATER = STALL_SECONDS + 1.0


def test_a_moving_position_is_no_problem() -> None:
    progress = Progress(0.0)
    for second in range(60):
        progress.check_stall(float(second), acknowledged=second, in_flight=5, oldest=PendingPosition(1, second))
    assert progress.current_problem(60.0) == ""


def test_nothing_in_flight_is_no_stall() -> None:
    progress = Progress(0.0)
    progress.check_stall(0.0, acknowledged=3, in_flight=0, oldest=None)
    progress.check_stall(LATER, acknowledged=3, in_flight=0, oldest=None)
    assert progress.current_problem(LATER) == ""


def test_a_kafka_that_acknowledges_nothing() -> None:
    progress, oldest = Progress(0.0), PendingPosition(1, 1)
    for second in (0.0, LATER):
        progress.check_stall(second, acknowledged=3, in_flight=5, oldest=oldest)
    assert "Kafka has acknowledged nothing" in progress.current_problem(LATER)


def test_a_partition_that_is_away_while_the_others_acknowledge() -> None:
    progress, oldest = Progress(0.0), PendingPosition(1, 1)
    for second in range(int(LATER) + 1):
        progress.check_stall(float(second), acknowledged=second, in_flight=5, oldest=oldest)
    assert "but not the oldest one" in progress.current_problem(LATER)
    progress.check_stall(LATER, acknowledged=99, in_flight=5, oldest=PendingPosition(1, 2))
    assert progress.current_problem(LATER) == ""


def test_heartbeats_alone_can_stall_too() -> None:
    """Nothing of the log is in flight."""
    progress = Progress(0.0)
    for second in (0.0, LATER):
        progress.check_stall(second, acknowledged=3, in_flight=2, oldest=None)
    assert "Kafka has acknowledged nothing" in progress.current_problem(LATER)


def test_a_call_without_an_answer_shows_before_its_time_limit() -> None:
    """After a restart with Kafka away the first answer takes the whole connection timeout."""
    progress = Progress(0.0)
    progress.note_silence(0.5, since=0.0)
    assert progress.current_problem(0.5) == ""
    progress.note_silence(3.0, since=0.0)
    assert progress.current_problem(3.0) == "Kafka has not answered for 3 s"
    assert progress.current_problem(5.0) == "", "the call is over"
    progress.report_problem(6.0, CdcError(Code.KAFKA_UNREACHABLE, "Kafka is away.", "Start it."), inf)
    progress.note_silence(8.0, since=6.5)
    assert progress.current_problem(8.0) == "CDC-020 Kafka is away."
    progress.clear_problem()
    assert progress.current_problem(9.5) == ""


def test_a_filler_whose_clock_is_ahead_has_a_latency_of_zero() -> None:
    progress = Progress(0.0)
    progress.measure_filler_rows([PendingPosition(1, 1, written_at=2**62)])
    assert (progress.log_latency, progress.filler_rows, progress.filler_rows_seconds) == (0.0, 1, 0.0)
