"""Docs and personal data of fields, in DuckDB; and what the catalogue's answers mean."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from cdc_common.clients.registry.errors import RegistryRequestError
from cdc_common.clients.registry.views import Element
from tests.support.warehouse.marks_checks import check_comments, check_marks
from warehouse.tables.marks import Mark, SchematizerCatalogue

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.support.warehouse.scene import Shop, Warehouse


@pytest.fixture
def read(warehouse: Warehouse) -> Callable[[], dict[str, str | None]]:
    def comments() -> dict[str, str | None]:
        statement = "SELECT column_name, comment FROM duckdb_columns() WHERE table_name = 'orders'"
        found = warehouse.loader.connection.run(f"{statement} AND column_name NOT LIKE '\\_%' ESCAPE '\\'")
        warehouse.loader.connection.release()
        return dict(found)

    return comments


def test_personal_fields(shop: Shop, warehouse: Warehouse, read: Callable[[], dict[str, str | None]]) -> None:
    check_marks(shop, warehouse, read)


def test_comments(shop: Shop, warehouse: Warehouse, read: Callable[[], dict[str, str | None]]) -> None:
    check_comments(shop, warehouse, read)


class Client:
    """Answers with elements, or with an error."""

    def __init__(self, found: list[Element] | RegistryRequestError) -> None:
        self._found = found
        self.asked: list[str | None] = []
        self.unknown: set[str] = set()

    def elements(self, _schema_id: int, topic: str | None) -> list[Element]:
        self.asked.append(topic)
        if topic in self.unknown:
            raise RegistryRequestError("no", status=404, word="not-found")
        if isinstance(self._found, RegistryRequestError):
            raise self._found
        return self._found


def element(path: str, doc: str | None, *, is_pii: bool) -> Element:
    facts: dict[str, Any] = {"type": "string", "source_type": None, "is_nullable": True, "is_key": False}
    return Element(path=path, doc=doc, owner=None, is_pii=is_pii, field_id=None, **facts)


def catalogue(found: list[Element] | RegistryRequestError) -> SchematizerCatalogue:
    return SchematizerCatalogue(Client(found))  # type: ignore[arg-type] # a stand-in


def test_a_field_with_a_personal_field_in_it_is_personal() -> None:
    found = [
        element("home", "Where they live.", is_pii=False),
        element("home.street", "Street.", is_pii=True),
        element("joined", None, is_pii=False),
        element("friends", "Whom they know.", is_pii=False),
        element("friends[].name", None, is_pii=True),
        element("notes{}.text", None, is_pii=True),
    ]
    assert catalogue(found).marks(1, "topic") == {
        "home": Mark("Where they live.", is_personal=True),
        "joined": Mark("", is_personal=False),
        "friends": Mark("Whom they know.", is_personal=True),
        "notes": Mark("", is_personal=True),
    }


def test_marks_are_those_of_the_topic() -> None:
    """Two topics may have the same schema, and only one of them personal data in it."""
    client = Client([element("name", None, is_pii=True)])
    made = SchematizerCatalogue(client)  # type: ignore[arg-type] # a stand-in
    assert made.marks(1, "pii-a")["name"].is_personal
    assert client.asked == ["pii-a"]
    client.unknown = {"b"}
    assert made.marks(1, "b")["name"].is_personal, "of a topic that the registry does not know: any other's"
    assert client.asked == ["pii-a", "b", None]


@pytest.mark.parametrize(("status", "word"), [(404, "http"), (404, "not-found"), (405, "405"), (501, "501")])
def test_a_registry_without_a_catalogue_has_no_marks(status: int, word: str) -> None:
    assert catalogue(RegistryRequestError("no", status=status, word=word)).marks(1, "topic") == {}


@pytest.mark.parametrize(("status", "word"), [(401, "http"), (403, "forbidden"), (500, "http"), (None, "unreachable")])
def test_a_catalogue_that_does_not_answer_stops_the_table(status: int | None, word: str) -> None:
    """Nothing is loaded before it is known whether it is personal."""
    with pytest.raises(RegistryRequestError):
        catalogue(RegistryRequestError("no", status=status, word=word)).marks(1, "topic")
