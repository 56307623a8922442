"""Checks of full-text search in any database."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from cdc_common.clients.registry.kinds import About
from cdc_common.clients.registry.views import DataSource
from schematizer.access import Grants, grant_from_text
from tests.support.schematizer.watson_data import BY, NAMESPACE, TABLES, envelope

if TYPE_CHECKING:
    from schematizer.confluent.store import Store
    from schematizer.service import Catalogue

MANY = 800
TARGETS = {
    "one": ["cdc.shown"],
    "two": ["cdc.shown", "cdc.shownot"],
    "mixed": ["cdc.shown", "cdc.hidden"],
    "none": [],
}
"""Data targets by the namespaces that they read."""


def check_search(store: Store, catalogue: Catalogue) -> None:
    """Check the search of a catalogue that watson_data has filled."""

    def find(query: str) -> list[str]:
        return [f"{hit.about.value} {hit.name}" for hit in catalogue.search.find(query)]

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
    assert "field placed" in find("timestamp")
    assert "field joined" in find("date")
    assert "field price" in find("double")
    _find_near(catalogue)
    assert "voucher" in next(iter(catalogue.search.find("voucher"))).snippet

    _find_for_readers(store, catalogue)
    _follow_changes(store, catalogue)


def _find_near(catalogue: Catalogue) -> None:
    """Check what misspelt words find."""

    def near(query: str, *grants: str) -> tuple[str, str] | None:
        granted = Grants(tuple(map(grant_from_text, grants or ("reader:*",))))
        found = catalogue.search.find_near(query, 5, granted)
        return None if found is None else (found.words, found.found[0].name)

    assert near("custmer") == ("customer", "customer")
    assert near("cutsomer") == ("customer", "customer")
    assert near("vaucher") == ("voucher", "total")
    assert near("ordrs totl") == ("orders total", "total")
    assert near("wharehouse") == ("warehouse", "warehouse")
    assert near("zeppelin") is None
    assert near("tex") is None, "too short to guess"
    assert near("custmer", "reader:other") is None, "what a login may not read gives no word"


def _find_for_readers(store: Store, catalogue: Catalogue) -> None:
    """Check that hits which a login may not read take no place from others: here 800 better hits."""
    fields = [{"name": f"porcelain_{number}", "type": "int"} for number in range(MANY)]
    store.register("cdc.hidden.dishes-value", json.dumps({"type": "record", "name": "V", "fields": fields}))
    for namespace in ("cdc.shown", "cdc.shownot", "cdc_shown"):
        catalogue.namespaces.add(namespace, None, "Cups of porcelain.", by=BY)
    for target, namespaces in TARGETS.items():
        catalogue.data_targets.put(target, "porcelain", "address", None, None, by=BY)
        reads = [DataSource(namespace=namespace) for namespace in namespaces]
        catalogue.data_targets.put_group(target, target, reads, by=BY)

    def find(*grants: str) -> set[str]:
        granted = Grants(tuple(map(grant_from_text, grants)))
        return {hit.name for hit in catalogue.search.find("porcelain", 50, granted)}

    assert all(name.startswith("porcelain_") for name in find("reader:*"))
    assert len(find("reader:*")) == 50
    assert find("reader:cdc.shown") == {"cdc.shown", "one"}
    assert find("writer:cdc.shown", "admin:cdc.shownot") == {"cdc.shown", "cdc.shownot", "one", "two"}
    assert find("reader:cdc_shown") == {"cdc_shown"}
    assert find("reader:cdc.shown.*", "reader:CDC.shown", "reader:cdc") == set()
    assert find("reader:cdc.*") == find("reader:*")
    assert find() == set()


def _follow_changes(store: Store, catalogue: Catalogue) -> None:
    def find(query: str) -> list[str]:
        return [f"{hit.about.value} {hit.name}" for hit in catalogue.search.find(query)]

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
