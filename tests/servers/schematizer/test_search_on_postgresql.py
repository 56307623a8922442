"""Full-text search on PostgreSQL's tsvector: the same as on SQLite."""

from __future__ import annotations

import pytest
from sqlalchemy import text

from schematizer.catalogue.rules import Rules
from schematizer.confluent.store import Store
from schematizer.model.database import Database
from schematizer.model.search_tables import POSTGRESQL_VECTOR
from schematizer.registration.mirror import Mirror
from schematizer.service import Catalogue
from tests.support.schematizer import watson_data
from tests.support.schematizer.watson_search import check_search

pytestmark = pytest.mark.servers


def test_search_on_postgresql(url: str) -> None:
    database = Database(url)
    store, catalogue = Store(database, Mirror("pii-")), Catalogue(database, Rules("pii-"))
    watson_data.fill(store, catalogue)
    check_search(store, catalogue)
    for query in ("'", "a & b", "a:*b", "\\", "!(", "x" * 5000, "3.14 1e5 12abc"):
        assert isinstance(catalogue.search.find(query), list)
    assert catalogue.overview.coverage_of_namespaces()
    database.close()


def test_a_query_can_use_the_index(url: str) -> None:
    """The index is of the expression that queries have."""
    database = Database(url)
    query = f"EXPLAIN SELECT id FROM search_documents WHERE {POSTGRESQL_VECTOR} @@ to_tsquery('simple', 'a:*')"
    with database._engine.connect() as connection:
        connection.execute(text("SET enable_seqscan = off"))
        plan = "\n".join(row[0] for row in connection.execute(text(query.replace(":*", "\\:*"))))
    assert "ix_search_documents_words" in plan
    database.close()
