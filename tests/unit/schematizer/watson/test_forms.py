"""The effects of forms, and who may use them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from cdc_common.clients.registry.kinds import About, Status
from schematizer.access import Role
from tests.support.schematizer.watson_data import NAMESPACE

if TYPE_CHECKING:
    from tests.support.schematizer.watson import Watson

TOTAL = f"/sources/{NAMESPACE}/orders/fields/total"


def test_docs_and_owners(watson: Watson) -> None:
    assert watson.send(f"/namespaces/{NAMESPACE}", owner="", doc="A\r\nB ") == f"/watson/namespaces/{NAMESPACE}"
    namespace = watson.catalogue.namespaces.get(NAMESPACE)
    assert (namespace.owner, namespace.doc) == (None, "A\nB")
    watson.send(f"/sources/{NAMESPACE}/stock", owner="team-store", doc="What lies where.")
    source = watson.catalogue.sources.get(NAMESPACE, "stock")
    assert (source.owner, source.doc) == ("team-store", "What lies where.")
    watson.send("/data-targets/warehouse", owner="team-x", doc="Y")
    target = watson.catalogue.data_targets.get("warehouse")
    assert (target.owner, target.doc, target.kind) == ("team-x", "Y", "redshift")
    assert watson.catalogue.history.changes()[-1].changed_by == "eve"


def test_a_field_keeps_its_flag_and_the_others_their_docs(watson: Watson) -> None:
    before = watson.catalogue.documentation.get(NAMESPACE, "orders").fields
    path = f"/sources/{NAMESPACE}/orders/fields/customer"
    assert watson.send(path, owner="team-a", doc="Who.") == f"/watson{path}"
    after = watson.catalogue.documentation.get(NAMESPACE, "orders").fields
    assert (after["customer"].doc, after["customer"].owner, after["customer"].pii) == ("Who.", "team-a", True)
    assert {**after, "customer": None} == {**before, "customer": None}
    assert "Who." in watson.page(path)


def test_a_field_that_does_not_exist_is_refused(watson: Watson) -> None:
    watson.send(f"/sources/{NAMESPACE}/orders/fields/none", 404, doc="x")
    assert "none" not in watson.catalogue.documentation.get(NAMESPACE, "orders").fields


def test_a_page_renders_only_so_much(watson: Watson) -> None:
    """Of ten long notes the page shows the last ones as they are written."""
    source = watson.catalogue.sources.get(NAMESPACE, "orders")
    for _ in range(10):
        watson.catalogue.notes.add(About.SOURCE, source.id, "*word* " * 1_000, by="x")
    page = watson.page(f"/sources/{NAMESPACE}/orders")
    assert page.count("<em>word</em>") == 5 * 1_000
    assert page.count("<pre>*word* *word*") == 5


def test_notes_are_added_changed_and_removed(watson: Watson) -> None:
    source = watson.catalogue.sources.get(NAMESPACE, "stock")
    link = watson.send("/notes", about="source", about_id=source.id, text="Counted *nightly*.")
    assert link == f"/watson/sources/{NAMESPACE}/stock"
    [note] = watson.catalogue.notes.about(About.SOURCE, source.id)
    assert (note.author, note.text) == ("eve", "Counted *nightly*.")
    assert "<em>nightly</em>" in watson.page(f"/sources/{NAMESPACE}/stock")
    watson.send(f"/notes/{note.id}", text="Counted **hourly**.")
    assert "<strong>hourly</strong>" in watson.page(f"/sources/{NAMESPACE}/stock")
    assert watson.send(f"/notes/{note.id}/remove") == link
    assert watson.catalogue.notes.about(About.SOURCE, source.id) == []
    watson.send(f"/notes/{note.id}/remove", 404)
    watson.send("/notes", 422, about="source", about_id=source.id, text="  ")


def test_a_field_without_docs_takes_notes_and_tags(watson: Watson) -> None:
    """Its documentation is made for them: until then it has no id."""
    path = f"/sources/{NAMESPACE}/stock/fields/price"
    place: dict[str, Any] = {
        "about": "field",
        "about_id": 0,
        "namespace": NAMESPACE,
        "source": "stock",
        "path": "price",
    }
    assert 'name="path" value="price"' in watson.page(path)
    assert watson.send("/notes", **place, text="In euros.") == f"/watson{path}"
    assert watson.send("/tags", **place, name=" money ") == f"/watson{path}"
    shown = watson.page(path)
    assert "In euros." in shown
    assert "/watson/tags/money" in shown
    watson.send("/notes", 404, **{**place, "path": "none"}, text="x")


def test_tags_of_any_letters(watson: Watson) -> None:
    source = watson.catalogue.sources.get(NAMESPACE, "stock")
    name = 'a/b "c" ü?'
    watson.send("/tags", about="source", about_id=source.id, name=name)
    assert name in watson.catalogue.tags.about(About.SOURCE, source.id)
    assert "stock" in watson.page("/tags/a%2Fb%20%22c%22%20%C3%BC%3F")
    watson.send("/tags/remove", about="source", about_id=source.id, name=name)
    assert watson.catalogue.tags.about(About.SOURCE, source.id) == []
    watson.send("/tags", 422, about="source", about_id=source.id, name="x" * 65)


def test_statuses(watson: Watson) -> None:
    assert watson.send("/topics/cdc.shop.stock/status", status="disabled") == "/watson/topics/cdc.shop.stock"
    assert watson.catalogue.topics.get("cdc.shop.stock").status is Status.DISABLED
    schema_id = watson.catalogue.topics.latest_schema("cdc.shop.orders").schema_id
    watson.send(f"/topics/cdc.shop.orders/schemas/{schema_id}/status", status="read-only")
    assert watson.catalogue.topics.latest_schema("cdc.shop.orders").status is Status.READ_ONLY
    watson.send("/topics/cdc.shop.stock/status", 422, status="strange")


def forms(watson: Watson) -> dict[str, dict[str, Any]]:
    source = watson.catalogue.sources.get(NAMESPACE, "orders")
    total = next(
        element for element in watson.catalogue.schemas.of_source(NAMESPACE, "orders") if element.path == "total"
    )
    [note] = watson.catalogue.notes.about(About.FIELD, total.field_id or 0)
    return {
        f"/namespaces/{NAMESPACE}": {"doc": "x"},
        f"/sources/{NAMESPACE}/orders": {"doc": "x"},
        TOTAL: {"doc": "x"},
        "/data-targets/warehouse": {"doc": "x"},
        "/notes": {"about": "source", "about_id": source.id, "text": "x"},
        f"/notes/{note.id}": {"text": "x"},
        f"/notes/{note.id}/remove": {},
        "/tags": {"about": "source", "about_id": source.id, "name": "x"},
        "/tags/remove": {"about": "source", "about_id": source.id, "name": "finance"},
        "/topics/cdc.shop.orders/status": {"status": "disabled"},
        "/topics/cdc.shop.orders/schemas/3/status": {"status": "disabled"},
    }


def test_a_reader_changes_nothing(watson: Watson) -> None:
    before = watson.catalogue.history.changes()
    watson.access.role = Role.READER
    for path, form in forms(watson).items():
        assert "Not allowed" in watson.send(path, 403, **form)
    assert watson.catalogue.history.changes() == before


def test_a_writer_of_another_namespace_changes_nothing(watson: Watson) -> None:
    before = watson.catalogue.history.changes()
    watson.access.role, watson.access.namespaces = Role.WRITER, ("cdc.other",)
    for path, form in forms(watson).items():
        watson.send(path, 403, **form)
    assert watson.catalogue.history.changes() == before


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_forms_of_other_sites_are_refused(watson: Watson, site: str) -> None:
    before = watson.catalogue.history.changes()
    for path, form in forms(watson).items():
        text = watson.send(path, 403, headers={"Sec-Fetch-Site": site}, **form)
        assert "another site" in text
    assert watson.catalogue.history.changes() == before
    watson.send(TOTAL, headers={"Sec-Fetch-Site": "same-origin"}, doc="y")


def test_each_form_carries_the_token_and_is_checked(watson: Watson) -> None:
    """The place where sessions plug in."""

    class Tokens:
        def token(self, request: object) -> str:  # noqa: ARG002 - Forms'
            return 'secret"token'

        def check(self, request: object, token: str) -> None:  # noqa: ARG002 - as above
            checked.append(token)

    checked: list[str] = []
    other = watson.with_forms(Tokens())
    for path in (f"/sources/{NAMESPACE}/orders", TOTAL, "/topics/cdc.shop.orders", "/unused?days=0", "/tags/finance"):
        text = other.page(path)
        assert text.count('method="post"') == text.count('name="csrf_token" value="secret&#34;token"'), path
    other.send(TOTAL, doc="y", csrf_token="abc")
    other.send(TOTAL, doc="z")
    assert checked == ["abc", ""]
