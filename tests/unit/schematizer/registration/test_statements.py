"""The cost of a registration: statements of the database, counted and explained. Times would measure the machine."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from sqlalchemy import event
from sqlalchemy.engine import Engine

from dev.bench import registry_rows as rows
from schematizer.catalogue.rules import Rules
from schematizer.confluent.store import Store
from schematizer.model.database import Database, opened
from schematizer.registration.mirror import Mirror
from schematizer.registration.register import Description
from schematizer.service import Catalogue
from tests.support.schematizer.watson_data import BY

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

STORED = 2 * rows.PER_TOPIC
FIRST = 10_000 * rows.PER_TOPIC  # the first new schema's number: the first of its topic


@pytest.fixture
def asked() -> Iterator[list[tuple[str, Any]]]:
    """The statements that the databases got, with their parameters; of many at once the first ones."""
    statements: list[tuple[str, Any]] = []

    def note(*call: Any) -> None:  # noqa: ANN401 - as SQLAlchemy calls it
        _connection, _cursor, statement, parameters, _context, is_many = call
        statements.append((statement, parameters[0] if is_many else parameters))

    event.listen(Engine, "before_cursor_execute", note)
    yield statements
    event.remove(Engine, "before_cursor_execute", note)


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    with opened(f"sqlite:///{tmp_path / 'registry.db'}") as made:
        rows.fill(made, STORED)
        yield made


def over_confluent(database: Database, number: int) -> None:
    Store(database, Mirror()).register(rows.subject(number), rows.schema(number))


def over_rest(database: Database, number: int) -> None:
    columns = f"id int PRIMARY KEY, own_{number} text, same text"
    text = f"CREATE TABLE {rows.source(number)} ({columns})"
    Catalogue(database, Rules()).registering.register(Description(rows.NAMESPACE, "cql", text), by=BY)


@pytest.mark.parametrize(
    ("register", "new_topic", "known_topic", "known_schema"), [(over_confluent, 29, 26, 2), (over_rest, 39, 30, 9)]
)
def test_statements_of_a_registration(
    database: Database,
    asked: list[tuple[str, Any]],
    register: Callable[[Database, int], None],
    new_topic: int,
    known_topic: int,
    known_schema: int,
) -> None:
    """A registration takes at most so many statements, whether a topic has two schemas or ten."""
    limits = [new_topic, *[known_topic] * (rows.PER_TOPIC - 1)]
    for number, limit in enumerate(limits, FIRST):
        asked.clear()
        register(database, number)
        assert 0 < len(asked) <= limit, [text for text, _ in asked]
    asked.clear()
    register(database, FIRST)
    assert 0 < len(asked) <= known_schema, [text for text, _ in asked]


@pytest.mark.parametrize("register", [over_confluent, over_rest])
def test_no_statement_reads_a_whole_table(
    database: Database, asked: list[tuple[str, Any]], register: Callable[[Database, int], None]
) -> None:
    """So what is stored of other topics does not count."""
    for number in (FIRST, FIRST + 1, FIRST):
        register(database, number)
    found = {text: parameters for text, parameters in asked if text.startswith(("SELECT", "UPDATE", "DELETE"))}
    assert len(found) > 10
    scanned = {}
    for text, parameters in found.items():
        plan = database.read(
            lambda connection, text=text, parameters=parameters: connection.exec_driver_sql(  # type: ignore[misc] # bound at once
                f"EXPLAIN QUERY PLAN {text}", parameters
            ).all()
        )
        steps = [step.detail for step in plan if step.detail != "SCAN CONSTANT ROW"]
        assert steps
        if any(step.startswith("SCAN") for step in steps):
            scanned[text] = steps
    assert scanned == {}
