"""The mode IMPORT: clients choose ids and versions, as tools do that copy a registry."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from cdc_common.clients.registry.kinds import Part
from schematizer.catalogue.rules import Rules
from schematizer.confluent.errors import RegistryError
from schematizer.confluent.store import Given, Store
from schematizer.model.database import Database
from schematizer.model.registry_tables import GLOBAL
from schematizer.registration.mirror import Mirror
from schematizer.service import Catalogue

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SUBJECT = "cdc.shop.orders-value"


def record(*names: str) -> str:
    fields = [{"name": name, "type": "string"} for name in names]
    return json.dumps({"type": "record", "name": "V", "fields": fields})


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    opened = Database(f"sqlite:///{tmp_path / 'registry.db'}")
    yield opened
    opened.close()


@pytest.fixture
def store(database: Database) -> Store:
    made = Store(database, Mirror())
    made.set_mode(GLOBAL, "IMPORT")
    return made


def refused(store: Store, subject: str, text: str, given: Given | None) -> int:
    with pytest.raises(RegistryError) as caught:
        store.register(subject, text, given)
    return caught.value.error_code


def test_ids_and_versions_are_those_that_were_given(store: Store, database: Database) -> None:
    store.register(SUBJECT, record("b"), Given(70, 5))
    store.register(SUBJECT, record("a"), Given(40, 2))
    assert store.register(SUBJECT, record("c"), Given(71)).version == 6
    assert store.versions(SUBJECT, deleted=False, only_deleted=False) == [2, 5, 6]
    assert [store.version(SUBJECT, version, deleted=False).schema_id for version in "256"] == [40, 70, 71]
    assert json.loads(store.schema(40)[0]) == json.loads(record("a"))
    schemas = Catalogue(database, Rules()).topics.schemas("cdc.shop.orders")
    assert sorted(schema.schema_id for schema in schemas if schema.part is Part.VALUE) == [40, 70, 71]


def test_levels_do_not_count_and_repeating_changes_nothing(store: Store) -> None:
    for number in range(2):
        assert store.register(SUBJECT, record("a"), Given(1, 1)).version == 1, number
        assert store.register(SUBJECT, record("b"), Given(2, 2)).version == 2, number
    store.delete_version(SUBJECT, "2", permanent=False)
    assert store.register(SUBJECT, record("b"), Given(2, 2)).version == 2
    assert store.versions(SUBJECT, deleted=False, only_deleted=False) == [1, 2]


def test_what_is_there_is_never_replaced(store: Store) -> None:
    store.register(SUBJECT, record("a"), Given(1, 1))
    assert refused(store, "other", record("b"), Given(1, 1)) == 42205
    assert refused(store, SUBJECT, record("b"), Given(2, 1)) == 42205
    assert refused(store, SUBJECT, record("b"), None) == 42205
    assert store.version(SUBJECT, "1", deleted=False).schema_id == 1
    with pytest.raises(RegistryError, match="not found"):
        store.schema(2)


def test_ids_are_given_in_import_mode_alone(store: Store) -> None:
    store.register(SUBJECT, record("a"), Given(1, 1))
    store.set_mode(GLOBAL, "READWRITE")
    assert refused(store, SUBJECT, record("a", "b"), Given(9, 2)) == 42205
    assert store.register(SUBJECT, record("a"), Given(1)).version == 1
    with pytest.raises(RegistryError, match="existing subjects"):
        store.set_mode(GLOBAL, "IMPORT")
    with pytest.raises(RegistryError, match="existing subjects"):
        store.set_mode(SUBJECT, "IMPORT")
    store.set_mode("other-value", "IMPORT")
    assert store.register("other-value", record("b"), Given(9, 4)).version == 4
    store.set_mode(SUBJECT, "IMPORT", force=True)
    assert store.register(SUBJECT, record("c"), Given(10, 2)).version == 2


def test_new_ids_come_after_those_that_were_given(store: Store) -> None:
    store.register("a", record("a"), Given(500, 1))
    store.register("b", record("b"), Given(100, 1))
    store.set_mode(GLOBAL, "READWRITE")
    assert store.register("c", record("c")).schema_id == 501


def test_one_schema_may_have_several_ids(store: Store, database: Database) -> None:
    """Another registry tells apart what is one schema here, such as another order of attributes."""
    first, again = record("a"), json.dumps(dict(reversed(json.loads(record("a")).items())))
    store.register(SUBJECT, first, Given(7, 1))
    store.register(SUBJECT, again, Given(8, 2))
    store.register("second-value", again, Given(8, 1))
    assert store.schema(7)[0] == store.schema(8)[0]
    assert store.uses(8, deleted=False) == [(SUBJECT, 2), ("second-value", 1)]
    store.set_mode(GLOBAL, "READWRITE")
    assert store.lookup("second-value", first, deleted=False).schema_id == 8
    known = store.register("second-value", first)
    assert (known.version, known.schema_id) == (1, 8)
    assert store.register("third-value", first).schema_id == 7
    assert store.register("second-value", first).given == Given(8, 1)
    backed = Catalogue(database, Rules()).topics.schemas("cdc.shop.orders")
    assert sorted(schema.schema_id for schema in backed) == [7, 8]
