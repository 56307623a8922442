"""The checks of a history can fail: each kind of break is planted and must be found."""

from __future__ import annotations

import math
from typing import Any

import pytest

from dev.local_stack.clients.change import Change
from dev.local_stack.clients.history import History, chain_problems, percentile

ROWS = [None, {"id": 1, "a": "x"}, {"id": 1, "a": "y"}, None, {"id": 1, "a": math.nan}, {"id": 1, "a": "z"}]
OPERATIONS = "cudcu"


def change(offset: int, **replaced: Any) -> Change:  # noqa: ANN401
    value = {
        "op": OPERATIONS[offset],
        "before": ROWS[offset],
        "after": ROWS[offset + 1],
        "source": {"row_sequence": 5 + offset, "ts_us": 1_000_000, "snapshot": "false"},
    }
    return Change("ks", "t", 0, offset, {"id": 1}, value | replaced, 1.5)


def chain() -> list[Change]:
    return [change(offset) for offset in range(len(OPERATIONS))]


def test_an_unbroken_chain_has_no_problem() -> None:
    assert list(chain_problems(chain())) == []


@pytest.mark.parametrize("lost", range(1, len(OPERATIONS) - 1))
def test_a_lost_change_is_found(lost: int) -> None:
    changes = chain()
    del changes[lost]
    assert list(chain_problems(changes))


@pytest.mark.parametrize("twice", range(len(OPERATIONS)))
def test_a_repeated_change_is_found(twice: int) -> None:
    changes = chain()
    changes.insert(twice, changes[twice])
    assert list(chain_problems(changes))


@pytest.mark.parametrize(
    "replaced", [{"before": {"id": 1, "a": "other"}}, {"before": None}, {"after": {"id": 1, "a": "other"}}, {"op": "c"}]
)
def test_a_wrong_image_or_operation_is_found(replaced: dict[str, Any]) -> None:
    assert list(chain_problems([change(0), change(1, **replaced), change(2)]))


def test_an_update_that_changes_nothing_is_found() -> None:
    """Unless Avro cannot represent what has changed: the field is null then, and named."""
    row = {"id": 1, "a": "x"}
    same = change(1, before=row, after=row)
    assert list(chain_problems([change(0), same])) == ["row_sequence 6 changes nothing"]
    assert same.value is not None
    named = same.value["source"] | {"empty": ["after.b"]}
    assert list(chain_problems([change(0), change(1, before=row, after=row, source=named)])) == []


def test_numbers_are_left_out_only_after_a_deletion_that_was_purged() -> None:
    """The third change of the chain deletes the row."""
    jump = {"source": {"row_sequence": 9, "ts_us": 0, "snapshot": "false"}}
    again = [*chain()[:3], change(3, **jump)]
    assert list(chain_problems(again))
    assert list(chain_problems(again, may_be_purged=True)) == []
    assert list(chain_problems([change(0), change(1, **jump)], may_be_purged=True))
    back = {"source": {"row_sequence": 2, "ts_us": 0, "snapshot": "false"}}
    assert list(chain_problems([*chain()[:3], change(3, **back)], may_be_purged=True))


def test_a_first_change_that_has_a_before_is_found() -> None:
    assert list(chain_problems([change(1)]))


def test_a_history_keeps_the_latest_rows_and_counts_tombstones_apart() -> None:
    history = History()
    history.add([*chain(), Change("ks", "t", 0, 9, {"id": 2}, None, 2.0)])
    assert [(key, value["after"]["a"]) for key, value in history.latest("ks.t")] == [({"id": 1}, "z")]
    assert (history.count, history.tombstones, history.tables()) == (len(OPERATIONS), 1, {"ks.t"})
    assert history.latencies == [0.5] * len(OPERATIONS)


def test_a_deleted_row_is_no_latest_row() -> None:
    history = History()
    history.add(chain()[:3])
    assert list(history.latest("ks.t")) == []


def test_percentiles_are_values_that_came() -> None:
    values = [float(value) for value in range(1, 101)]
    assert (percentile(values, 0.5), percentile(values, 0.99), percentile([7.0], 0.01)) == (50.0, 99.0, 7.0)
    assert math.isnan(percentile([], 0.5))
