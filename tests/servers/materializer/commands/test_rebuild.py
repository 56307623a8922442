"""`rebuild` on a real broker: the state is lost, the command is killed at each step, readers get the right rows."""

from __future__ import annotations

import shutil
import signal
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from cassandra_storage.formats.rows.deletion import LivenessInfo
from cassandra_storage.formats.rows.row import Cell, Row
from cdc_common.errors.codes import CdcError, Code
from materializer.commands.rebuild.rebuild import Rebuild
from materializer.commands.stored_partitions import read_positions
from materializer.errors import RAW_FAULTS
from materializer.fault_points import RebuildPoint
from materializer.output.dead_letters import unresolved_dead_letters
from materializer.records import RawPartition
from stream_runtime import fault_points
from stream_runtime.fault_points import Fault
from stream_runtime.kafka import FencingProducer, command_errors
from tests.support.materializer.raw_builder import int_bytes
from tests.support.materializer.reshard_run import Run, in_child
from tests.support.materializer.table_job import RAW_PARTITIONS, PatientPlanner, TableJob, job_settings, run_task

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dev.local_stack.servers.kafka import KafkaBroker
    from stream_runtime.exactly_once.position import Position

pytestmark = pytest.mark.servers
GROWN = 5
KILLS = [
    (RebuildPoint.POSITION_MARKED, 1),
    (RebuildPoint.ROWS_SENT, 2),
    (RebuildPoint.ROWS_ENDED, 1),
    (RebuildPoint.STATE_DELETED, 1),
    (RebuildPoint.STATE_BEGUN, 1),
    (RebuildPoint.POSITIONS_SENT, 1),
]


@pytest.fixture
def run(kafka: KafkaBroker, topic_prefix: str, tmp_path: Path) -> Run:
    job = TableJob.start(job_settings(kafka.bootstrap_servers, topic_prefix, tmp_path))
    return Run(
        job.with_settings(chunk_max_messages=25, snapshot_every_versions=3, changelog_retention_seconds=0), seed=7
    )


def rebuild(job: TableJob) -> list[str]:
    said: list[str] = []
    with command_errors("rebuild", RAW_FAULTS):
        Rebuild(job.settings, "shop.orders", job.registry, said.append).rebuild_table()
    return said


def rebuild_at(job: TableJob, fault: Fault) -> None:
    fault_points.armed = fault
    rebuild(job)


def lose_state(run: Run) -> None:
    """Delete the state of the first raw partition, here and in the checkpoint location."""
    settings = run.job.settings.materializer
    for home in (Path(settings.checkpoint_location), settings.state_directory):
        shutil.rmtree(home / settings.group_id / str(run.job.raw))


def send_rebuilt_rows(run: Run, partitions: int) -> None:
    """Send what Cassandra's rebuild sends: each row as it is now, with its own timestamp."""
    for (key, clustering), changes in run.expected.items():
        if changes[-1].after is not None:
            number = int(changes[-1].after)
            cells = {"a": Cell(number, changes[-1].after.encode())}
            run.produce(key, number, Row((int_bytes(clustering),), cells, LivenessInfo(number)), partitions)
    run.flush()


def check(run: Run) -> None:
    """Chains hold in each of a key's lives, and readers have for each key what was written."""
    chains: defaultdict[tuple[int, int], list[Any]] = defaultdict(list)
    for change in run.job.changes():
        if change is not None:
            image = change["after"] or change["before"]
            chains[image["k"], image["c"]].append(change)
    for changes in chains.values():
        before, sequence = None, 0
        for change in changes:
            source = change["source"]
            assert change["before"] == before
            assert source["row_sequence"] == sequence + 1 or (before is None and source["row_sequence"] > sequence)
            before, sequence = change["after"], source["row_sequence"]
    latest = {key: changes[-1]["after"]["a"] for key, changes in chains.items() if changes[-1]["after"] is not None}
    written = {key: changes[-1].after for key, changes in run.expected.items()}
    assert latest == {key: value for key, value in written.items() if value is not None}
    assert any(change["source"]["cause"] == "rebuild" for changes in chains.values() for change in changes)


