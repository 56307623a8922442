"""The check of the join finds seeded defects."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

import pytest

from joinery.joining import join
from joinery.joining.errors import JoinError
from joinery.joining.overlay import Overlay
from joinery.joining.records import Group, Kind, Rule
from joinery.routing.route import route
from tests.support.joinery import changelogs
from tests.support.joinery.changelogs import Change, Changelogs, Input, Values
from tests.support.joinery.joining_model import check_all

if TYPE_CHECKING:
    from joinery.joining.records import Routed
    from joinery.routing.route import InputChange

SEEDS = range(30)
INPUTS = (
    [Input(False, False), Input(False, False)],
    [Input(False, False), Input(True, False)],
    [Input(True, False), Input(True, True), Input(True, False)],
)


def changes(random: Random, inputs: int) -> list[Change]:
    return [
        Change(
            random.randrange(inputs),
            random.randrange(4),
            random.choice([None, 0, 1]),
            random.choice([None, 0, 1, 2]),
        )
        for _ in range(40)
    ]


def is_found() -> bool:
    """Whether a check fails."""
    for seed in SEEDS:
        for inputs in INPUTS:
            random = Random(seed)
            try:
                check_all(Changelogs(inputs), changes(random, len(inputs)), random)
            except (AssertionError, JoinError):
                return True
    return False


def without_retractions(change: InputChange) -> list[Routed]:
    return [routed for routed in route(change) if routed.kind is not Kind.RETRACT]


def without_null_moves(change: InputChange) -> list[Routed]:
    return [] if change.after is None and change.before is not None else route(change)


def without_puts_after_retractions(change: InputChange) -> list[Routed]:
    return route(change)[:1]


def with_nulls_that_meet(_logs: Changelogs, _of: int, values: Values) -> Group:
    return Group(changelogs.number(values[1]))


MUTANTS: dict[str, tuple[object, str, object]] = {
    "a retraction is dropped": (changelogs, "route", without_retractions),
    "a move to null is forgotten": (changelogs, "route", without_null_moves),
    "a moved row is not put": (changelogs, "route", without_puts_after_retractions),
    "null join keys meet": (Changelogs, "group_of", with_nulls_that_meet),
    "a row of nulls stays": (join._ChunkJoin, "_has_other", lambda *_: False),
    "a row of nulls is always there": (join._ChunkJoin, "_has_other", lambda *_: True),
    "required inputs are optional": (Rule, "has_rows", lambda _, counts: any(counts)),
    "all combinations again in each part": (join._ChunkJoin, "_begin", lambda *_: None),
    "rows are not stored": (Overlay, "put_row", lambda *_: None),
    "rows are not deleted": (Overlay, "delete_row", lambda *_: None),
}


@pytest.mark.parametrize("mutant", MUTANTS)
def test_a_seeded_defect_is_found(mutant: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(*MUTANTS[mutant])
    assert is_found()


def test_without_a_defect_nothing_is_found() -> None:
    for inputs in INPUTS:
        random = Random(1)
        check_all(Changelogs(inputs), changes(random, len(inputs)), random)
