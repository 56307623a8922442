"""What full-text search must find, in whichever database."""

from __future__ import annotations

from typing import TYPE_CHECKING

from schematizer.model.record_tables import About
from tests.support.schematizer.watson_data import BY, NAMESPACE, TABLES, envelope

if TYPE_CHECKING:
    from schematizer.catalogue.service import Catalogue
    from schematizer.confluent.store import Store


def check_search(store: Store, catalogue: Catalogue) -> None:
    """On a catalogue that watson_data has filled."""

    def find(query: str) -> list[str]:
        return [f"{each.about.value} {each.name}" for each in catalogue.search.find(query)]

    assert find("tax") == ["field total"]
    assert find("TAX inclu") == ["field total"]
    assert find("tax zeppelin") == []
    assert find("voucher") == ["field total"]
    assert find("orders total") == ["field total"]
    assert sorted(find("finance")) == ["field total", "source orders"]
    assert sorted(find("warehouse")[:2]) == ["data-target warehouse", "field warehouse"]
    assert find("customer")[0] == "field customer"
    assert find("cdc.shop.orders")[0] == "topic cdc.shop.orders"
    assert set(find("personal")) == {"field customer", "field name", "field email"}
    assert find("orders")[0] == "source orders"
    assert "voucher" in next(iter(catalogue.search.find("voucher"))).snippet
    assert catalogue.search.find("shop", may_see=lambda namespace, _: namespace != NAMESPACE) == []

    _follow_changes(store, catalogue)


def _follow_changes(store: Store, catalogue: Catalogue) -> None:
    def find(query: str) -> list[str]:
        return [f"{each.about.value} {each.name}" for each in catalogue.search.find(query)]

    source = catalogue.sources.get(NAMESPACE, "stock")
    note = catalogue.notes.add(About.SOURCE, source.id, "Ask the zeppelin.", by=BY)
    assert find("zeppelin") == ["source stock"]
    catalogue.notes.change(note.id, "Ask the airship.", by=BY)
    assert (find("zeppelin"), find("airship")) == ([], ["source stock"])
    catalogue.notes.remove(note.id, by=BY)
    catalogue.tags.put("dirigible", About.SOURCE, source.id, by=BY)
    assert (find("airship"), find("dirigible")) == ([], ["source stock"])
    catalogue.tags.remove("dirigible", About.SOURCE, source.id, by=BY)
    assert find("dirigible") == []
    catalogue.documentation.describe_field(NAMESPACE, "stock", "amount", "Pieces on the shelf.", None, by=BY)
    assert find("shelf") == ["field amount"]
    schema_id = store.register(
        f"{NAMESPACE}.stock-value", envelope("stock", {**TABLES["stock"], "colour": ("string", "text")})
    ).schema_id
    assert find("colour") == ["field colour"]
    catalogue.notes.add(About.SCHEMA, schema_id, "Approved by the parliament.", by=BY)
    assert find("parliament") == ["source stock"]
    store.delete_version(f"{NAMESPACE}.stock-value", "2", permanent=False)
    assert find("colour") == []
