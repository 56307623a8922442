"""Which worker has which raw partition."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from materializer.job.placement import Placement
from materializer.records import RawPartition

PARTITIONS = st.sets(st.builds(RawPartition, st.sampled_from(["a", "b", "c"]), st.integers(0, 9)), max_size=30)
WORKERS = st.sets(st.sampled_from(["w1", "w2", "w3", "w4"]), min_size=1)


@given(st.lists(st.tuples(PARTITIONS, WORKERS), min_size=1, max_size=6))
def test_every_partition_has_one_worker_and_none_has_many_more_than_another(
    steps: list[tuple[set[RawPartition], set[str]]],
) -> None:
    placement = Placement()
    before: dict[RawPartition, str] = {}
    for partitions, workers in steps:
        assigned = placement.assign(sorted(partitions), sorted(workers))
        assert assigned.keys() == workers
        assert sorted(each for own in assigned.values() for each in own) == sorted(partitions)
        sizes = [len(own) for own in assigned.values()]
        assert max(sizes) - min(sizes) <= 1
        after = {each: worker for worker, own in assigned.items() for each in own}
        assert _moved(before, after) <= _must_move(before, partitions, workers)
        before = after


def _moved(before: dict[RawPartition, str], after: dict[RawPartition, str]) -> int:
    return sum(each in before and before[each] != worker for each, worker in after.items())


def _must_move(before: dict[RawPartition, str], partitions: set[RawPartition], workers: set[str]) -> int:
    """The raw partitions of workers that are gone, and those that other workers have too many."""
    held = {worker: sum(each in partitions for each, at in before.items() if at == worker) for worker in workers}
    orphans = sum(each in partitions and at not in workers for each, at in before.items())
    least, more = divmod(len(partitions), len(workers))
    sizes = sorted(held.values(), reverse=True)
    return orphans + sum(max(0, size - least - (number < more)) for number, size in enumerate(sizes))
