"""Full-text search: what is found, in which order, and that the index follows every change."""

from __future__ import annotations

import json
from time import process_time
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import text

from cdc_common.clients.registry.kinds import About
from schematizer.catalogue.words import first_match, name_words, text_words, words
from tests.support.schematizer.watson_data import BY, NAMESPACE, envelope
from tests.support.schematizer.watson_search import check_search

if TYPE_CHECKING:
    from schematizer.model.database import Database
    from tests.support.schematizer.watson import Watson


def test_search_on_sqlite(watson: Watson) -> None:
    check_search(watson.store, watson.catalogue)


def test_sqlites_index_is_what_the_documents_say(watson: Watson, database: Database) -> None:
    """This holds after changes and removals: FTS5 compares its index with the table."""
    check_search(watson.store, watson.catalogue)
    database.write(
        lambda connection: connection.execute(
            text("INSERT INTO search_index (search_index, rank) VALUES ('integrity-check', 1)")
        )
    )


def test_records_of_a_union_may_have_the_same_fields(watson: Watson) -> None:
    some = [{"type": "record", "name": name, "fields": [{"name": "zeppelin", "type": "int"}]} for name in ("A", "B")]
    schema = {"type": "record", "name": "V", "fields": [{"name": "either", "type": some}]}
    watson.store.register(f"{NAMESPACE}.flights-value", json.dumps(schema))
    assert [document.name for document in watson.catalogue.search.find("zeppelin")] == ["either.zeppelin"]


def test_a_catalogue_without_documents_gets_them(watson: Watson, database: Database) -> None:
    """A restored backup has none."""
    found = [watson.catalogue.search.find(query) for query in ("tax", "shop", "warehouse")]
    database.write(lambda connection: connection.execute(text("DELETE FROM search_documents")))
    assert watson.catalogue.search.find("tax") == []
    watson.catalogue.search.build()
    assert [watson.catalogue.search.find(query) for query in ("tax", "shop", "warehouse")] == found
    database.write(lambda connection: connection.execute(text("DELETE FROM search_documents WHERE about = 'field'")))
    watson.catalogue.search.build()
    assert watson.catalogue.search.find("tax") == []


def test_what_is_refused_is_not_found(watson: Watson) -> None:
    """The documents are written in the transaction of the change."""
    with pytest.raises(Exception, match="incompatible"):
        watson.store.register(f"{NAMESPACE}.stock-value", envelope("stock", {"amount": ("string", "zeppelin")}))
    source = watson.catalogue.sources.get(NAMESPACE, "stock")
    with pytest.raises(Exception, match="note"):
        watson.catalogue.notes.add(About.SOURCE, source.id, " ", by=BY)
    assert watson.catalogue.search.find("zeppelin") == []


@pytest.mark.parametrize("query", ["", " ", '"', "*", "tax OR", "NEAR(", "a:b'c\\", "-", "\x00", "(" * 300, "x" * 5000])
def test_no_query_is_an_error(shown: Watson, query: str) -> None:
    assert isinstance(shown.catalogue.search.find(query), list)
    shown.page("/search?q=" + "".join(f"%{byte:02x}" for byte in query[:400].encode()))


def test_words() -> None:
    assert words("orderTotal_net, Größe: ÉTÉ 3.14") == ["order", "total", "net", "grosse", "ete", "3", "14"]
    assert name_words("order_total") == "order total ordertotal"
    assert name_words("cdc.shop.orders") == "cdc shop orders"
    assert first_match("a b Größe", ["gros"]) == 4
    assert first_match("a b", ["z"]) == 0


def test_a_long_text_is_searched_from_its_beginning_on(watson: Watson) -> None:
    """A page has 50 results: to look for the word in 4 MB of each took a minute and a half."""
    watson.catalogue.sources.describe(NAMESPACE, "stock", None, "some words " * 300_000, by=BY)
    started = process_time()
    [found, *_] = watson.catalogue.search.find("stock")
    assert found.snippet.startswith("some words some words")
    assert process_time() - started < 0.7
    watson.catalogue.sources.describe(NAMESPACE, "stock", None, "a" * 199_990 + " zeppelin", by=BY)
    assert watson.catalogue.search.find("zeppelin") != []


@given(st.text(max_size=60))
def test_words_of_words_are_the_same(value: str) -> None:
    """The words that are stored are those that are asked for: the databases only ever see such words."""
    assert words(" ".join(words(value))) == words(value)
    assert all(word.isalnum() for word in words(value))
    assert text_words(value).split() == words(value)
