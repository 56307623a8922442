"""Which worker has which raw partition: by load, with no move that gains nothing, and not many at a time."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st

from stream_runtime.driver.placement import Load, Placement
from stream_runtime.exactly_once.report import NOTHING_DONE, StateReport
from stream_runtime.worker.task import TaskResult
from tests.support.stream_runtime.shares import share

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stream_runtime.records import Share

PARTITIONS = st.sets(st.builds(share, st.sampled_from(["a", "b", "c"]), st.integers(0, 9)), max_size=30)
WORKERS = st.sets(st.sampled_from(["w1", "w2", "w3", "w4"]), min_size=1)
WORK_SHARES = st.sampled_from([0.0, 0.0, 0.01, 0.1, 0.5, 1.0])
LOADS = st.builds(Load, WORK_SHARES, st.sampled_from([0, 10**6, 2 * 10**9]))
SIZES = st.dictionaries(st.builds(share, st.just("a"), st.integers(0, 40)), LOADS, min_size=1, max_size=40)
MINUTE = 60.0
TOLERANCE = 1.1


class Scene:
    """A placement, its clock, and batches in which each raw partition does what its load says."""

    def __init__(self, loads: Mapping[Share, Load]) -> None:
        self.now = 0.0
        self.loads = loads
        self.placement = Placement(lambda: self.now)
        self.before: dict[Share, str] = {}

    def assign(self, workers: set[str], seconds: float = 0.0) -> dict[str, float]:
        """The load of each worker after a batch of so much time. moved: what has left a worker that is still there."""
        self.now += seconds
        if seconds:
            results = [
                TaskResult(
                    loaded,
                    NOTHING_DONE._replace(
                        chunks=1, seconds=load.seconds * seconds, state=StateReport(load.state_bytes)
                    ),
                    None,
                )
                for loaded, load in self.loads.items()
            ]
            self.placement.count_batch(results, seconds)
        assigned = self.placement.assign(sorted(self.loads), sorted(workers))
        after = {placed: worker for worker, own in assigned.items() for placed in own}
        assert assigned.keys() == workers
        assert sorted(placed for own in assigned.values() for placed in own) == sorted(self.loads)
        self.moved = {placed for placed, at in self.before.items() if at in workers and after[placed] != at}
        self.before = after
        return self.work()

    def work(self, places: Mapping[Share, str] | None = None) -> dict[str, float]:
        found = defaultdict[str, float](float)
        for placed, worker in (places or self.before).items():
            found[worker] += self.loads[placed].weight
        return found


@given(st.lists(st.tuples(PARTITIONS, WORKERS), min_size=1, max_size=6))
def test_every_partition_has_one_worker_and_none_moves_before_its_time(
    steps: list[tuple[set[Share], set[str]]],
) -> None:
    placement = Placement(lambda: 0.0)
    before: dict[Share, str] = {}
    for partitions, workers in steps:
        assigned = placement.assign(sorted(partitions), sorted(workers))
        assert assigned.keys() == workers
        assert sorted(placed for own in assigned.values() for placed in own) == sorted(partitions)
        after = {placed: worker for worker, own in assigned.items() for placed in own}
        assert not {
            placed for placed, at in before.items() if at in workers and placed in after and after[placed] != at
        }
        before = after


@given(SIZES, WORKERS, WORKERS)
def test_no_move_is_without_gain_and_they_are_few(loads: dict[Share, Load], workers: set[str], later: set[str]) -> None:
    scene = Scene(loads)
    scene.assign(workers)
    for step in range(20):
        places, now = dict(scene.before), later if step >= 10 else workers
        work = scene.assign(now, MINUTE)
        if scene.moved:
            stayed = {placed: scene.before[placed] if at not in now else at for placed, at in places.items()}
            assert max(work.values()) < max(scene.work(stayed).values()) + 1e-9 or len(scene.moved) == len(loads)
            if not now - (workers if step >= 10 else now):
                assert len(scene.moved) <= max(1, len(loads) // 10)
    places = scene.before
    for _ in range(20):  # the loads are known, and stay as they are
        scene.assign(later, MINUTE)
    last = dict(scene.before)
    for _ in range(5):
        scene.assign(later, MINUTE)
        assert scene.before == last


@given(st.dictionaries(st.builds(share, st.just("a"), st.integers(0, 40)), st.builds(Load, WORK_SHARES), min_size=1))
def test_the_busiest_worker_has_little_more_than_the_mean_and_one_partition(loads: dict[Share, Load]) -> None:
    scene = Scene(loads)
    workers = {"w1", "w2", "w3"}
    scene.assign(workers)
    for _ in range(60):
        work = scene.assign(workers, MINUTE)
    mean = sum(work.values()) / len(workers)
    assert max(work.values()) <= TOLERANCE * mean + max(load.weight for load in loads.values()) + 1e-6


@given(SIZES, st.lists(WORKERS, min_size=1, max_size=5))
def test_the_same_loads_give_the_same_places(loads: dict[Share, Load], steps: list[set[str]]) -> None:
    one, two = Scene(loads), Scene(dict(reversed(loads.items())))
    for workers in steps:
        for scene in (one, two):
            scene.assign(workers, MINUTE)
        assert one.before == two.before


def idle(count: int) -> dict[Share, Load]:
    return {share("a", number): Load() for number in range(count)}


def test_without_loads_all_workers_get_the_same_number() -> None:
    scene = Scene(idle(40))
    scene.assign({"w1", "w2", "w3"})
    assert sorted(Counter(scene.before.values()).values()) == [13, 13, 14]


def test_moves_wait_until_no_worker_comes_any_more_and_then_are_made_once() -> None:
    scene = Scene(idle(400))
    scene.assign({"w1"})
    for number in range(2, 5):  # one executor after another
        scene.assign({f"w{index}" for index in range(1, number + 1)}, 2.0)
        assert not scene.moved
    everyone = {"w1", "w2", "w3", "w4"}
    scene.assign(everyone, 4.0)
    assert not scene.moved
    scene.assign(everyone, 2.0)
    assert set(Counter(scene.before.values()).keys()) == everyone
    assert max(Counter(scene.before.values()).values()) <= TOLERANCE * 100
    assert len(scene.moved) <= 300
    scene.assign(everyone, MINUTE)
    assert not scene.moved


def test_a_worker_that_is_gone_leaves_only_its_own() -> None:
    scene = Scene(idle(30))
    scene.assign({"w1", "w2", "w3"})
    scene.assign({"w1", "w2"}, 1.0)
    assert not scene.moved


def test_load_counts_not_numbers() -> None:
    """One raw partition that takes a whole core is alone; the others share the other worker."""
    loads = {idle_share: Load(0.01) for idle_share in idle(10)} | {share("b", 0): Load(0.9)}
    scene = Scene(loads)
    scene.assign({"w1", "w2"})
    for _ in range(30):
        scene.assign({"w1", "w2"}, MINUTE)
    home = scene.before[share("b", 0)]
    assert [placed for placed, worker in scene.before.items() if worker == home] == [share("b", 0)]


def test_a_large_state_does_not_move_for_a_small_gain() -> None:
    huge = {share("a", number): Load(0.02, 10**12) for number in range(4)}
    scene = Scene(huge)
    scene.assign({"w1"})
    for _ in range(10):
        scene.assign({"w1", "w2"}, MINUTE)
        assert not scene.moved