def test_a_table_whose_state_is_lost_is_rebuilt(run: Run) -> None:
    run.send(80, RAW_PARTITIONS)
    run.replay(run.sent[0]._replace(value=b"\x00\x00\x00\x00\x01no raw message"), RAW_PARTITIONS)
    run.flush()
    assert run.materialize(RAW_PARTITIONS) == []
    lose_state(run)
    run.send(20, RAW_PARTITIONS)
    assert [error.code for error in run.materialize(RAW_PARTITIONS)] == [Code.STATE_DAMAGED]
    kafka = run.job.settings.kafka
    assert len(unresolved_dead_letters(kafka, run.topic)) == 1

    partitions = [RawPartition(run.topic, number) for number in range(RAW_PARTITIONS)]
    before, changes = read_positions(run.job.settings, partitions), len(run.job.changes())
    survey = list(Rebuild(run.job.settings, "shop.orders", run.job.registry, print).describe())
    assert any("to be deleted" in line for line in survey)
    assert survey[-1] == "1 dead-lettered messages to be resolved"
    assert read_positions(run.job.settings, partitions) == before
    assert len(run.job.changes()) == changes

    assert "done" in rebuild(run.job)[-1]
    assert unresolved_dead_letters(kafka, run.topic) == []
    run.verify()
    assert all(change is None or change["after"] is None for change in by_key(run).values())
    send_rebuilt_rows(run, RAW_PARTITIONS)
    run.send(20, RAW_PARTITIONS)
    assert run.materialize(RAW_PARTITIONS) == []
    check(run)


def by_key(run: Run) -> dict[tuple[int, int], Any]:
    """The newest change of each key."""
    found = {}
    for change in run.job.changes():
        if change is not None:
            image = change["after"] or change["before"]
            found[image["k"], image["c"]] = change
    return found


@pytest.mark.exhaustive
def test_another_run_repairs_a_kill_at_any_step(run: Run) -> None:
    """fault-points.md says what each kill leaves. A publisher continues, and has more partitions at the end."""
    run.send(80, RAW_PARTITIONS)
    assert run.materialize(RAW_PARTITIONS) == []
    for point, nth in KILLS:
        assert in_child(rebuild_at, run.job, Fault(point, nth, "kill")) == -signal.SIGKILL
        run.send(4, RAW_PARTITIONS)
        assert {error.code for error in run.materialize(RAW_PARTITIONS)} == {Code.STATE_MISMATCH}
        with pytest.raises(CdcError, match="rebuild` of the table of") as caught:
            run.reshard()
        assert caught.value.code is Code.STATE_MISMATCH
    run.send(20, RAW_PARTITIONS)
    rebuild(run.job)
    send_rebuilt_rows(run, RAW_PARTITIONS)
    assert run.materialize(RAW_PARTITIONS) == []
    check(run)
    assert in_child(rebuild_at, run.job, Fault(RebuildPoint.REBUILD_DONE, 1, "kill")) == -signal.SIGKILL
    run.add_partitions(GROWN)
    run.send(10, GROWN)
    rebuild(run.job)
    send_rebuilt_rows(run, GROWN)
    run.send(20, GROWN)
    assert run.materialize(GROWN) == []
    check(run)
    run.verify()
    assert {point for point, _ in KILLS} == set(RebuildPoint) - {RebuildPoint.REBUILD_DONE}


def test_a_task_that_starts_after_the_mark_stops(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    run.send(40, RAW_PARTITIONS)
    plan = PatientPlanner(run.job.settings, run.job.registry).plan_batch()
    came = []

    def come_between(point: object) -> None:
        if point is RebuildPoint.POSITION_MARKED:
            monkeypatch.undo()
            came.append(run_task(plan, run.job.raw, run.records(RAW_PARTITIONS)[0]).error)

    monkeypatch.setattr("materializer.commands.rebuild.rebuild.reach", come_between)
    rebuild(run.job)
    assert [error.code for error in came if error is not None] == [Code.STATE_MISMATCH]


def test_a_task_that_takes_over_a_partition_before_its_mark_stops_the_command(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    run.send(40, RAW_PARTITIONS)
    plan = PatientPlanner(run.job.settings, run.job.registry).plan_batch()

    def overtaken(producer: FencingProducer, positions: Mapping[RawPartition, Position]) -> None:
        monkeypatch.undo()
        assert run_task(plan, run.job.raw, run.records(RAW_PARTITIONS)[0]).error is None
        producer.send_positions(positions)

    monkeypatch.setattr(FencingProducer, "send_positions", overtaken)
    with pytest.raises(CdcError) as caught:
        rebuild(run.job)
    assert caught.value.code is Code.STATE_MISMATCH
    rebuild(run.job)
    send_rebuilt_rows(run, RAW_PARTITIONS)
    assert run.materialize(RAW_PARTITIONS) == []
    check(run)
