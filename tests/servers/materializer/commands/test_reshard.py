"""A raw topic gets more partitions while publishers write: `state reshard` on a real broker, killed at each step."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING

import pytest

from cassandra_storage.deletion import LivenessInfo
from cassandra_storage.rows import Cell, Row
from cdc_messages.topics import partition_for
from cdc_program.errors import CdcError, Code
from materializer.commands.state import deal_out
from materializer.commands.state_list import positions_of
from materializer.fault_points import Fault, ReshardPoint
from materializer.records import RawPartition
from tests.support.materializer.raw_builder import int_bytes
from tests.support.materializer.reshard_run import LATE, Run
from tests.support.materializer.table_job import RAW_PARTITIONS, TableJob, job_settings

if TYPE_CHECKING:
    from pathlib import Path

    from local_stack.servers.interfaces import KafkaServer
    from local_stack.servers.s3 import S3Server

pytestmark = pytest.mark.servers
PARTITIONS = 5
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


def make_run(kafka: KafkaServer, prefix: str, folder: Path, **settings: object) -> Run:
    bounds = {"chunk_max_messages": 25, "snapshot_every_versions": 3, "changelogs_kept_seconds": 0}
    job = TableJob.start(job_settings(kafka.bootstrap_servers, prefix, folder))
    return Run(job.with_settings(**bounds, **settings), seed=7)


@pytest.fixture
def run(kafka: KafkaServer, topic_prefix: str, tmp_path: Path) -> Run:
    return make_run(kafka, topic_prefix, tmp_path)


def grow(run: Run) -> None:
    """Messages of before, read and unread; then of publishers that see the new partitions, and of one that does not."""
    run.send(80, RAW_PARTITIONS)
    run.beat(RAW_PARTITIONS)
    assert run.materialize(RAW_PARTITIONS) == []
    run.send(60, RAW_PARTITIONS)
    run.beat(RAW_PARTITIONS)
    run.add_partitions(PARTITIONS)
    run.send(60, PARTITIONS, late=RAW_PARTITIONS)
    run.beat(PARTITIONS)
    run.send(60, PARTITIONS)
    errors = run.materialize(PARTITIONS)
    assert {error.code for error in errors} == {Code.PARTITIONS_CHANGED}
    assert all("state reshard shop.orders" in error.fix for error in errors)


def kill(run: Run, point: ReshardPoint, nth: int) -> None:
    """The command at a point, while a publisher writes that still knows nothing of the new partitions."""
    assert run.reshard_in_child(Fault(point, nth, "kill")) == -signal.SIGKILL
    run.send(4, PARTITIONS, late=RAW_PARTITIONS)


def finish(run: Run) -> None:
    """Run it until nothing lies where it does not belong: what came by the old number after a run needs another."""
    while "are where they belong" not in run.reshard()[-1]:
        pass


def go_on(run: Run) -> None:
    """After it all messages come out, those that were there and those that are new."""
    run.send(50, PARTITIONS)
    run.beat(PARTITIONS)
    assert run.materialize(PARTITIONS) == []
    run.check()
    run.verify()


def test_each_message_comes_out_once(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    grow(run)
    settings, partitions = run.job.settings, [RawPartition(run.topic, number) for number in range(PARTITIONS)]
    before = positions_of(settings, partitions)
    deal_out(settings, "shop.orders", dry_run=True)
    assert positions_of(settings, partitions) == before
    said = capsys.readouterr().out.splitlines()
    assert said[0].endswith("the state is of 2 partitions, the topic has 5")
    assert "messages lie where 2 partitions would not put them" in said[1]
    assert len(said) == 2 + PARTITIONS
    kill(run, ReshardPoint.IN_COMMIT, 1)
    assert run.reshard()[-1].endswith("start the materializer")
    for position in positions_of(settings, partitions).values():
        assert position is not None
        assert (position.partitions, position.reshards, position.in_progress) == (PARTITIONS, 1, None)
    go_on(run)
    assert "are where they belong" in run.reshard()[-1]


@pytest.mark.exhaustive
def test_a_kill_at_any_step_is_made_good_by_another_run(run: Run) -> None:
    """docs/crashes.md says what each of them leaves."""
    assert {point for point, _ in KILLS} == set(ReshardPoint)
    grow(run)
    for point, nth in KILLS:
        kill(run, point, nth)
        assert {error.code for error in run.materialize(PARTITIONS)} == {Code.PARTITIONS_CHANGED}
    finish(run)
    go_on(run)


@pytest.mark.exhaustive
def test_on_an_object_store_the_state_is_that_of_so_many_partitions_from_the_start(
    kafka: KafkaServer, s3: S3Server, topic_prefix: str, tmp_path: Path
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
    go_on(run)


@pytest.mark.exhaustive
def test_a_publisher_that_is_late_after_it_is_merged_and_changes_only_what_is_newest(run: Run) -> None:
    """docs/operations.md: what is late stops the job; where newer writes have come first it is no change of its own."""
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
    assert [error.code for error in errors] == [Code.PARTITIONS_CHANGED]
    assert f"belongs to partition {partition_for(int_bytes(MOVED), PARTITIONS)}" in str(errors[0])
    assert run.reshard()[-1].endswith("start the materializer")
    go_on(run)  # all writes came out, and nothing of the one that was overtaken


@pytest.mark.exhaustive
def test_two_runs_do_not_go_on_beside_each_other(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    grow(run)

    def overtake(point: object) -> None:
        if point is ReshardPoint.BEFORE_SWITCH:
            monkeypatch.undo()
            run.reshard()

    monkeypatch.setattr("materializer.commands.reshard.reshard.reach", overtake)
    with pytest.raises(CdcError) as caught:
        run.reshard()
    assert caught.value.code is Code.STATE_MISMATCH
    go_on(run)
