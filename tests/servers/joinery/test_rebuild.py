"""Rebuilds on a real broker: the target equals DuckDB's join by net changes, whatever was lost or has changed."""

from __future__ import annotations

import shutil
from random import Random
from typing import TYPE_CHECKING, Any

import pytest

from cdc_common.errors.codes import CdcError, Code
from joinery.commands.rebuilt import rebuild_joins
from joinery.fault_points import JoinRebuildPoint
from stream_runtime import fault_points
from stream_runtime.fault_points import Fault, InjectedFaultError
from tests.support.joinery.audits import audited
from tests.support.joinery.local_job import LocalJob
from tests.support.joinery.scene import TARGET_PARTITIONS, Scene, random_rows
from tests.support.materializer.protocol_run import read_topic

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = [pytest.mark.servers, pytest.mark.timeout(600)]


def rebuild(scene: Scene) -> None:
    rebuild_joins(scene.settings(), scene.file, ["orders"], is_confirmed=True)


def by_rebuilds(scene: Scene) -> list[Any]:
    """The changes that rebuilds have sent."""
    messages = read_topic(scene.bootstrap, scene.target, TARGET_PARTITIONS)
    changes = [scene.change(value) for message in messages if isinstance(value := message.value(), bytes)]
    return [change for change in changes if change["source"]["cause"] == "rebuild"]


def joined_once(scene: Scene) -> None:
    """Rows that are joined, and some that are not yet."""
    scene.send(random_rows(Random(1), 200))
    with LocalJob(scene) as job:
        job.run_until(lambda: scene.joined() == scene.by_sql())
        scene.send(random_rows(Random(2), 60))
        job.run_batch()


def lose_states(scene: Scene) -> None:
    shutil.rmtree(scene.folder / "checkpoint")
    shutil.rmtree(scene.folder / "states")


def change_definition(scene: Scene) -> None:
    scene.where = "total <> 1"
    scene.selected = ["o.id as order_id", "o.total", "o.note as remark", "u.name as user_name"]
    scene.write_file()


def continues(scene: Scene, capsys: pytest.CaptureFixture[str]) -> None:
    """The job joins what comes, and an audit finds nothing."""
    scene.send(random_rows(Random(3), 100))
    with LocalJob(scene) as job:
        job.run_until(lambda: scene.joined() == scene.by_sql())
    assert job.errors == {}
    assert audited(scene, capsys)[:2] == (None, [])


def test_a_lost_checkpoint_location(scene: Scene, capsys: pytest.CaptureFixture[str]) -> None:
    joined_once(scene)
    lose_states(scene)
    with LocalJob(scene) as job:
        job.run_until(lambda: {error.code for error in job.errors.values()} == {Code.STATE_DAMAGED})
    rebuild(scene)
    assert by_rebuilds(scene) == [] or scene.joined() == scene.by_sql()
    continues(scene, capsys)


def test_a_changed_definition(scene: Scene, capsys: pytest.CaptureFixture[str]) -> None:
    """A selection with one more column, and another filter: rows that are as before are not sent."""
    scene.send(random_rows(Random(1), 200))
    with LocalJob(scene) as job:
        job.run_until(lambda: scene.joined() == scene.by_sql())
    before, joined = scene.by_sql(), scene.joined()
    change_definition(scene)
    scene.send(random_rows(Random(2), 40))
    with LocalJob(scene) as job:
        job.run_until(lambda: {error.code for error in job.errors.values()} == {Code.JOIN_CHANGED})
        for _ in range(3):
            job.run_batch()
    assert {error.code for error in job.errors.values()} == {Code.JOIN_CHANGED}
    assert [(*row[:3], row[4]) for row in scene.joined()] == joined
    assert audited(scene, capsys)[1] != []
    rebuild(scene)
    assert scene.joined() == scene.by_sql()
    after = {row[:2]: (*row[:3], row[4]) for row in scene.by_sql()}
    known = {row[:2]: row for row in before}
    different = sum(known.get(key) != after.get(key) for key in {*known, *after})
    assert len(by_rebuilds(scene)) == different > 0
    rebuild(scene)
    assert len(by_rebuilds(scene)) == different
    continues(scene, capsys)


@pytest.mark.exhaustive
@pytest.mark.parametrize("nth", [1, 2])
@pytest.mark.parametrize("change", [lose_states, change_definition])
@pytest.mark.parametrize("point", JoinRebuildPoint, ids=lambda point: point.name)
def test_a_rebuild_is_run_again(
    scene: Scene,
    point: JoinRebuildPoint,
    nth: int,
    change: Callable[[Scene], None],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """It fails there. Until the next run, partitions that it has not finished are stopped."""
    joined_once(scene)
    change(scene)
    fault_points.reached.clear()
    monkeypatch.setattr(fault_points, "armed", Fault(point, nth, "raise"))
    try:
        rebuild(scene)
    except InjectedFaultError:
        with LocalJob(scene) as job:
            for _ in range(3):
                job.run_batch()
        codes = {error.code for error in job.errors.values()}
        assert codes <= {Code.STATE_MISMATCH, Code.STATE_DAMAGED, Code.JOIN_CHANGED}
        rebuild(scene)
    else:
        assert fault_points.reached[point] < nth
    continues(scene, capsys)


def test_a_join_that_has_not_run(scene: Scene) -> None:
    with pytest.raises(CdcError) as caught:
        rebuild(scene)
    assert caught.value.code is Code.JOIN_REBUILD
