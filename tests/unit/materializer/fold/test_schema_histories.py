"""The fold under schemas that change between any writes, deletions, expiries, purges and reshards, against a model."""

from __future__ import annotations

import pytest
from hypothesis import given, settings

from materializer.fold import schema_change
from tests.support.materializer.fold_checks import EXAMPLES
from tests.support.materializer.history.run import check_history
from tests.support.materializer.history.steps import (
    ALL,
    Alter,
    Delete,
    Fold,
    History,
    Op,
    Origin,
    Pass,
    Recreate,
    Reshard,
    Step,
    Write,
    histories,
)

ROW = Write(0, 0, ())
USER_TYPE = 6  # the column of a user type that is not frozen
DROP_AS_TUPLE = Alter("drop", USER_TYPE, is_type_known=False)

FOUND = (
    # Rows of the former table expire in the chunk in which the new one begins.
    [Write(0, 0, (), ttl=1), Fold(ALL, ALL), Recreate(0), Write(0, 1, ()), Pass(1)],
    # One row follows two changed schemas in one second.
    [ROW, Fold(ALL, ALL), Recreate(0), Pass(0), Fold(ALL, ALL), Recreate(0)],
    [Write(0, 0, (Op(0),)), Fold(ALL, ALL), Alter("drop", 0), Pass(0), Fold(ALL, ALL), Recreate(0)],
    # A user type that is not frozen was dropped, and a cell is newer than the drop.
    [DROP_AS_TUPLE, Write(0, 0, (Op(USER_TYPE),), origin=Origin(versions_behind=1))],
    [Write(0, 0, (Op(USER_TYPE),), origin=Origin(skew="future")), Fold(ALL, ALL), DROP_AS_TUPLE],
    # One raw partition is of the former table when the topic is resharded, another has rows left of it.
    [Delete(0, "row"), Recreate(0), ROW, Reshard(1, is_caught_up=True)],
)


@settings(max_examples=5 * EXAMPLES)
@given(histories)
def test_any_history_ends_as_the_model_says(history: History) -> None:
    check(history)


@pytest.mark.parametrize("steps", FOUND, ids=range(len(FOUND)))
def test_what_was_found(steps: list[Step]) -> None:
    check(History(0, 2, is_stepwise=False, is_reversed=False, steps=steps))


def check(history: History) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(schema_change, "SWEPT_ROWS", 1)
        check_history(history)
