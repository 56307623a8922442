"""Which process does which assignment, whatever Spark does with its tasks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stream_runtime.driver.placement import Placement
from stream_runtime.query.claims import Claims
from stream_runtime.worker.task import Assignment
from tests.support.stream_runtime.shares import share

if TYPE_CHECKING:
    from collections.abc import Sequence

PARTITIONS = [share("t", number) for number in range(6)]


class Scene:
    """Claims, with the placement of the driver, and a round each minute."""

    def __init__(self) -> None:
        self.claims = Claims()
        self._now = 0.0
        self.placement = Placement(lambda: self._now)

    def begin(self, slots: int) -> None:
        placed = self.placement.assign(PARTITIONS, self.claims.list_workers(slots))
        self.claims.begin({worker: Assignment(tuple(shares), 100, 1.0) for worker, shares in placed.items() if shares})

    def claim(self, process: str) -> list[int] | None:
        """The numbers of the raw partitions that the process gets."""
        assignment = self.claims.claim(process)
        return None if assignment is None else [share.partition.partition for share in assignment.shares]

    def round(self, slots: int, processes: Sequence[str]) -> list[list[int] | None]:
        self.begin(slots)
        found = [self.claim(process) for process in processes]
        self.claims.end()
        self._now += 60.0
        return found


def test_a_process_keeps_its_raw_partitions_wherever_its_task_runs() -> None:
    scene = Scene()
    a, b = scene.round(2, ["a", "b"])
    assert a is not None
    assert b is not None
    assert sorted(a + b) == list(range(6))
    for order in (["b", "a"], ["a", "b"], ["b", "a"]):
        assert scene.round(2, order) == [{"a": a, "b": b}[process] for process in order]


def test_a_second_task_in_one_process_gets_nothing() -> None:
    scene = Scene()
    scene.begin(2)
    assert scene.claim("a")
    assert scene.claim("a") is None


def test_a_task_that_failed_gets_its_raw_partitions_again() -> None:
    scene = Scene()
    scene.begin(2)
    first = scene.claim("a")
    scene.claims.release("a")
    assert scene.claim("a") == first


def test_another_process_takes_the_place_of_a_dead_one_in_the_same_round() -> None:
    scene = Scene()
    a, _ = scene.round(2, ["a", "b"])
    scene.begin(2)
    assert scene.claim("a") == a
    scene.claim("b")
    scene.claims.leave("a")
    assert scene.claim("c") == a


def test_raw_partitions_move_if_nobody_comes_for_them() -> None:
    scene = Scene()
    assert scene.round(2, ["a"]) == [[0, 2, 4]]
    assert scene.round(2, ["a"]) == [[0, 2, 4]]
    [alone] = scene.round(2, ["a"])
    assert alone is not None
    assert sorted(alone) == list(range(6))


def test_a_task_too_many_shows_that_nobody_will_come() -> None:
    scene = Scene()
    assert scene.round(2, ["a", "a"]) == [[0, 2, 4], None]
    [alone, none] = scene.round(2, ["a", "a"])
    assert sorted(alone or ()) == list(range(6))
    assert none is None


def test_it_is_settled_when_each_worker_has_a_process_and_each_process_a_worker() -> None:
    scene = Scene()
    scene.begin(2)
    assert not scene.claims.is_settled
    scene.claim("a")
    assert not scene.claims.is_settled
    scene.claim("b")
    assert scene.claims.is_settled
    scene.claim("c")
    assert not scene.claims.is_settled
    scene.claims.leave("c")
    assert scene.claims.is_settled
    scene.claims.leave("a")
    assert not scene.claims.is_settled


def test_a_process_too_many_gets_raw_partitions_once_no_other_one_comes() -> None:
    scene = Scene()
    first, none = scene.round(1, ["a", "b"])
    assert first == list(range(6))
    assert none is None
    assert scene.round(1, ["a", "b"]) == [list(range(6)), None]
    a, b = scene.round(1, ["a", "b"])
    assert a is not None
    assert b is not None
    assert (len(a), len(b)) == (3, 3)


def test_a_process_that_others_keep_from_its_task_is_replaced() -> None:
    """Three processes take turns in two slots: Spark's pool is a queue. All raw partitions are folded all the same."""
    scene = Scene()
    folded: list[int] = []
    for number in range(9):
        processes = [("a", "b", "c")[(number + shift) % 3] for shift in (0, 1)]
        folded += [partition for found in scene.round(2, processes) if found for partition in found]
    assert set(folded) == set(range(6))


def test_all_gone_and_all_anew() -> None:
    scene = Scene()
    scene.round(2, ["a", "b"])
    for process in ("a", "b"):
        scene.claims.leave(process)
    for _ in range(3):
        assert scene.round(2, []) == []
    c, d = scene.round(2, ["c", "d"])
    assert c is not None
    assert d is not None
    assert sorted(c + d) == list(range(6))


def test_where_few_tasks_are_to_remain_any_process_that_comes_gets_the_raw_partitions() -> None:
    """Spark chooses at random where a lone task runs."""
    scene = Scene()
    scene.round(3, ["a", "b", "c"])
    for process in ("b", "b", "c", "a"):
        placed = scene.placement.assign(PARTITIONS, scene.claims.list_workers(1, exactly=True))
        assert len(placed) == 1
        scene.claims.begin({worker: Assignment(tuple(shares), 100, 1.0) for worker, shares in placed.items()})
        assert scene.claim(process) == list(range(6))
        scene.claims.end()
    assert scene.claims.processes == 1
    a, b, c = scene.round(3, ["a", "b", "c"])  # and back again
    assert (a, b, c) == (list(range(6)), None, None)
    assert scene.round(3, ["a", "b", "c"]) == [list(range(6)), None, None]  # more may come
    found = scene.round(3, ["a", "b", "c"])
    assert [len(claimed or ()) for claimed in found] == [2, 2, 2]


def test_a_round_is_over_when_all_that_have_come_are() -> None:
    scene = Scene()
    scene.begin(2)
    scene.claim("a")
    scene.claims.finish("a")
    assert scene.claims.all_finished
    scene.claim("b")
    assert not scene.claims.all_finished
    scene.claims.leave("b")
    assert scene.claims.all_finished
    scene.claim("c")
    assert not scene.claims.all_finished
    scene.claims.release("c")  # its task has failed
    assert scene.claims.all_finished
