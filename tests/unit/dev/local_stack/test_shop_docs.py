"""The documentation of the demo's tables: a search finds every table and field by a word of it."""

from __future__ import annotations

import urllib.request
from typing import TYPE_CHECKING

import pytest

from cdc_common.errors.codes import CdcError, Code
from dev.local_stack.demo import shop, shop_docs
from tests.support.schematizer.registry_process import Registry

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

TABLES = [statement for statement in shop.SCHEMA if statement.startswith("CREATE TABLE")]
TYPES = [f"{statement};" for statement in shop.SCHEMA if statement.startswith("CREATE TYPE")]


@pytest.fixture
def registry(tmp_path: Path) -> Iterator[Registry]:
    """Yield a registry with the demo's tables."""
    running = Registry(tmp_path / "registry.db").start()
    for statement in TABLES:
        body = {"format": "cql", "text": "\n".join([*TYPES, statement])}
        made = running.call("POST", "/api/v1/namespaces/cdc.shop/schemas", body)
        assert made.status == 200, made.body
    yield running
    assert running.stop() == 0


def test_the_tables_are_documented_and_found(registry: Registry) -> None:
    shop_docs.describe(registry.url, "cdc")
    for table, said in shop_docs.DOCS.items():
        source = registry.call("GET", f"/api/v1/namespaces/cdc.shop/sources/{table}").body
        assert (source["doc"], source["owner"]) == (said["doc"], said["owner"])
        elements = registry.call("GET", f"/api/v1/namespaces/cdc.shop/sources/{table}/elements").body
        docs = {element["path"]: element["doc"] for element in elements}
        assert {path: docs.get(path) for path in said["fields"]} == {
            path: field["doc"] for path, field in said["fields"].items()
        }
    for words, place in (("value added tax", "orders/fields/total"), ("pieces shelf", "stock/fields/amount")):
        address = f"{registry.url}/watson/search?q={words.replace(' ', '+')}"
        with urllib.request.urlopen(address, timeout=30) as answer:  # noqa: S310 - http
            assert f"/watson/sources/cdc.shop/{place}" in answer.read().decode(), words


def test_a_registry_that_refuses_is_an_error(registry: Registry) -> None:
    with pytest.raises(CdcError) as caught:
        shop_docs.describe(registry.url, "no name of a topic")
    assert caught.value.code is Code.REGISTRY_REFUSED
