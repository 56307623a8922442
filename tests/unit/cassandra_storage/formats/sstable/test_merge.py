"""The merge of SSTables against the plainest rules, and whether mutants of it would be found."""

from __future__ import annotations

import inspect
import random
import signal
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, NamedTuple
from unittest import mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cassandra_storage.formats.errors import FormatError
from cassandra_storage.formats.merge import purge, range_merge
from cassandra_storage.formats.primitives.murmur3 import token
from cassandra_storage.formats.rows.clustering import Kind
from cassandra_storage.formats.rows.deletion import LIVE, DeletionTime, RangeTombstone
from cassandra_storage.formats.rows.row import Cell, ComplexColumnData, Row
from cassandra_storage.formats.rows.unfiltered import Marker, Unfiltered
from cassandra_storage.formats.sstable import merge as sstable_merge
from cassandra_storage.formats.sstable.merge import MergePosition
from cassandra_storage.formats.sstable.reader import Partition
from dev.verify.oracle.mutants import Mutant, mutants
from tests.support.cassandra_storage.merged_tables import (
    WIDE,
    Case,
    CaseMaker,
    Expected,
    MemorySource,
    Purge,
    after,
    expected,
    marker_at,
    order,
    order_of,
    place_in,
)
from tests.support.examples import examples

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from types import ModuleType

    from cassandra_storage.formats.rows.unfiltered import Unfiltered

cases = st.randoms(use_true_random=False).map(lambda rng: CaseMaker(rng).case())


def _merged(case: Case, after: MergePosition | None = None) -> Iterator[sstable_merge.MergedPartition]:
    return sstable_merge.merge_inputs(case.table, case.memory(), case.purge.purger(purge.Purger), after)


def _found(case: Case, after: MergePosition | None = None) -> list[Expected]:
    found = []
    for partition in _merged(case, after):
        unfiltereds = list(partition.unfiltereds)
        _check(unfiltereds if case.table.clustering else [])
        merged = list(range_merge.with_ranges(unfiltereds))
        rows = [one for one in merged if isinstance(one, Row)]
        ranges = [_range(one) for one in merged if isinstance(one, RangeTombstone)]
        found.append(Expected(partition.key, partition.deletion, partition.static_row, rows, ranges))
    return found


def _check(unfiltereds: list[Unfiltered]) -> None:
    """They are in order, and each range is closed as it was opened."""
    orders = [order_of(one) for one in unfiltereds]
    assert orders == sorted(set(orders))
    opened: DeletionTime | None = None
    for one in unfiltereds:
        if isinstance(one, Marker):
            assert opened == (None if one.close is None else one.close[1])
            opened = None if one.open_ is None else one.open_[1]
            assert opened is None or not opened.is_live
    assert opened is None


def _range(of: RangeTombstone) -> tuple[tuple[float, ...], tuple[float, ...], DeletionTime]:
    return order(of.start.values, of.start.kind), order(of.end.values, of.end.kind), of.deletion


@given(cases)
@settings(max_examples=examples(300), deadline=None)
def test_the_merge_is_that_of_everything_at_once(case: Case) -> None:
    assert _found(case) == expected(case)


@given(cases, st.randoms(use_true_random=False))
@settings(max_examples=examples(150), deadline=None)
def test_a_merge_goes_on_after_any_place(case: Case, rng: random.Random) -> None:
    whole = expected(case)
    if whole:
        place = place_in(case, whole, rng)
        assert _found(case, place) == after(whole, place)


_NOT_OPENED = "a range tombstone is closed that was not opened, or opened twice"


def _wide(*content: tuple[bytes, Sequence[Unfiltered]]) -> MemorySource:
    return MemorySource([(Partition(0, key, LIVE, None), list(unfiltereds)) for key, unfiltereds in content])


def _row(number: int, column: bytes = b"a") -> Row:
    return Row((number.to_bytes(4, "big"), column), {"v": Cell(1, b"x")})


