"""A table whose schema the node does not show yet waits alone, and nothing of it is lost."""

from __future__ import annotations

from time import monotonic
from typing import TYPE_CHECKING

import pytest

import cdc_native
from cdc_common.messages import raw
from tests.support.publisher.publisher_beside_fakes import FakeKafka, PublisherBesideFakes
from tests.support.publisher.schema_rows import SchemaRows

if TYPE_CHECKING:
    from pathlib import Path

LATE, DROPPED = "cdc.raw.ks.late", 30
WAIT = "publisher.topics.missing_schemas.SCHEMA_WAIT_SECONDS"
LONG = 20.0


@pytest.fixture(params=[pytest.param(True, id="native"), pytest.param(False, id="python")])
def publisher(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> PublisherBesideFakes:
    """Of ks.good, which has one row."""
    if request.param and not cdc_native.is_compiled():
        pytest.skip("not compiled: test_compiled says so")
    if not request.param:
        monkeypatch.setattr(cdc_native, "is_enabled", lambda: False)
    monkeypatch.setattr("publisher.upkeep.housekeeping.SAVE_SECONDS", 0.0)
    monkeypatch.setattr(WAIT, LONG)
    rows = SchemaRows()
    rows.create("ks", "good", cdc=True)
    made = PublisherBesideFakes(tmp_path, rows, FakeKafka())
    made.open()
    made.write("good", 0)
    made.run(lambda: made.is_sent("good"))
    return made


def rows_with_late(publisher: PublisherBesideFakes, *, cdc: bool = True) -> SchemaRows:
    """The node's schema with ks.late, which the node does not show yet."""
    rows = publisher.rows.copy()
    rows.create("ks", "late", cdc=cdc)
    return rows


def write_both(publisher: PublisherBesideFakes, rows: SchemaRows, first: int, count: int) -> None:
    """Rows of both tables, by turns, in several segments."""
    for number in range(first, first + count):
        publisher.write("late", number, rows=rows)
        publisher.write("good", number)
        if number % 3 == 0:
            publisher.next_segment()


def test_the_others_go_on_at_once(publisher: PublisherBesideFakes) -> None:
    rows = rows_with_late(publisher)
    write_both(publisher, rows, 1, 8)
    begun = monotonic()
    publisher.run(lambda: publisher.is_sent("good"))
    assert monotonic() - begun < LONG
    assert list(publisher.waits().values()) == ["CDC-043"]
    publisher.rows.show(rows)
    write_both(publisher, rows, 9, 4)
    publisher.run(lambda: publisher.is_sent("late") and publisher.is_sent("good") and not publisher.waiting.tables)
    assert publisher.kafka.places(LATE) == publisher.written[LATE]  # in the order of the log
    publisher.next_segment()
    publisher.write("late", 20)
    publisher.run(lambda: publisher.is_sent("late") and len(publisher.segments()) == 1)


def test_many_tables_that_were_dropped_unseen(
    publisher: PublisherBesideFakes, capsys: pytest.CaptureFixture[str]
) -> None:
    """None of them makes the others wait, and nothing is kept for them in the end."""
    for number in range(DROPPED):
        rows = publisher.rows.copy()
        rows.create("ks", f"brief{number}", cdc=True)
        publisher.write(f"brief{number}", number, rows=rows)
        publisher.write("good", number)
    publisher.next_segment()
    begun = monotonic()
    publisher.run(lambda: publisher.is_sent("good"))
    assert monotonic() - begun < LONG
    assert len(publisher.waiting.tables) == DROPPED
    assert publisher.segments() == [0, 1]
    for awaited in publisher.publisher._missing._awaited.values():
        awaited.deadline = 0.0
    publisher.rows.questions.clear()
    publisher.run(lambda: not publisher.waiting.tables)
    assert sum("system_schema.columns" in question for question in publisher.rows.questions) == 1
    assert capsys.readouterr().out.count("skipping mutations of a dropped table") == DROPPED
    publisher.run(lambda: publisher.segments() == [1])


@pytest.mark.parametrize("cdc", [True, False])
def test_a_crash_while_it_waits(publisher: PublisherBesideFakes, *, cdc: bool) -> None:
    rows = rows_with_late(publisher, cdc=cdc)
    for number in range(1, 30, 3):
        write_both(publisher, rows, number, 3)
        publisher.run(lambda: publisher.is_sent("good"))
        publisher.kafka._queue.clear()
        publisher.restart()
        publisher.open()
        assert len(publisher.waiting.tables) == 1
    publisher.rows.show(rows)
    publisher.run(lambda: not publisher.waiting.tables)
    publisher.run(lambda: publisher.is_sent("good") and publisher.is_sent("late") == cdc)
    assert publisher.kafka.places(LATE) == (publisher.written[LATE] if cdc else [])
    publisher.run(lambda: len(publisher.segments()) == 1)


def test_a_drop_that_is_certain_only_after_a_crash(
    publisher: PublisherBesideFakes, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write_both(publisher, rows_with_late(publisher), 1, 6)
    publisher.run(lambda: publisher.is_sent("good"))
    monkeypatch.setattr(WAIT, 0.05)
    publisher.restart()
    publisher.open()
    publisher.run(lambda: not publisher.waiting.tables and len(publisher.segments()) == 1)
    assert capsys.readouterr().out.count("skipping mutations of a dropped table") == 1


def rows_with_column(publisher: PublisherBesideFakes) -> SchemaRows:
    """The node's schema with another column of ks.late, which the node does not show yet."""
    publisher.rows.create("ks", "late", cdc=True)
    publisher.write("late", 100)
    publisher.run(lambda: publisher.is_sent("late"))
    rows = publisher.rows.copy()
    rows.add_column("ks", "late", "v", "int")
    return rows


def test_a_column_that_is_not_shown_yet(publisher: PublisherBesideFakes) -> None:
    rows = rows_with_column(publisher)
    publisher.write("late", 101)
    write_both(publisher, rows, 1, 8)
    begun = monotonic()
    publisher.run(lambda: publisher.is_sent("good"))
    assert monotonic() - begun < LONG
    assert publisher.waits() == {"ks.late": "CDC-043"}
    publisher.rows.questions.clear()
    write_both(publisher, rows, 9, 4)
    publisher.run(lambda: publisher.is_sent("good"))
    assert not any("system_schema.columns" in question for question in publisher.rows.questions)
    publisher.rows.show(rows)
    publisher.run(lambda: publisher.is_sent("late") and not publisher.waiting.tables)
    assert publisher.kafka.places(LATE) == publisher.written[LATE]


def test_a_column_that_never_comes(publisher: PublisherBesideFakes, monkeypatch: pytest.MonkeyPatch) -> None:
    """A mutation that needs it is quarantined, in its place; the rest is sent."""
    monkeypatch.setattr(WAIT, 0.2)
    rows = rows_with_column(publisher)
    publisher.write("late", 101)
    places = list(publisher.written[LATE])
    write_both(publisher, rows, 1, 6)
    publisher.write("late", 102)
    places.append(publisher.written[LATE][-1])
    publisher.run(lambda: publisher.is_sent("good") and not publisher.waiting.tables)
    publisher.run(lambda: set(publisher.kafka.places(LATE)) >= set(places))
    assert publisher.kafka.places(LATE) == places
    kinds = [raw.decode(value).kind for value in publisher.kafka.delivered[LATE]]
    assert kinds.count("gap") >= 6
    assert len(publisher.node.quarantine.read_all()) == 6
    publisher.run(lambda: len(publisher.segments()) == 1)


def test_another_schema_that_comes_meanwhile(publisher: PublisherBesideFakes) -> None:
    """A schema that still lacks the column is tried, and the table waits again."""
    rows = rows_with_column(publisher)
    write_both(publisher, rows, 1, 4)
    publisher.run(lambda: publisher.is_sent("good"))
    publisher.rows.add_column("ks", "late", "w", "int")
    for _ in range(30):
        publisher.round()
    assert publisher.waits() == {"ks.late": "CDC-043"}
    rows.add_column("ks", "late", "w", "int")
    publisher.rows.show(rows)
    publisher.run(lambda: publisher.is_sent("late") and not publisher.waiting.tables)
    assert publisher.kafka.places(LATE) == publisher.written[LATE]


def test_a_table_that_the_node_is_just_writing(
    publisher: PublisherBesideFakes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has no columns yet. The others do not wait until it has, or until it is known to be unreadable."""
    monkeypatch.setattr("publisher.tables.half_read.HALF_READ_SECONDS", LONG)
    monkeypatch.setattr("publisher.tables.node_schema._RETRY_SECONDS", LONG)
    rows = rows_with_late(publisher)
    columns, rows.columns = rows.columns, [row for row in rows.columns if row["table_name"] != "late"]
    publisher.rows.show(rows.copy())
    rows.columns = columns
    write_both(publisher, rows, 1, 6)
    begun = monotonic()
    publisher.run(lambda: publisher.is_sent("good"))
    assert monotonic() - begun < LONG
    assert list(publisher.waits().values()) == ["CDC-043"]
    publisher.rows.columns = columns
    publisher.run(lambda: publisher.is_sent("late") and not publisher.waiting.tables)
    assert publisher.kafka.places(LATE) == publisher.written[LATE]
