"""The checks are checked: each seeded defect must turn one of them red. Imports other tests, to run them."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, Phase, given, is_hypothesis_test, settings
from hypothesis import strategies as st

from materializer.fold.chunk_fold import ChunkFold
from tests.support.materializer.fold_checks import check_batches, check_order_independence, check_step_by_step
from tests.support.materializer.mutants import MUTANTS, Mutant, seed
from tests.support.materializer.reorder_checks import check_reorder
from tests.support.materializer.table_writes import FORWARD, MIXED
from tests.unit.materializer.fold import (
    test_any_message,
    test_bounded_fold,
    test_dropped_user_type,
    test_expired_write,
    test_fold,
    test_fold_cost,
    test_gaps,
    test_no_change,
    test_purge,
    test_recreated_table,
    test_reorder,
    test_snapshot,
)
from tests.unit.materializer.rows import test_overlay
from tests.unit.stream_runtime.exactly_once import test_chunks

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import ModuleType

MODULES = (
    test_fold_cost,
    test_fold,
    test_reorder,
    test_purge,
    test_chunks,
    test_overlay,
    test_bounded_fold,
    test_expired_write,
    test_recreated_table,
    test_dropped_user_type,
    test_gaps,
    test_snapshot,
    test_no_change,
)
# First the one that a defect needs which no example notices: all before it take 15 s.
GENERATED: tuple[Callable[[st.DataObject], None], ...] = (
    lambda data: test_any_message.check_any_message(data.draw(st.integers(0, 2**64))),
    lambda data: check_step_by_step(MIXED, data),
    lambda data: check_batches(FORWARD, data),
    lambda data: check_order_independence(MIXED, data),
    lambda data: test_purge.check_purge(MIXED, data),
    lambda data: test_expired_write.check_late_writes(MIXED, data),
    test_recreated_table.check_recreated,
    check_reorder,
)
GENERATE = settings(
    max_examples=150,
    database=None,
    derandomize=True,
    deadline=None,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)


def checks() -> Iterator[Callable[[], None]]:
    """The tests of the fold that take no arguments, then those that Hypothesis feeds."""
    for module in MODULES:
        yield from examples(module)
    for check in GENERATED:
        yield GENERATE(given(st.data())(named(check)))


def examples(module: ModuleType) -> Iterator[Callable[[], None]]:
    for name, test in vars(module).items():
        is_test = name.startswith("test_") and inspect.isfunction(test) and test.__module__ == module.__name__
        if is_test and not is_hypothesis_test(test) and not inspect.signature(test).parameters:
            yield test


def named(check: Callable[[st.DataObject], None]) -> Callable[[st.DataObject], None]:
    """A function of its own, as Hypothesis wants one."""

    def run(data: st.DataObject) -> None:
        check(data)

    return run


@pytest.mark.exhaustive
@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name.replace(" ", "-"))
def test_a_seeded_defect_turns_a_check_red(mutant: Mutant, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(ChunkFold, "_may_be_native", False)  # a defect is of the Python code
        seed(mutant, patch)
        assert any(fails(check) for check in checks()), f"no check notices that {mutant.name}"


def fails(check: Callable[[], None]) -> bool:
    try:
        check()
    except Exception:  # noqa: BLE001 - a defect may show as anything
        return True
    return False