def _opened(seconds: int, *, close: bool = False) -> Marker:
    deletion = DeletionTime(1, seconds)
    return marker_at(
        order((b"\0\0\0\1",), Kind.INCL_START_BOUND), (b"\0\0\0\1",), *((deletion, None) if close else (None, deletion))
    )


def _partition(*unfiltereds: Unfiltered) -> MemorySource:
    return _wide((b"\0\0\0\0", list(unfiltereds)))


_BACKWARDS = sorted((key.to_bytes(4, "big") for key in range(2)), key=token, reverse=True)
_BAD_RANGES = (
    ([_opened(90, close=True)], _NOT_OPENED),
    ([_opened(90), _opened(91, close=True)], _NOT_OPENED),
    ([_opened(90), _opened(90)], _NOT_OPENED),
    ([_opened(90)], "a range tombstone is not closed"),
)
_NO_PATH = Row((b"\0\0\0\1", b"a"), {"m": ComplexColumnData(LIVE, (Cell(1, b"x", path=b"\0"),))})
_NO_CLUSTERING = Row((b"\0", b"a"), {"v": Cell(1, b"x")})
_NO_INT = "a int of 1 bytes"
_IN_ONE_OF_TWO = f"in this or another of 2 SSTables with the partition: {_NO_INT}"
BAD: list[tuple[list[MemorySource], str]] = [
    ([MemorySource([(Partition(0, b"\0\0\0\0", DeletionTime(0, 1), None), [_NO_PATH])])], _NO_INT),
    ([_partition(_NO_PATH), _partition(_NO_PATH)], _IN_ONE_OF_TWO),
    ([_partition(_NO_CLUSTERING), _partition(_row(1))], _IN_ONE_OF_TWO),
    *(([_partition(*bad)], reason) for bad, reason in _BAD_RANGES),
    *(([_partition(*bad), _partition(_row(9))], reason) for bad, reason in _BAD_RANGES),
    ([_partition(_row(2), _row(1)), _partition(_row(3))], "a row or range tombstone that is out of order"),
    ([_wide(*((key, [_row(1)]) for key in _BACKWARDS))], "a partition that is out of order"),
    ([_wide(*((key, [_row(1)]) for key in _BACKWARDS[:1] * 2))], "a partition that is out of order"),
    (
        [_wide(*((key, [_row(1)]) for key in _BACKWARDS)), _wide(*((key, [_row(1)]) for key in _BACKWARDS[:1]))],
        "a partition that is out of order",
    ),
]


@pytest.mark.parametrize(("sources", "reason"), BAD)
def test_sources_that_are_not_in_order_are_errors(sources: list[MemorySource], reason: str) -> None:
    assert _refuses(sources, reason)


def test_a_row_that_a_source_has_twice_is_merged() -> None:
    """CASSANDRA-15789 left such rows behind."""
    sources = [_wide((b"\0\0\0\0", [_row(1), _row(1)])), _wide((b"\0\0\0\0", [_row(1)]))]
    (merged,) = (
        list(partition.unfiltereds) for partition in sstable_merge.merge_inputs(WIDE, sources, Purge().purger())
    )
    assert merged == [_row(1)]


def test_a_source_is_not_read_before_its_first_token() -> None:
    keys = sorted((key.to_bytes(4, "big") for key in range(2)), key=token)
    first, second = (_wide((key, [_row(1)])) for key in keys)
    second.first_token = token(keys[1])
    second.content = []  # read at once it would have nothing
    merged = sstable_merge.merge_inputs(WIDE, [second, first], Purge().purger())
    assert next(merged).key == keys[0]
    second.content = _wide((keys[1], [_row(1)])).content
    assert [partition.key for partition in merged] == [keys[1]]


