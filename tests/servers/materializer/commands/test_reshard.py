"""A raw topic gets more partitions while publishers write: `state reshard` on a real broker, killed at each step."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING

import pytest

from cassandra_storage.formats.rows.deletion import LivenessInfo
from cassandra_storage.formats.rows.row import Cell, Row
from cdc_common.errors.codes import CdcError, Code
from cdc_common.messages.topics import partition_for
from materializer.commands.reshard.command import reshard_state
from materializer.commands.stored_partitions import read_positions
from materializer.fault_points import ReshardPoint
from materializer.records import RawPartition
from stream_runtime.fault_points import Fault
from tests.support.materializer.raw_builder import int_bytes
from tests.support.materializer.reshard_run import LATE, PARTITIONS, Run, continue_and_check, grow, make_run
from tests.support.materializer.table_job import RAW_PARTITIONS

if TYPE_CHECKING:
    from pathlib import Path

    from dev.local_stack.servers.kafka import KafkaBroker
    from dev.local_stack.servers.s3 import S3Server

pytestmark = pytest.mark.servers
NO_PURGE = 10**9  # seconds
MOVED = next(key for key in LATE if len({partition_for(int_bytes(key), n) for n in (RAW_PARTITIONS, PARTITIONS)}) > 1)
KILLS = [
    (ReshardPoint.AFTER_CATCH_UP, 1),
    (ReshardPoint.AFTER_MARK, 1),
    (ReshardPoint.AFTER_MARK, 2),
    (ReshardPoint.IN_REDISTRIBUTION, 2),
    (ReshardPoint.BEFORE_SWITCH, 1),
    (ReshardPoint.IN_COMMIT, 1),
    (ReshardPoint.AFTER_SWITCH, 1),
    (ReshardPoint.IN_FOLD, 3),
    (ReshardPoint.IN_BACKLOG, 2),
    (ReshardPoint.IN_COMMIT, 1),
    (ReshardPoint.AFTER_FINISH, 1),
]
KILLS_ON_S3 = [(ReshardPoint.IN_REDISTRIBUTION, 2), (ReshardPoint.BEFORE_SWITCH, 1), (ReshardPoint.IN_BACKLOG, 2)]


@pytest.fixture
def run(kafka: KafkaBroker, topic_prefix: str, tmp_path: Path) -> Run:
    return make_run(kafka, topic_prefix, tmp_path)


def kill(run: Run, point: ReshardPoint, nth: int) -> None:
    """Kill the command at a point, while a publisher that does not know the new partitions writes."""
    assert run.reshard_in_child(Fault(point, nth, "kill")) == -signal.SIGKILL
    run.send(4, PARTITIONS, late=RAW_PARTITIONS)


def finish(run: Run) -> None:
    """Run it until all messages are in the right partitions: one placed by the old number needs another run."""
    while "are in the right partitions" not in run.reshard()[-1]:
        pass


def test_each_message_is_published_once(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    grow(run)
    settings, partitions = run.job.settings, [RawPartition(run.topic, number) for number in range(PARTITIONS)]
    before = read_positions(settings, partitions)
    reshard_state(settings, "shop.orders", dry_run=True)
    assert read_positions(settings, partitions) == before
    said = [line for line in capsys.readouterr().out.splitlines() if "[warning" not in line]
    assert said[0].endswith("the state has 2 partitions, the topic has 5")
    assert "messages are not where 2 partitions would place them" in said[1]
    assert len(said) == 2 + PARTITIONS
    kill(run, ReshardPoint.IN_COMMIT, 1)
    assert run.reshard()[-1].endswith("start the materializer")
    for position in read_positions(settings, partitions).values():
        assert position is not None
        assert (position.partitions, position.reshards, position.in_progress) == (PARTITIONS, 1, None)
    continue_and_check(run)
    assert "are in the right partitions" in run.reshard()[-1]


@pytest.mark.exhaustive
def test_another_run_repairs_a_kill_at_any_step(run: Run) -> None:
    """docs/internals/fault-points.md says what each kill leaves."""
    assert {point for point, _ in KILLS} == set(ReshardPoint)
    grow(run)
    for point, nth in KILLS:
        kill(run, point, nth)
        assert {error.code for error in run.materialize(PARTITIONS)} == {Code.RAW_PARTITIONS_CHANGED}
    finish(run)
    continue_and_check(run)


@pytest.mark.exhaustive
def test_on_an_object_store_the_state_is_as_if_the_partitions_had_always_been_there(
    kafka: KafkaBroker, s3: S3Server, topic_prefix: str, tmp_path: Path
) -> None:
    location = s3.location(topic_prefix)
    run = make_run(kafka, topic_prefix, tmp_path, checkpoint_location=location, purge_margin_seconds=NO_PURGE)
    grow(run)
    for point, nth in KILLS_ON_S3:
        kill(run, point, nth)
    finish(run)

    reference = make_run(kafka, f"{topic_prefix}r", tmp_path / "reference", purge_margin_seconds=NO_PURGE)
    reference.add_partitions(PARTITIONS)
    for record in run.sent:
        reference.replay(record, PARTITIONS)
    reference.beat(PARTITIONS)
    assert reference.materialize(PARTITIONS) == []
    expected = reference.stored(PARTITIONS, tmp_path / "expected")
    assert all(expected)
    assert run.stored(PARTITIONS, tmp_path / "found") == expected
    continue_and_check(run)


@pytest.mark.exhaustive
def test_a_late_publishers_writes_are_merged_and_only_the_newest_are_changes(run: Run) -> None:
    """A late message stops the job, as size.md says. It is not a change if newer writes were folded first."""
    grow(run)
    assert run.reshard()[-1].endswith("start the materializer")
    overtaken = run.next_number()
    run.write(MOVED, 0, PARTITIONS, is_deletion=False)
    run.flush()
    assert run.materialize(PARTITIONS) == []
    row = Row((int_bytes(0),), {"a": Cell(overtaken, b"late")}, LivenessInfo(overtaken))
    run.produce(MOVED, overtaken, row, RAW_PARTITIONS)
    run.write(MOVED, 1, RAW_PARTITIONS)
    run.send(20, PARTITIONS)
    errors = run.materialize(PARTITIONS)
    assert [error.code for error in errors] == [Code.RAW_PARTITIONS_CHANGED]
    assert f"belongs to partition {partition_for(int_bytes(MOVED), PARTITIONS)}" in str(errors[0])
    assert run.reshard()[-1].endswith("start the materializer")
    continue_and_check(run)  # all writes were published, except the one that was overtaken


@pytest.mark.exhaustive
def test_one_of_two_runs_at_the_same_time_continues(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    grow(run)

    def overtake(point: object) -> None:
        if point is ReshardPoint.BEFORE_SWITCH:
            monkeypatch.undo()
            run.reshard()

    monkeypatch.setattr("materializer.commands.reshard.reshard.reach", overtake)
    with pytest.raises(CdcError) as caught:
        run.reshard()
    assert caught.value.code is Code.STATE_MISMATCH
    continue_and_check(run)
