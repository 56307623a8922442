"""The catalogue shows the requests of clients of Confluent's API."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from cdc_common.clients.registry.kinds import Part, Status, TopicKind
from schematizer.catalogue.rules import Rules
from schematizer.confluent.store import Store
from schematizer.model.database import Database
from schematizer.registration.mirror import Mirror
from schematizer.service import Catalogue
from schematizer.topic_names import TopicName, parse_subject, parse_topic, topic_name

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    opened = Database(f"sqlite:///{tmp_path / 'registry.db'}")
    yield opened
    opened.close()


@pytest.fixture
def store(database: Database) -> Store:
    return Store(database, Mirror("pii-"))


@pytest.fixture
def catalogue(database: Database) -> Catalogue:
    return Catalogue(database, Rules("pii-"))


def record(*fields: object) -> str:
    return json.dumps({"type": "record", "name": "V", "fields": list(fields)})


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("cdc.shop.orders", TopicName("cdc.shop", "orders", TopicKind.CHANGE)),
        ("cdc.shop.orders-v3", TopicName("cdc.shop", "orders", TopicKind.CHANGE, 3)),
        ("pii-cdc.shop.orders-v2", TopicName("cdc.shop", "orders", TopicKind.CHANGE, 2)),
        ("cdc.raw.shop.orders", TopicName("cdc.shop", "orders", TopicKind.RAW)),
        ("cdc.dead.shop.orders", TopicName("cdc.shop", "orders", TopicKind.DEAD)),
        ("cdc.raw.orders", TopicName("cdc.raw", "orders", TopicKind.CHANGE)),
        ("cdc.tables", TopicName("cdc", "tables", TopicKind.OTHER)),
        ("payments", TopicName("default", "payments", TopicKind.OTHER)),
        ("payments-v1", TopicName("default", "payments-v1", TopicKind.OTHER)),
        ("a.b.c.d.e", TopicName("a.b.c.d", "e", TopicKind.OTHER)),
        ("a..b", TopicName("default", "a..b", TopicKind.OTHER)),
    ],
)
def test_names_of_topics(name: str, expected: TopicName) -> None:
    assert parse_topic(name, "pii-") == expected


@pytest.mark.parametrize("prefix", ["", "pii-"])
@pytest.mark.parametrize("version", [1, 2, 17])
def test_a_topic_is_named_as_it_is_read(prefix: str, version: int) -> None:
    name = topic_name("cdc.shop", "orders", version, prefix)
    assert parse_topic(name, "pii-") == TopicName("cdc.shop", "orders", TopicKind.CHANGE, version)


def test_subjects() -> None:
    assert parse_subject("a.b-value") == ("a.b", Part.VALUE)
    assert parse_subject("a-key") == ("a", Part.KEY)
    assert parse_subject("-value") is None
    assert parse_subject("a.b.Record") is None


def test_a_registration_appears_once(store: Store, catalogue: Catalogue) -> None:
    first = store.register("cdc.shop.orders-value", record({"name": "a", "type": "int"}))
    changes = len(catalogue.history.changes())
    assert store.register("cdc.shop.orders-value", record({"name": "a", "type": "int"})) == first
    assert len(catalogue.history.changes()) == changes
    [topic] = catalogue.topics.every()
    assert (topic.namespace, topic.source, topic.kind) == ("cdc.shop", "orders", TopicKind.CHANGE)
    assert catalogue.topics.latest_schema("cdc.shop.orders").schema_id == first.schema_id


def test_a_registration_that_is_refused_leaves_nothing(store: Store, catalogue: Catalogue) -> None:
    store.register("cdc.shop.orders-value", record({"name": "a", "type": "int"}))
    changes = catalogue.history.changes()
    with pytest.raises(Exception, match="incompatible"):
        store.register("cdc.shop.orders-value", record({"name": "a", "type": "string"}))
    assert catalogue.history.changes() == changes
    assert len(catalogue.topics.schemas("cdc.shop.orders")) == 1


def test_what_is_deleted_is_disabled_and_comes_back(store: Store, catalogue: Catalogue) -> None:
    for name in ("a", "b"):
        store.register("cdc.shop.orders-value", record({"name": name, "type": ["null", "int"], "default": None}))
    store.delete_version("cdc.shop.orders-value", "2", permanent=False)
    assert [schema.status for schema in catalogue.topics.schemas("cdc.shop.orders")] == [
        Status.READ_WRITE,
        Status.DISABLED,
    ]
    store.delete_subject("cdc.shop.orders-value", permanent=False)
    assert {schema.status for schema in catalogue.topics.schemas("cdc.shop.orders")} == {Status.DISABLED}
    again = store.register("cdc.shop.orders-value", record({"name": "a", "type": ["null", "int"], "default": None}))
    assert catalogue.topics.latest_schema("cdc.shop.orders").schema_id == again.schema_id


def test_any_subject_of_the_registry_is_taken(store: Store, catalogue: Catalogue) -> None:
    for subject in ("a/b-value", "x" * 300 + "-value", "Ünï.a.b-key", "only.a.Record"):
        store.register(subject, '"string"')
    assert catalogue.topics.every() == []


def test_the_elements_of_a_change_envelope_are_the_columns(store: Store, catalogue: Catalogue) -> None:
    address = {
        "type": "record",
        "name": "Address",
        "fields": [{"name": "street", "type": "string", "doc": "with number"}],
    }
    row = {
        "type": "record",
        "name": "Value",
        "fields": [
            {"name": "id", "type": "int", "cqlType": "int"},
            {"name": "home", "type": ["null", address], "default": None},
            {"name": "work", "type": ["null", "Address"], "default": None},
            {"name": "tags", "type": {"type": "array", "items": "string"}, "doc": "free words"},
            {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        ],
    }
    envelope = {
        "type": "record",
        "name": "Envelope",
        "namespace": "cdc.shop.orders",
        "fields": [
            {"name": "before", "type": ["null", row], "default": None},
            {"name": "after", "type": ["null", "Value"], "default": None},
            {"name": "source", "type": "string"},
            {"name": "op", "type": "string"},
        ],
    }
    store.register("cdc.shop.orders-key", record({"name": "id", "type": "int"}))
    schema_id = store.register("cdc.shop.orders-value", json.dumps(envelope)).schema_id
    found = catalogue.schemas.elements(schema_id)
    assert [(element.path, element.type, element.is_nullable, element.doc) for element in found] == [
        ("id", "int", False, None),
        ("home", "record Address", True, None),
        ("home.street", "string", False, "with number"),
        ("work", "Address", True, None),
        ("work.street", "string", False, "with number"),
        ("tags", "array<string>", False, "free words"),
        ("at", "long (timestamp-millis)", False, None),
    ]
    assert [element.path for element in found if element.is_key] == ["id"]
    assert found == catalogue.schemas.of_source("cdc.shop", "orders")