def test_empty_keys_are_merged() -> None:
    """Only views and indexes have them; their token is where sources begin that are not asked yet."""
    sources = [_wide((b"", [_row(number)])) for number in range(3)]
    (merged,) = (
        list(partition.unfiltereds) for partition in sstable_merge.merge_inputs(WIDE, sources, Purge().purger())
    )
    assert merged == [_row(0), _row(1), _row(2)]


_ENDS = "{0}.local_deletion_time != NO_DELETION_TIME and (not {0}.is_live(now))"
_ENDED = "{0}.local_deletion_time != NO_DELETION_TIME or not {0}.is_live(now)"
EQUIVALENT = {
    # Only slower.
    "row: if not self._all_live(columns.values()) -> if True",
    "row: if liveness is row.liveness and deletion is row.deletion and (columns is row.columns) -> if False",
    f"_all_live: if {_ENDS.format('data')} -> if True",
    f"_all_live: {_ENDS.format('data')} -> {_ENDED.format('data')}",
    f"_all_live: {_ENDS.format('cell')} -> {_ENDED.format('cell')}",
    f"_all_live: if data.deletion is not LIVE or any(({_ENDS.format('cell')} for cell in data.cells)) -> if True",
    "_cell: if cell.ttl == NO_TTL -> if False",  # a tombstone is made again
    "_merged_row: if len(versions) > 1 or active is not LIVE -> if True",
    "_several: if len(rows) == 1 and ranges.active is LIVE -> if False",
}


class Judged(NamedTuple):
    """A case with its answer, and the answer after a place in it."""

    case: Case
    answer: list[Expected]
    place: MergePosition | None
    rest: list[Expected]


@pytest.fixture(scope="module")
def judged() -> list[Judged]:
    rng = random.Random(1)
    found = []
    for _ in range(1500):
        case = CaseMaker(rng).case()
        answer = expected(case)
        place = place_in(case, answer, rng) if answer else None
        found.append(Judged(case, answer, place, after(answer, place) if place else answer))
    return found


@pytest.mark.exhaustive
@pytest.mark.parametrize("module", [purge, range_merge, sstable_merge], ids=lambda module: module.__name__)
def test_every_mutant_is_found(module: ModuleType, judged: list[Judged]) -> None:
    assert all(map(_agrees, judged))
    made = list(mutants(inspect.getsource(module)))
    survivors = {one.name for one in made if not _is_found(module, one, judged)}
    assert survivors == EQUIVALENT & {one.name for one in made}
    assert len(made) > 10


def _is_found(module: ModuleType, mutant: Mutant, judged: list[Judged]) -> bool:
    """Return whether a case comes out otherwise, or not at all, or an error is not one."""
    mutated = mutant.module(module)
    names = {purge: ("Purger",), range_merge: ("RangeMerger", "with_ranges"), sstable_merge: ("merge_inputs",)}[module]
    with ExitStack() as stack:
        for name in names:
            stack.enter_context(mock.patch.object(module, name, getattr(mutated, name)))
        if module is range_merge:
            stack.enter_context(mock.patch.object(sstable_merge, "RangeMerger", mutated.RangeMerger))
        stack.enter_context(_at_most(seconds=10))
        try:
            return not all(map(_agrees, judged)) or not all(_refuses(*bad) for bad in BAD)
        except Exception:  # noqa: BLE001  whatever the mutant breaks
            return True


def _agrees(judged: Judged) -> bool:
    case, answer, place, rest = judged
    return _found(case) == answer and (place is None or _found(case, place) == rest)


def _refuses(sources: list[MemorySource], reason: str) -> bool:
    try:
        [list(partition.unfiltereds) for partition in sstable_merge.merge_inputs(WIDE, sources, Purge().purger())]
    except FormatError as error:
        return str(error) == f"{reason} (memory, position 1)"
    return False


@contextmanager
def _at_most(seconds: float) -> Iterator[None]:
    """Raise TimeoutError after `seconds`, for mutants that never end."""

    def end(*_: object) -> None:
        raise TimeoutError

    before = signal.signal(signal.SIGALRM, end)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
