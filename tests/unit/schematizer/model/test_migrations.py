"""The tables of a database: made from nothing, or from what a registry without a catalogue left."""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING

import pytest
from sqlalchemy import text

from cdc_common.errors.codes import CdcError, Code
from schematizer.catalogue.rules import Rules
from schematizer.confluent.store import Store
from schematizer.model.database import Database
from schematizer.registration.mirror import Mirror, adopt
from schematizer.service import Catalogue
from tests.support.schematizer.table_differences import table_differences

if TYPE_CHECKING:
    from pathlib import Path

BEFORE = """
CREATE TABLE schemas (id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, digest VARCHAR(64) NOT NULL UNIQUE,
    text TEXT NOT NULL);
CREATE TABLE versions (subject VARCHAR(512) NOT NULL, version INTEGER NOT NULL, schema_id INTEGER NOT NULL,
    deleted BOOLEAN NOT NULL, PRIMARY KEY (subject, version), FOREIGN KEY(schema_id) REFERENCES schemas (id));
CREATE INDEX ix_versions_schema_id ON versions (schema_id);
CREATE TABLE subject_settings (subject VARCHAR(512) NOT NULL PRIMARY KEY, compatibility VARCHAR(32), mode VARCHAR(32));
INSERT INTO subject_settings (subject, compatibility) VALUES ('', 'NONE');
"""
"""The tables that the registry made before it had migrations."""


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'registry.db'}"


def test_the_migrations_make_the_tables_of_the_model(url: str) -> None:
    database = Database(url)
    assert database.read(table_differences) == []
    database.close()


def test_a_database_from_before_the_migrations_is_kept(tmp_path: Path, url: str) -> None:
    schemas = {
        "cdc.shop.orders-value": '{"type":"record","name":"V","fields":[{"name":"a","type":"int"}]}',
        "cdc.shop.orders-key": '{"type":"record","name":"K","fields":[{"name":"a","type":"int"}]}',
        "cdc.raw.shop.orders-value": '{"type":"record","name":"R","fields":[]}',
        "a.record.Name": '"string"',
    }
    old = sqlite3.connect(tmp_path / "registry.db")
    old.executescript(BEFORE)
    for number, (subject, schema) in enumerate(schemas.items(), 7):
        old.execute("INSERT INTO schemas VALUES (?, ?, ?)", (number, f"{number:064}", schema))
        old.execute("INSERT INTO versions VALUES (?, 1, ?, ?)", (subject, number, False))
    old.commit()
    old.close()

    database, mirror = Database(url), Mirror()
    assert adopt(database, mirror) == 3
    assert adopt(database, mirror) == 0
    catalogue, store = Catalogue(database, Rules()), Store(database, mirror)
    [source] = catalogue.sources.every()
    assert (source.namespace, source.name) == ("cdc.shop", "orders")
    assert sorted(source.topics) == ["cdc.raw.shop.orders", "cdc.shop.orders"]
    used = {(schema.part.value, schema.schema_id) for schema in catalogue.topics.schemas("cdc.shop.orders")}
    assert used == {("value", 7), ("key", 8)}
    assert [element.path for element in catalogue.schemas.elements(7)] == ["a"]
    assert store.level("", or_global=True).name == "NONE"
    assert store.register("new-value", '"bytes"').schema_id == 11
    database.close()


def test_tables_of_a_newer_program_are_refused(url: str) -> None:
    database = Database(url)
    database.write(lambda connection: connection.execute(text("UPDATE alembic_version SET version_num = '9999'")))
    database.close()
    with pytest.raises(CdcError, match="version 9999, which is newer") as caught:
        Database(url)
    assert caught.value.code is Code.REGISTRY_DATABASE


def test_a_migration_that_fails_changes_nothing(tmp_path: Path, url: str) -> None:
    """A table that stands in the way is an error of the second migration; the first is undone with it."""
    file = sqlite3.connect(tmp_path / "registry.db")
    file.execute("CREATE TABLE tags (id INTEGER)")
    file.commit()
    file.close()
    with pytest.raises(CdcError, match="tags"):
        Database(url)
    file = sqlite3.connect(tmp_path / "registry.db")
    assert [name for (name,) in file.execute("SELECT name FROM sqlite_master WHERE type = 'table'")] == ["tags"]
    file.close()
