"""The parts of the check of backlogs and names that need no server."""

from __future__ import annotations

import inspect
import random
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from dev.local_stack.clients.change import Change
from dev.verify.model import generator
from dev.verify.model.backlog import Backlog
from dev.verify.model.backlog_judge import compared, event_problems
from dev.verify.model.backlog_model import INT, LIST, Column, Expected, ExpectedTable
from dev.verify.model.mutants import BESIDE_BAD_TABLES, IN_BACKLOGS, IN_PUBLISHER, IN_SNAPSHOT, NAMES, OWN
from dev.verify.model.named_tables import (
    COLUMNS,
    KAFKA_LENGTH,
    KEYSPACE_LENGTH,
    bad_tables,
    good_tables,
    keyspaces,
    literal,
    nested,
)
from dev.verify.model.shapes import steady_tables
from dev.verify.model.statement import Statement

if TYPE_CHECKING:
    from dev.verify.model.backlog_model import Image, Plain
    from tests.support.materializer.mutants import Mutant

A, X = Column(INT), Column(INT)


def image(**values: Plain) -> Image:
    return tuple(sorted(values.items()))


def test_what_was_written_before_a_drop_comes_out_with_the_dropped_column() -> None:
    table = ExpectedTable("e", ("p",), {"a": A, "x": X})
    table.write((1, None), {"a": 1, "x": 1}, 1, is_insert=True)
    table.write((2, None), {"x": 2}, 2, is_insert=True)
    table.write((3, None), {"x": 3}, 3, is_insert=False)
    table.drop_column("x", 9)
    table.write((1, None), {"a": 5}, 10, is_insert=False)
    assert table.events[1, None] == [
        Expected("c", None, image(a=1, x=1)),
        Expected("u", image(a=1, x=1), image(a=1)),
        Expected("u", image(a=1), image(a=5)),
    ]
    assert table.events[2, None] == [Expected("c", None, image(x=2)), Expected("u", image(x=2), image())]
    assert table.events[3, None] == [Expected("c", None, image(x=3)), Expected("d", image(x=3), None)]


def test_cells_that_are_newer_than_the_drop_come_back() -> None:
    table = ExpectedTable("e", ("p",), {"x": X})
    table.write((1, None), {"x": 1}, 1, is_insert=False)
    table.write((2, None), {"x": 2}, 2, is_insert=False)
    table.drop_column("x", 1)
    assert table.rows() == {}
    table.add_column("x", X)
    assert table.rows() == {(2, None): image(x=2)}
    assert [event.op for event in table.events[2, None]] == ["c", "d", "c"]
    assert [event.op for event in table.events[1, None]] == ["c", "d"]


def test_equal_values_are_no_events() -> None:
    table = ExpectedTable("e", ("p", "c"), {"l": Column(LIST), "s": Column(INT, is_static=True)})
    for timestamp in (1, 2):
        table.write((1, 1), {"l": (1, 2)}, timestamp, is_insert=True)
        table.write_static(1, {"s": 1}, timestamp)
    assert [event.op for event in table.events[1, 1]] == ["c", "u"]


def test_statics_are_a_row_until_there_is_one() -> None:
    table = ExpectedTable("e", ("p", "c"), {"s": Column(INT, is_static=True)})
    table.write_static(1, {"s": 1}, 1)
    table.write((1, 7), {}, 2, is_insert=True)
    table.delete_all()
    assert [event.op for event in table.events[1, None]] == ["c", "d"]
    assert table.events[1, 7] == [Expected("c", None, image(s=1)), Expected("d", image(s=1), None)]


def change(sequence: int, op: str, before: Any, after: Any, cause: str = "write", table: str = "e") -> Change:  # noqa: ANN401
    source = {"row_sequence": sequence, "cause": cause, "ts_us": sequence}
    value = {"op": op, "before": before, "after": after, "source": source}
    return Change("k", table, 0, sequence, {"p": 1}, value, 0.0)


def test_every_difference_is_told() -> None:
    table = ExpectedTable("e", ("p",), {"a": A})
    table.write((1, None), {"a": 1}, 1, is_insert=True)
    table.write((1, None), {"a": 2}, 2, is_insert=True)
    one, two = {"p": 1, "a": 1}, {"p": 1, "a": 2}
    right = [change(1, "c", None, one), change(2, "u", one, two)]
    moved = [*right, change(3, "d", two, None, "moved"), change(4, "r", None, two, "moved", "e-v2")]
    assert list(event_problems(table, right)) == []
    assert list(event_problems(table, moved)) == []
    assert list(event_problems(table, right[:1])) != []
    assert list(event_problems(table, [])) != []
    assert list(event_problems(table, [right[0], change(2, "u", one, one)])) != []
    assert list(event_problems(table, [right[0], change(3, "u", one, two)])) != []
    assert list(event_problems(table, moved[:3])) != []


