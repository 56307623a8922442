"""The job's status as JSON, as text and as metrics, and the commands that ask for it."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner, Result
from prometheus_client import CollectorRegistry, generate_latest

from cdc_common.errors.codes import CdcError, Code
from cdc_common.program.metrics import Collected
from dev.local_stack.process.network import free_ports
from materializer.cli import main
from materializer.job.status import JobStatus, text
from materializer.processing.fold_report import FoldReport
from stream_runtime.driver.lag_watch import Lag
from stream_runtime.driver.operations import job_operations
from stream_runtime.driver.stopped import Failure, StoppedShares
from stream_runtime.exactly_once.report import Report, StateReport
from stream_runtime.worker.task import TaskResult
from tests.support.stream_runtime.shares import share

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stream_runtime.records import Share

NOW = 1_800_000_000.0
A, B, C, D = (share("cdc.raw.shop.orders", number) for number in range(4))
CODES = {A: Code.MESSAGE_TOO_LARGE, B: Code.STATE_DAMAGED, C: Code.RAW_SKIPPED}


class FixedLags:
    """stream_runtime.driver.lag_watch.LagWatch after a round."""

    measured_at = NOW - 5

    def __init__(self) -> None:
        self.latest = {
            A: Lag(41, 1200, NOW + 30 * 3600, has_max_bytes=True, since=NOW - 150),
            B: Lag(7, 3, math.inf),
            C: Lag(5, 9, is_lost=True),
            D: Lag(1000, 2),
        }
        self.followed: Sequence[Share] = ()
        self.woken = 0

    def set_shares(self, raw_partitions: Sequence[Share]) -> None:
        self.followed = raw_partitions

    def measure_soon(self) -> None:
        self.woken += 1


@pytest.fixture
def status(monkeypatch: pytest.MonkeyPatch) -> JobStatus:
    monkeypatch.setattr("materializer.job.status.time.time", lambda: NOW)
    stopped = StoppedShares(lambda: 100.0, lambda: NOW - 600)
    for raw_partition, code in CODES.items():
        stopped.stop(raw_partition, Failure(CdcError(code, f"Problem of {code.text}.", f"Fix of {code.text}.")))
    lags: Any = FixedLags()
    made = JobStatus("the-group", stopped, lags)
    made.set_shares([A, B, C, D])
    own = FoldReport(2, ["a-host"], lost_hosts={"b-host": 1}, ops={"c": 3, "d": 1}, null_values={"unreadable": 2})
    report = Report(0, 9, 9, 4, 1, 0.1, commit_seconds=0.05, state=StateReport(versions=1), own=own)
    made.count_batch([TaskResult(D, report, None)])
    return made


def test_as_json(status: JobStatus) -> None:
    found = json.loads(json.dumps(status.as_json(), allow_nan=False))
    stops = found.pop("stopped")
    assert found == {
        "group": "the-group",
        "raw_partitions": 4,
        "phase": "folding",
        "waiting": "",
        "batches": 1,
        "messages": 9,
        "changes": 4,
        "dead_letters": 2,
        "stalled_publishers": 1,
        "snapshots": {},
        "untruncated": {"cdc.raw.shop.orders": ["b-host"]},
        "lag": 1214,
        "lag_measured_seconds_ago": 5.0,
        "least_hours_left": 0.0,
        "spark": None,
        "local_states": [],
    }
    assert stops[0] == {
        "raw_partition": str(A),
        "code": "CDC-082",
        "problem": "Problem of CDC-082.",
        "fix": "Fix of CDC-082.",
        "since": "2027-01-15T07:50:00+00:00",
        "seconds": 600.0,
        "attempts": 1,
        "next_try_seconds": 1.0,
        "offset": 41,
        "lag": 1200,
        "hours_left": 30.0,
        "is_kept": False,
        "is_lost": False,
        "has_max_bytes": True,
    }
    assert [(stop["hours_left"], stop["is_kept"], stop["is_lost"]) for stop in stops[1:]] == [
        (None, True, False),
        (0.0, False, True),
    ]


def test_as_text(status: JobStatus) -> None:
    lines = text(status.as_json()).splitlines()
    assert lines[0] == (
        "cdc.raw.shop.orders-0  CDC-082  since 2027-01-15T07:50:00+00:00  offset 41  lag 1,200  30 h left until Kafka "
        "may delete it, or earlier by retention.bytes  attempts 1, next in 1.0 s"
    )
    assert lines[1:3] == ["  Problem of CDC-082.", "  fix: Fix of CDC-082."]
    assert "retention.ms deletes nothing" in lines[3]
    assert "LOST: Kafka has deleted unread messages" in lines[6]
    assert lines[9] == "1 of 4 raw partitions work; 3 are stopped"
    assert lines[10].startswith("lag 1,214 messages (measured 5.0 s ago); 9 folded, 4 changes and 2 dead letters")
    assert lines[12:] == [
        "1 publishers are stalled: no tombstone is purged",
        "cdc.raw.shop.orders needs a snapshot: b-host did not take part in a TRUNCATE",
    ]


def test_running_snapshots(status: JobStatus) -> None:
    """A raw partition says what is running there in the last chunk that it has folded."""

    def folded(raw_partition: Share, running: Sequence[str], chunks: int = 1) -> None:
        report = Report(0, 9, 9, 0, chunks, 0.1, own=FoldReport(running_snapshots=running))
        status.count_batch([TaskResult(raw_partition, report, None)])

    folded(A, ["one"])
    folded(B, ["one", "two"])
    folded(A, [], chunks=0)
    assert status.as_json()["snapshots"] == {"one": 2, "two": 1}
    assert text(status.as_json()).splitlines()[-3:-1] == [
        "snapshot one is running in 2 raw partitions: no tombstone is purged there",
        "snapshot two is running in 1 raw partitions: no tombstone is purged there",
    ]
    folded(B, [])
    assert status.as_json()["snapshots"] == {"one": 1}
    registry = CollectorRegistry()
    registry.register(Collected(status.metrics))
    assert "cdc_materializer_snapshot_raw_partitions 1.0" in generate_latest(registry).decode().splitlines()


def test_a_topic_that_is_gone_is_forgotten(status: JobStatus) -> None:
    status.count_batch([TaskResult(D, Report(0, 9, 9, 0, 1, 0.1, own=FoldReport(running_snapshots=["one"])), None)])
    status.set_shares([])
    assert status.as_json()["snapshots"] == {}
    registry = CollectorRegistry()
    registry.register(Collected(status.metrics))
    assert 'cdc_materializer_table_messages_total{topic="' not in generate_latest(registry).decode()


def test_a_stopped_raw_partition_without_figures(status: JobStatus) -> None:
    status._lags.latest = {}
    status._lags.measured_at = None
    status.wait_because("CDC-020 Kafka does not answer.")
    lines = text(status.as_json()).splitlines()
    assert "offset unknown  lag unknown  time left unknown" in lines[0]
    assert "not measured yet" in lines[10]
    assert lines[-1] == "waiting: CDC-020 Kafka does not answer."


def test_what_a_retry_heals_is_counted(status: JobStatus) -> None:
    for code, renewed, count in ((Code.KAFKA_UNREACHABLE, 0, 1), (Code.STATE_DAMAGED, 0, 1), (None, 1, 2)):
        error = None if code is None else CdcError(code, "It does not go.", "Make it go.")
        status.count_batch([TaskResult(D, Report(0, 9, 9, 0, 1, 0.1, renewed=renewed), error)])
        registry = CollectorRegistry()
        registry.register(Collected(status.metrics))
        assert registry.get_sample_value("cdc_materializer_retries_total") == count


def test_metrics(status: JobStatus) -> None:
    registry = CollectorRegistry()
    registry.register(Collected(status.metrics))
    shown = generate_latest(registry).decode()
    where = 'partition="%d",topic="cdc.raw.shop.orders"'
    for line in (
        "cdc_materializer_batches_total 1.0",
        "cdc_materializer_messages_total 9.0",
        "cdc_materializer_changes_total 4.0",
        "cdc_materializer_dead_letters_total 2.0",
        "cdc_materializer_raw_partitions 4.0",
        "cdc_materializer_waiting 0.0",
        "cdc_materializer_stalled_publishers 1.0",
        "cdc_materializer_untruncated_raw_partitions 1.0",
        "cdc_materializer_lag_age_seconds 5.0",
        'cdc_materializer_stopped_raw_partitions{code="CDC-082"} 1.0',
        'cdc_materializer_stopped_seconds{code="CDC-052",partition="1",topic="cdc.raw.shop.orders"} 600.0',
        f"cdc_materializer_lag_messages{{{where % 0}}} 1200.0",
        f"cdc_materializer_lag_seconds{{{where % 0}}} 150.0",
        f"cdc_materializer_lag_seconds{{{where % 3}}} 0.0",
        'cdc_materializer_table_messages_total{topic="cdc.raw.shop.orders"} 9.0',
        'cdc_materializer_table_chunks_total{topic="cdc.raw.shop.orders"} 1.0',
        'cdc_materializer_table_versions_total{topic="cdc.raw.shop.orders"} 1.0',
        'cdc_materializer_table_seconds_total{topic="cdc.raw.shop.orders"} 0.1',
        'cdc_materializer_table_commit_seconds_total{topic="cdc.raw.shop.orders"} 0.05',
        'cdc_materializer_table_changes_total{op="c",topic="cdc.raw.shop.orders"} 3.0',
        'cdc_materializer_table_changes_total{op="d",topic="cdc.raw.shop.orders"} 1.0',
        'cdc_materializer_table_null_values_total{reason="unreadable",topic="cdc.raw.shop.orders"} 2.0',
        f"cdc_materializer_retention_seconds_left{{{where % 0}}} 108000.0",
        f"cdc_materializer_retention_seconds_left{{{where % 2}}} 0.0",
    ):
        assert line in shown.splitlines(), shown
    assert f"cdc_materializer_retention_seconds_left{{{where % 1}}}" not in shown
    assert f"cdc_materializer_retention_seconds_left{{{where % 3}}}" not in shown


def test_a_failure_is_measured_soon(status: JobStatus) -> None:
    lags: Any = status._lags
    status.count_batch([TaskResult(D, None, CdcError(Code.STATE_DAMAGED, "It does not go.", "Make it go."))])
    assert lags.woken == 1


def ask(port: int, *arguments: str) -> Result:
    return CliRunner().invoke(main, [*arguments, "--operations-port", str(port)])


def test_the_commands(status: JobStatus) -> None:
    [port] = free_ports(1)
    settings: Any = type("Settings", (), {"operations_address": "127.0.0.1", "operations_port": port})()
    with job_operations(settings, status):
        answer = ask(port, "status")
        assert (answer.exit_code, answer.output.splitlines()) == (4, text(status.as_json()).splitlines())
        answer = ask(port, "status", "--json")
        assert (answer.exit_code, json.loads(answer.output)) == (4, status.as_json())
        assert ask(port, "retry", str(B), str(D)).output.splitlines() == [
            f"{B} is tried now",
            f"{D} is not stopped, or is being tried already",
        ]
        assert status.stopped.begin_tries() == {B}
        assert ask(port, "retry").output.splitlines() == [f"{A} is tried now", f"{C} is tried now"]
        status.stopped.forget_all_but([])
        assert ask(port, "retry").output == "nothing waits for another try\n"
        answer = ask(port, "status")
        assert (answer.exit_code, answer.output.splitlines()[0]) == (0, "4 of 4 raw partitions work; 0 are stopped")
    answer = ask(port, "status")
    assert answer.exit_code == Code.PROGRAM_UNREACHABLE.exit_status
    assert "state ls" in answer.output


def report(messages: int) -> TaskResult:
    return TaskResult(A, Report(0, messages, messages, 0, 1, 0.1), None)


def test_the_phase_says_what_the_job_does() -> None:
    lags: Any = FixedLags()
    status = JobStatus("g", StoppedShares(), lags)
    assert status.phase == "starting"
    status.count_batch([])
    status.set_shares([A], 3)
    assert status.phase == "planning: 3 raw topics are not planned yet"
    assert "planning: 3 raw topics" in text({**status.as_json()})
    status.set_shares([A])
    assert status.phase == "folding"
    status.wait_because("CDC-020 away")
    assert status.phase == "waiting"


def test_nothing_folded_although_there_is_something_is_a_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [1000.0]
    monkeypatch.setattr("materializer.job.status.time.monotonic", lambda: now[0])
    lags: Any = FixedLags()
    made = JobStatus("g", StoppedShares(), lags)
    assert made.problem() == "The job is starting: it has not ended its first batch."
    made.count_batch([report(0)])
    assert made.problem() == "Nothing was folded since the start, although 1,214 messages are unread."
    made.wait_because("CDC-020 away")
    assert made.problem() == ""  # a restart would not help
    made.wait_because("")
    made.count_batch([report(3)])
    assert made.problem() == ""
    now[0] += 601
    assert made.problem() == "Nothing was folded for 601 s, although 1,214 messages are unread."
    lags.latest = {}
    assert made.problem() == ""


def test_what_is_stopped_is_no_reason_to_restart() -> None:
    stopped = StoppedShares()
    lags: Any = FixedLags()
    for lagging in lags.latest:
        stopped.stop(lagging, Failure(CdcError(Code.STATE_DAMAGED, "It is torn.", "Mend it.")))
    made = JobStatus("g", stopped, lags)
    made.count_batch([])
    assert made.problem() == ""
