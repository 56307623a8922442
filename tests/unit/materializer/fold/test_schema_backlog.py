"""The history does not depend on lag: a backlog with changes of the schema, folded as if there had been none."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from materializer.fold import schema_change
from materializer.rows.settings import FoldSettings
from tests.support.materializer.fold_checks import EXAMPLES
from tests.support.materializer.schema_backlogs import LAST, STEPS, TRUNCATED_STEPS, Backlog, backlog_of, fold_all

if TYPE_CHECKING:
    from cdc_common.messages.changes import RowChange

NEVER_PURGE = FoldSettings(purge_margin_seconds=10**9)


@settings(max_examples=4 * EXAMPLES, deadline=None)
@given(
    steps=STEPS,
    cuts=st.sets(st.integers(1, 25), max_size=5),
    lag=st.sampled_from([0, 0, 3, 1000]),
    max_changes=st.sampled_from([1, 2, 40_000]),
    reorder_ms=st.sampled_from([0, 0, 4000]),
)
def test_any_lag_gives_the_same_history(
    steps: list[tuple[object, ...]], cuts: set[int], lag: int, max_changes: int, reorder_ms: int
) -> None:
    check(backlog_of(steps), cuts, lag, NEVER_PURGE._replace(max_changes=max_changes, reorder_ms=reorder_ms))


@settings(max_examples=4 * EXAMPLES, deadline=None)
@given(steps=TRUNCATED_STEPS, cuts=st.sets(st.integers(1, 40), max_size=5), max_changes=st.sampled_from([1, 2, 40_000]))
def test_a_truncation_that_a_host_finishes_later_gives_the_same_history(
    steps: list[tuple[object, ...]], cuts: set[int], max_changes: int
) -> None:
    """The schema changes between: what the host sends again names a newer one than it was written with."""
    check_truncated(backlog_of(steps), cuts, max_changes)


def check_truncated(backlog: Backlog, cuts: set[int], max_changes: int) -> None:
    made = [sent for sent in backlog.made if sent.after_truncate is not False]
    known = [backlog.catalog(sent.schema + 1) for sent in made]
    expected = fold_all([sent.record for sent in made], known, range(1, len(made)), NEVER_PURGE)
    late = [sent.record for sent in backlog.made if sent.after_truncate is not True]
    newest = [backlog.catalog(len(backlog.schemas))] * len(late)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(schema_change, "SWEPT_ROWS", 1)
        ends = {*(cut for cut in cuts if cut < len(late)), *range(len(late) - LAST, len(late))}
        found = fold_all(late, newest, sorted(ends), NEVER_PURGE._replace(max_changes=max_changes))
    assert summary(found) == summary(expected)


def test_a_column_that_is_dropped_before_a_truncation_is_finished() -> None:
    backlog = Backlog()
    backlog.write(1, 1, ["a"], 0, is_insert=True)
    backlog.truncate()
    backlog.write(1, 1, ["a", "b"], 0, is_insert=True)
    backlog.drop("b")
    backlog.write(2, 1, ["a"], 0, is_insert=True)
    backlog.settle()
    backlog.end()
    check_truncated(backlog, set(), 40_000)


def test_a_heartbeat_of_a_new_table_before_the_last_write_of_the_former_one() -> None:
    """The publisher reads the schema before its log."""
    backlog = Backlog()
    backlog.write(1, 0, ["b"], 0, is_insert=True)
    backlog.recreate_early(1)
    backlog.end()
    check(backlog, set(), 0, NEVER_PURGE)
    newest = [backlog.catalog(2)] * len(backlog.made)
    found = fold_all(backlog.records(publisher_lags=False), newest, (), NEVER_PURGE)
    assert [[(change.op, change.source.cause) for change in changes] for changes in found.values()] == [
        [("c", "write"), ("u", "write"), ("d", "schema")]
    ]


@pytest.mark.parametrize("name", ["f", "u"])
@pytest.mark.parametrize("count", [0, 1, 2])
def test_a_type_that_is_extended_and_a_column_that_is_dropped(name: str, count: int) -> None:
    """A value without the new field, which a publisher that is behind sends with the newest schema."""
    backlog = Backlog()
    backlog.write(1, 0, ["a", "b"], 0, is_insert=True)
    backlog.write_fields(1, name, count)
    backlog.extend_type()
    backlog.write_fields(1, name, count)
    backlog.drop("b")
    backlog.end()
    check(backlog, set(), 1000, NEVER_PURGE)


def check(backlog: Backlog, cuts: set[int], lag: int, fold_settings: FoldSettings) -> None:
    """A job without lag knows the schemas so far, and folds each record alone."""
    count = len(backlog.made)
    known = [backlog.catalog(made.schema + 1) for made in backlog.made]
    live = NEVER_PURGE._replace(reorder_ms=fold_settings.reorder_ms)
    expected = fold_all(backlog.records(publisher_lags=False), known, range(1, count), live)
    backlog.let_publishers_lag(lag)
    newest = [backlog.catalog(len(backlog.schemas))] * count
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(schema_change, "SWEPT_ROWS", 1)
        records = backlog.records(publisher_lags=lag > 0)
        ends = {*(cut for cut in cuts if cut < count), *range(count - LAST, count)}
        found = fold_all(records, newest, sorted(ends), fold_settings)
    assert summary(found) == summary(expected)


def summary(changes: dict[object, list[RowChange]]) -> dict[object, list[tuple[object, ...]]]:
    """The changes of each key. A row that begins may have any larger row_sequence: that of its table's rows which have
    ended by then.
    """
    return {
        key: [
            (change.op, change.before, change.after, step, change.source.cause, change.schema, change.topic)
            for change, step in zip(of_key, sequence_steps(of_key), strict=True)
        ]
        for key, of_key in changes.items()
    }


def sequence_steps(changes: list[RowChange]) -> list[int]:
    sequences = [0, *(change.row_sequence for change in changes)]
    steps = [after - before for before, after in pairwise(sequences)]
    return [min(step, 1) if change.op == "c" else step for step, change in zip(steps, changes, strict=True)]


def test_what_was_written_before_a_drop_comes_out() -> None:
    backlog = Backlog()
    backlog.write(1, 1, ["a", "b"], 0, is_insert=True)
    backlog.write(3, 1, ["b"], 0, is_insert=False)
    backlog.drop("b")
    backlog.write(1, 1, ["a"], 0, is_insert=False)
    backlog.end()
    newest = [backlog.catalog(2)] * len(backlog.made)
    found = fold_all(backlog.records(publisher_lags=False), newest, (), NEVER_PURGE)
    ops = {key: [(change.op, change.source.cause) for change in changes] for key, changes in summary_of(found).items()}
    assert ops == {
        1: [("c", "write"), ("u", "schema"), ("u", "write")],
        3: [("c", "write"), ("d", "schema")],
    }
    check(backlog, set(), 0, NEVER_PURGE)


def test_rows_follow_each_schema_also_without_a_message_between() -> None:
    backlog = Backlog()
    backlog.write(1, 1, ["a"], 0, is_insert=True)
    backlog.rename_key()
    backlog.rename_key()
    backlog.end()
    newest = [backlog.catalog(3)] * len(backlog.made)
    found = fold_all(backlog.records(publisher_lags=False), newest, (), NEVER_PURGE)
    assert [(change.op, change.topic.name) for change in summary_of(found)[1] if change.topic] == [
        ("c", "topic-c"),
        ("d", "topic-c"),
        ("r", "topic-c1"),
        ("d", "topic-c1"),
        ("r", "topic-c2"),
    ]


def test_rows_follow_each_schema_of_a_table_that_is_created_again() -> None:
    """It was altered and dropped without a message between. No row_sequence is left out."""
    backlog = Backlog()
    backlog.write(1, 1, ["a", "b"], 0, is_insert=True)
    backlog.write(2, 1, ["b"], 0, is_insert=False)
    backlog.drop("b")
    backlog.rename_key()
    backlog.recreate()
    backlog.write(1, 1, ["a"], 0, is_insert=True)
    backlog.end()
    newest = [backlog.catalog(len(backlog.schemas))] * len(backlog.made)
    found = summary_of(fold_all(backlog.records(publisher_lags=False), newest, (), NEVER_PURGE))
    steps = {
        key: [
            (change.op, change.source.cause, change.topic and change.topic.name, change.row_sequence)
            for change in changes
        ]
        for key, changes in found.items()
    }
    assert steps == {
        1: [
            ("c", "write", "topic-c", 1),
            ("u", "schema", "topic-c", 2),
            ("d", "moved", "topic-c", 3),
            ("r", "moved", "topic-c2", 4),
            ("d", "schema", "topic-c2", 5),
            ("c", "write", "topic-c2", 6),
        ],
        2: [("c", "write", "topic-c", 1), ("d", "schema", "topic-c", 2)],
    }
    check(backlog, set(), 0, NEVER_PURGE)


def summary_of(changes: dict[object, list[RowChange]]) -> dict[int, list[RowChange]]:
    return {int.from_bytes(of_key[0].partition_key, "big"): of_key for of_key in changes.values()}