def test_an_ended_row_begins_above_others_if_its_table_has_moved() -> None:
    table = ExpectedTable("e", ("p",), {"a": A})
    table.write((1, None), {"a": 1}, 1, is_insert=True)
    table.delete_row((1, None))
    table.write((1, None), {"a": 1}, 5, is_insert=True)
    table.write((2, None), {"a": 1}, 3, is_insert=True)
    one = {"p": 1, "a": 1}
    ended = [change(1, "c", None, one), change(2, "d", one, None)]
    other = replace(change(3, "c", None, one, table="e-v2"), key={"p": 2})
    begins = change(5, "c", None, one)
    assert "row_sequence 5 follows 2" in "".join(event_problems(table, [*ended, begins]))
    assert "row_sequence" not in "".join(event_problems(table, [*ended, other, begins]))
    assert "row_sequence 5 follows 2" in "".join(event_problems(table, [*ended, other, change(5, "u", None, one)]))


def test_a_move_may_show_another_row() -> None:
    """A column that comes back with a type for which another topic is needed."""
    table = ExpectedTable("e", ("p",), {"a": A, "x": X})
    table.write((1, None), {"a": 1, "x": 1}, 3, is_insert=True)
    table.drop_column("x", 2)
    table.add_column("x", X)
    without, whole = {"p": 1, "a": 1}, {"p": 1, "a": 1, "x": 1}
    changes = [change(1, "c", None, whole), change(2, "u", whole, without, "schema")]
    move = [change(3, "d", without, None, "moved"), change(4, "r", None, whole, "moved", "e-v2")]
    assert list(event_problems(table, [*changes, *move])) == []
    same = [change(3, "d", without, None, "moved"), change(4, "r", None, without, "moved", "e-v2")]
    assert list(event_problems(table, [*changes, *same])) != []
    assert list(event_problems(table, changes)) != []


def test_a_surplus_is_told() -> None:
    event = Expected("c", None, image(a=1))
    assert list(compared([event, event], [event]))
    assert not list(compared([event], [event]))


class FakeClient:
    """Takes every statement."""

    def execute(self, _text: str) -> list[Any]:
        return []


@pytest.mark.parametrize("seed", range(5))
def test_the_workload_changes_schemas_in_every_way(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dev.verify.model.backlog.APART_SECONDS", 0.0)
    backlog = Backlog(FakeClient(), "k", "{}", seed, lambda: None)  # type: ignore[arg-type]  # it has what is used
    for _ in range(150):
        backlog.write(5)
        backlog.change()
    backlog.finish()
    text = "\n".join(backlog.script)
    words = (" ADD ", " DROP ", " USING TIMESTAMP ", " RENAME ", "TRUNCATE", "DROP TABLE", "cdc = false", "ALTER TYPE")
    assert [word for word in words if word not in text] == []
    assert backlog.statements > 600
    assert any(table.events for table in backlog.tables)


def test_hostile_tables_are_what_they_are_called() -> None:
    good, bad = list(good_tables(1, 5)), list(bad_tables(1))
    topics = {f"cdc.dead.{table.keyspace}.{table.name}" for table in good}
    assert max(map(len, topics)) == KAFKA_LENGTH
    too_long = [table for table in bad if len(f"cdc.dead.{table.keyspace}.{table.name}") > KAFKA_LENGTH]
    assert len(too_long) == 2
    assert all(len(name) <= KEYSPACE_LENGTH for name in keyspaces(1).values())
    kafka_names = {topic.replace(".", "_") for topic in topics}
    assert len(kafka_names) == len(topics)
    collided = [f"cdc.dead.{table.keyspace}.{table.name}".replace(".", "_") for table in bad]
    assert sum(name in kafka_names for name in collided) == 1
    assert len(set(COLUMNS)) == len(COLUMNS)


@pytest.mark.parametrize(
    "mutant", [*OWN, *IN_BACKLOGS, *IN_PUBLISHER, *BESIDE_BAD_TABLES, *IN_SNAPSHOT], ids=lambda mutant: mutant.name
)
def test_the_place_of_each_defect_is_there(mutant: Mutant) -> None:
    assert inspect.isfunction(mutant.function)
    assert inspect.getsource(mutant.function).count(mutant.old.partition("\n")[0]) >= 1
    assert mutant.name in NAMES


def test_a_literal_is_as_deep_as_its_type() -> None:
    text = literal(nested(3), random.Random(1))
    assert text.startswith("[[[")
    assert text.endswith("]]]")


def statements_of(share: float, monkeypatch: pytest.MonkeyPatch) -> list[Statement]:
    monkeypatch.setattr(generator, "AGAIN", share)
    workload = generator.Generator(3, steady_tables("5.0", 3), 0)
    return [item for item in workload.statements(2000) if isinstance(item, Statement)]


def test_same_values_follow_without_changing_the_workload(monkeypatch: pytest.MonkeyPatch) -> None:
    """The statements that are not repeats are those of a workload without repeats: later times change nothing here."""
    items = statements_of(generator.AGAIN, monkeypatch)
    alone = [item.marked("k") for item in statements_of(0.0, monkeypatch)]
    left = iter([item.marked("k") for item in items])
    assert all(any(text == marked for marked in left) for text in alone)
    assert 100 < len(items) - len(alone) < 300
    assert any("+ 0 WHERE" in item.cql("k") for item in items if item.is_counter())
