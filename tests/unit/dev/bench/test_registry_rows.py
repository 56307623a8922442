"""The rows that the benchmark of the registry writes in bulk are those that registrations leave."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlalchemy import text

from dev.bench import registry_rows as rows
from schematizer.catalogue.rules import Rules
from schematizer.confluent.store import Store
from schematizer.model.database import Database, opened
from schematizer.registration.mirror import Mirror
from schematizer.service import Catalogue

if TYPE_CHECKING:
    from pathlib import Path

COLUMNS = {
    "schemas": "id, digest, text",
    "versions": "subject, version, schema_id, deleted",
    "namespaces": "id, name",
    "sources": "id, namespace_id, name",
    "topics": "id, name, source_id, kind, status, pii",
    "topic_schemas": "id, topic_id, part, schema_id, status, format, primary_key",
    "elements": "schema_id, position, path, type, source_type, is_nullable, doc",
    "search_documents": "about, namespace, source, name, text, name_words, text_words",
}


def content(database: Database, table: str) -> list[tuple[Any, ...]]:
    query = text(f"SELECT {COLUMNS[table]} FROM {table}")
    return database.read(lambda connection: sorted(map(tuple, connection.execute(query)), key=repr))


def test_rows_are_those_of_registrations(tmp_path: Path) -> None:
    count = 2 * rows.PER_TOPIC + 5
    with (
        opened(f"sqlite:///{tmp_path}/registered.db") as registered,
        opened(f"sqlite:///{tmp_path}/filled.db") as filled,
    ):
        store, catalogue = Store(registered, Mirror()), Catalogue(filled, Rules())
        for number in range(count):
            store.register(rows.subject(number), rows.schema(number))
        rows.fill(filled, count)
        for table in COLUMNS:
            assert content(filled, table) == content(registered, table), table
        assert len(catalogue.search.find("own_24")) == 1
