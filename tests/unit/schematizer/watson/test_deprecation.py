"""A deprecated source: its pages say so, and it works as before."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from schematizer.access import Role
from schematizer.errors import CatalogueError
from tests.support.schematizer.watson_data import BY, NAMESPACE

if TYPE_CHECKING:
    from tests.support.schematizer.watson import Watson

ORDERS = f"/sources/{NAMESPACE}/orders"


def test_a_source_is_deprecated_with_a_successor(watson: Watson) -> None:
    assert "Deprecated" not in watson.page(ORDERS)
    reason, successor = "It has <b>no</b> lines.", f"{NAMESPACE}/stock"
    assert watson.send(f"{ORDERS}/deprecation", reason=reason, successor=successor).endswith(ORDERS)
    for page in (watson.page(ORDERS), watson.page(f"/topics/{NAMESPACE}.orders")):
        assert "It has &lt;b&gt;no&lt;/b&gt; lines." in page
        assert f'<a href="/watson/sources/{NAMESPACE}/stock">{NAMESPACE}/stock</a> instead.' in page
    assert "deprecated" in watson.page(f"/namespaces/{NAMESPACE}")
    assert "Deprecated" in watson.page("/changes")
    since = watson.catalogue.sources.get(NAMESPACE, "orders").deprecation
    watson.send(f"{ORDERS}/deprecation", reason="Another reason.")
    found = watson.catalogue.sources.get(NAMESPACE, "orders").deprecation
    assert since is not None
    assert found is not None
    assert (found.reason, found.successor, found.since) == ("Another reason.", None, since.since)
    watson.send(f"{ORDERS}/deprecation")
    assert watson.catalogue.sources.get(NAMESPACE, "orders").deprecation is None
    assert "Deprecated" not in watson.page(ORDERS)
    assert watson.catalogue.topics.latest_schema(f"{NAMESPACE}.orders") is not None


@pytest.mark.parametrize("successor", [f"{NAMESPACE}/orders", f"{NAMESPACE}/none", "stock", ""])
def test_a_successor_is_another_source(watson: Watson, successor: str) -> None:
    with pytest.raises(CatalogueError, match="not another source"):
        watson.catalogue.deprecations.deprecate(NAMESPACE, "orders", "Old.", successor, by=BY)
    assert watson.catalogue.sources.get(NAMESPACE, "orders").deprecation is None


def test_a_deprecation_has_a_reason(watson: Watson) -> None:
    with pytest.raises(CatalogueError, match="no reason"):
        watson.catalogue.deprecations.deprecate(NAMESPACE, "orders", " ", None, by=BY)


def test_only_writers_deprecate_and_no_one_learns_what_they_may_not_read(watson: Watson) -> None:
    watson.catalogue.sources.add("hidden", "there", None, None, by=BY)
    watson.access.namespaces = (NAMESPACE,)
    for successor in ("hidden/there", "hidden/none"):
        page = watson.send(f"{ORDERS}/deprecation", 403, reason="Old.", successor=successor)
        assert "not another source" not in page
    watson.access.role = Role.READER
    watson.send(f"{ORDERS}/deprecation", 403, reason="Old.")
    assert "Deprecate</summary>" not in watson.page(ORDERS)


def test_by_the_rest_interface(watson: Watson) -> None:
    path = f"/api/v1/namespaces/{NAMESPACE}/sources/orders"
    body = {"reason": "Old.", "successor": f"{NAMESPACE}/stock"}
    answer = watson.client.put(f"{path}/deprecation", json=body).json()
    assert answer["deprecation"] | {"since": None} == {**body, "since": None}
    assert watson.client.get(path).json()["deprecation"]["successor"] == f"{NAMESPACE}/stock"
    assert watson.client.delete(f"{path}/deprecation").json()["deprecation"] is None
    assert watson.client.put(f"{path}/deprecation", json={"reason": ""}).status_code == 422
