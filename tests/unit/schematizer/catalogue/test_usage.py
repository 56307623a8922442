"""Requests that count as use, and the topics and schemas that are found to be unused."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest
from sqlalchemy import event, update

from cdc_common.clients.registry.kinds import Status
from schematizer.catalogue.clients import ConsumerRegistration, ProducerRegistration
from schematizer.catalogue.rules import Rules
from schematizer.catalogue.usage import Usage
from schematizer.confluent.store import Store
from schematizer.model.base import now
from schematizer.model.database import Database, opened
from schematizer.model.source_tables import TopicRow, TopicSchemaRow
from schematizer.registration.mirror import Mirror
from schematizer.service import Catalogue

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

DAYS = 100


def schema(number: int) -> str:
    fields = [{"name": f"f{number}", "type": ["null", "int"], "default": None}]
    return json.dumps({"type": "record", "name": "r", "fields": fields})


class World:
    """A registry whose schemas were all last used a hundred days ago: ids 1 and 2 in topic a.b.c, 3 in a.b.d."""

    def __init__(self, database: Database) -> None:
        self.usage = Usage(database)
        self.store = Store(database, Mirror("pii-", self.usage))
        self.catalogue = Catalogue(database, Rules(), self.usage)
        for subject, number in (("a.b.c-value", 1), ("a.b.c-value", 2), ("a.b.d-value", 3), ("a.raw.b.c-value", 4)):
            self.store.register(subject, schema(number))
        self._database, self.engine = database, database._engine
        self.age()

    def age(self) -> None:
        then = now() - timedelta(days=DAYS)
        self._database.write_session(
            lambda session: [session.execute(update(t).values(last_used_at=then)) for t in ROWS]
        )

    def unused(self, days: int = DAYS - 1) -> list[tuple[str, int | None]]:
        self.usage.flush()
        return sorted((entry.topic, entry.schema_id or 0) for entry in self.catalogue.usage.unused(days))


ROWS = (TopicRow, TopicSchemaRow)
EVERYTHING = [("a.b.c", 0), ("a.b.d", 0)]


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with opened(f"sqlite:///{tmp_path / 'registry.db'}") as database:
        yield World(database)


def test_what_was_not_used_is_found(world: World) -> None:
    """Topics; of a topic in use, schemas. Raw topics are not listed."""
    assert world.unused(DAYS + 1) == []
    assert world.unused() == EVERYTHING
    world.store.schema(2)
    assert world.unused() == [("a.b.c", 1), ("a.b.d", 0)]


@pytest.mark.parametrize("use", ["read", "register", "produce", "consume"])
def test_what_counts_as_use(world: World, use: str) -> None:
    match use:
        case "read":
            world.store.schema(3)
        case "register":
            world.store.register("a.b.d-value", schema(3))
        case "produce":
            producer = ProducerRegistration("team", "service", "a.b.d", 3, 60)
            world.catalogue.clients.register_producer(producer, by="test")
        case "consume":
            consumer = ConsumerRegistration("team", "service", "a.b.d", "group", 60)
            world.catalogue.clients.register_consumer(consumer, by="test")
    assert ("a.b.d", 0) not in world.unused()
    assert ("a.b.c", 0) in world.unused()


def test_the_question_who_uses_a_schema_is_no_use(world: World) -> None:
    """The registry asks it itself, for the rights of those whom it then refuses."""
    assert world.store.uses(2, deleted=True) == [("a.b.c-value", 2)]
    assert world.unused() == EVERYTHING


def test_what_is_disabled_is_not_listed(world: World) -> None:
    world.catalogue.topics.set_status("a.b.c", Status.DISABLED, by="test")
    assert world.unused() == [("a.b.d", 0)]


def test_a_use_that_cannot_be_written_is_kept(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.store.schema(3)

    def fail(_transaction: object) -> None:
        raise OSError("the disk is full")

    with monkeypatch.context() as broken:
        broken.setattr(world.usage._database, "write_session", fail)
        with pytest.raises(OSError, match="disk"):
            world.usage.flush()
    assert world.unused() == [("a.b.c", 0)]


def test_reading_again_writes_nothing(world: World) -> None:
    """A use is noted to the hour."""
    world.store.schema(3)
    world.usage.flush()
    before = world.catalogue.topics.get("a.b.d").last_used_at
    world.store.schema(3)
    world.usage.flush()
    assert world.catalogue.topics.get("a.b.d").last_used_at == before


def test_many_uses_are_a_few_reads(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """A registry whose schemas are all read within a minute: nothing is written, and no writer waits."""
    for schema_id in (1, 2, 3, 4):
        world.store.schema(schema_id)
    world.usage.flush()
    statements: list[str] = []
    event.listen(world.engine, "before_cursor_execute", lambda *arguments: statements.append(arguments[2]))

    def fail(_transaction: object) -> None:
        raise AssertionError("it takes the lock of the writers")

    monkeypatch.setattr(world.usage._database, "write_session", fail)
    for schema_id in range(1, 2001):
        world.usage.note(None, schema_id)
        world.usage.note("a.b.c-value", schema_id)
    world.usage.flush()
    assert len(statements) <= 5


def test_a_use_of_one_topic_is_no_use_of_another(world: World) -> None:
    """The same schema in two topics, registered again in one; and in a subject that names no topic: in both."""
    world.store.register("a.b.d-value", schema(1))
    world.age()
    world.store.register("a.b.d-value", schema(1))
    assert world.unused() == [("a.b.c", 0), ("a.b.d", 3)]
    world.age()
    world.usage.note("plain", 1)
    assert world.unused() == [("a.b.c", 2), ("a.b.d", 3)]
