"""The counts of each namespace, for Prometheus."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from prometheus_client import CollectorRegistry
from sqlalchemy import update

from cdc_common.clients.registry.kinds import Status
from schematizer import metrics
from schematizer.avro_schemas.compatibility import Level
from schematizer.catalogue import census
from schematizer.catalogue.clients import ConsumerRegistration, ProducerRegistration
from schematizer.catalogue.rules import Rules
from schematizer.catalogue.usage import UNUSED_DAYS
from schematizer.confluent.store import Store
from schematizer.model.base import now
from schematizer.model.client_tables import ConsumerRow, ProducerRow
from schematizer.model.database import Database, opened
from schematizer.model.source_tables import TopicRow, TopicSchemaRow
from schematizer.registration.mirror import Mirror
from schematizer.service import Catalogue

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

DAY = 24 * 3600.0


class World:
    def __init__(self, database: Database) -> None:
        self.database = database
        self.store = Store(database, Mirror("pii-"))
        self.catalogue = Catalogue(database, Rules())
        self.store.set_level("", Level.NONE)

    def register(self, topic: str, schema: str = '"string"') -> int:
        return self.store.register(f"{topic}-value", schema).schema_id

    def age(self, table: Any, column: str, seconds: float, *conditions: Any) -> None:  # noqa: ANN401 - SQLAlchemy's
        """Makes the column's time earlier, in the table's rows that meet the conditions."""
        statement = update(table).where(*conditions).values({column: now() - timedelta(seconds=seconds)})
        self.database.write_session(lambda session: session.execute(statement))

    def counted(self, *what: str) -> dict[tuple[str, str, str], int]:
        """Return the counts without zeros."""
        return {
            (count.what, count.namespace, count.state): count.number
            for count in self.catalogue.census.take()
            if count.what in what and count.number
        }


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with opened(f"sqlite:///{tmp_path / 'registry.db'}") as database:
        yield World(database)


def test_topics_and_schemas_by_status(world: World) -> None:
    for topic in ("cdc.a.one", "cdc.a.two", "cdc.raw.a.one", "cdc.b.one"):
        world.register(topic)
    world.register("cdc.a.one", '"int"')
    world.catalogue.topics.set_status("cdc.a.two", Status.DISABLED, by="test")
    world.catalogue.topics.set_schema_status("cdc.a.one", 1, Status.READ_ONLY, by="test")
    assert world.counted("topics", "topic_schemas") == {
        ("topics", "cdc.a", "read-write"): 2,
        ("topics", "cdc.a", "disabled"): 1,
        ("topics", "cdc.b", "read-write"): 1,
        ("topic_schemas", "cdc.a", "read-write"): 3,
        ("topic_schemas", "cdc.a", "read-only"): 1,
        ("topic_schemas", "cdc.b", "read-write"): 1,
    }


def test_what_is_unused_is_what_the_list_has(world: World) -> None:
    for topic in ("cdc.a.one", "cdc.a.two", "cdc.raw.a.one"):
        world.register(topic)
    world.register("cdc.a.one", '"int"')
    long = (UNUSED_DAYS + 1) * DAY
    world.age(TopicRow, "last_used_at", long, TopicRow.name != "cdc.a.one")
    world.age(TopicSchemaRow, "last_used_at", long, TopicSchemaRow.schema_id == 1)
    assert [(unused.topic, unused.schema_id) for unused in world.catalogue.usage.unused(UNUSED_DAYS)] in (
        [("cdc.a.two", None), ("cdc.a.one", 1)],
        [("cdc.a.one", 1), ("cdc.a.two", None)],
    )
    assert world.counted("unused_topics", "unused_schemas") == {
        ("unused_topics", "cdc.a", ""): 1,
        ("unused_schemas", "cdc.a", ""): 1,
    }


def test_clients_are_late_as_their_list_says(world: World) -> None:
    schema_id = world.register("cdc.a.one")
    for number in range(3):
        producer = ProducerRegistration("team", f"writer{number}", "cdc.a.one", schema_id, 1000)
        world.catalogue.clients.register_producer(producer, by="test")
    consumer = ConsumerRegistration("team", "reader", "cdc.a.one", "group", 1000)
    world.catalogue.clients.register_consumer(consumer, by="test")
    world.age(ProducerRow, "last_seen_at", 1900)
    world.age(ProducerRow, "last_seen_at", 2001, ProducerRow.service == "writer0")
    world.age(ConsumerRow, "last_seen_at", 2001)
    assert [writer.service for writer in world.catalogue.clients.producers() if writer.is_late] == ["writer0"]
    assert [reader.service for reader in world.catalogue.clients.consumers() if reader.is_late] == ["reader"]
    assert world.counted("producers", "consumers") == {
        ("producers", "cdc.a", "late"): 1,
        ("producers", "cdc.a", "seen"): 2,
        ("consumers", "cdc.a", "late"): 1,
    }


def test_clients_cannot_make_series_without_end(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """The oldest namespaces keep their own."""
    monkeypatch.setattr(census, "MAX_NAMESPACES", 2)
    for namespace in "abcd":
        world.register(f"cdc.{namespace}.t")
    assert world.counted("topics") == {
        ("topics", "cdc.a", "read-write"): 1,
        ("topics", "cdc.b", "read-write"): 1,
        ("topics", census.OTHERS, "read-write"): 2,
    }


def test_a_namespace_has_all_its_series(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Zeros too: an alert ends where the last late client is seen. They are counted once a minute."""
    world.register("cdc.a.one")
    registry = CollectorRegistry()
    metrics.RegistryMetrics(registry, world.store, world.catalogue.census)

    def value(name: str, **labels: str) -> float | None:
        return registry.get_sample_value(f"cdc_schematizer_{name}", {"namespace": "cdc.a", **labels})

    assert value("topics", status="read-write") == 1
    assert value("topics", status="read-only") == 0
    assert value("topic_schemas", status="disabled") == 0
    assert value("unused_topics") == value("unused_schemas") == 0
    assert value("producers", state="late") == value("consumers", state="seen") == 0
    world.register("cdc.a.two")
    assert value("topics", status="read-write") == 1
    monkeypatch.setattr(metrics, "_CENSUS_SECONDS", 0.0)
    assert value("topics", status="read-write") == 2
