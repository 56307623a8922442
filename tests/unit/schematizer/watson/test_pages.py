"""Every page: its status, what it shows, what it never shows, and its headers."""

from __future__ import annotations

import json
import re
from datetime import timedelta
from html.parser import HTMLParser
from typing import TYPE_CHECKING, Any

import pytest
from sqlalchemy import update

from cdc_common.clients.registry.kinds import About, Status
from cdc_common.clients.registry.views import DataSource, FieldText, Managed, SourceDocumentation
from schematizer.access import Role
from schematizer.measures.measured import Measured
from schematizer.model.base import now
from schematizer.model.record_tables import ChangeRow
from tests.support.schematizer.watson import Watson, watson_over
from tests.support.schematizer.watson_data import FILE, NAMESPACE

if TYPE_CHECKING:
    from schematizer.model.database import Database

PAGES = {
    "/": ["cdc.shop", "The web shop: orders, customers and stock.", "team-shop", "PII"],
    f"/namespaces/{NAMESPACE}": ["orders", "customers", "stock", "5 of 7", "team-checkout"],
    f"/sources/{NAMESPACE}/orders": [
        "value added tax",
        "team-accounts",
        "key",
        "PII",
        "cdc.raw.shop.orders",
        "finance",
    ],
    f"/sources/{NAMESPACE}/orders/fields/total": ["decimal (bytes), may be null", "<strong>not</strong>", "ada"],
    f"/sources/{NAMESPACE}/orders/history": ["Version 2", "added", "lines", "The first: 6 fields."],
    "/topics": ["cdc.shop.stock", "raw", "unknown", "kafka.bootstrap_servers is not set"],
    "/topics/cdc.shop.stock": [f'<a href="https://git.example/topics/{FILE}"', "changelog", "prod", "#logistics"],
    f"/sources/{NAMESPACE}/stock": ["Written in", FILE, "undoes what is changed here"],
    f"/sources/{NAMESPACE}/stock/fields/amount": ["Written in", FILE],
    "/topics?kind=change": ["cdc.shop.stock", "changelog in prod:", FILE],
    "/topics?kind=raw": ["cdc.raw.shop.stock"],
    "/changes": ["New topic", "cdc.shop.orders", "What is different", "by", "Docs", "raw topics too"],
    f"/changes?days=30&namespace={NAMESPACE}&raw=true": ["cdc.raw.shop.stock", "New consumer"],
    "/topics/cdc.shop.orders": ["materializer", "invoice-mailer", "warehouse", "read-write", "unknown"],
    "/schemas/3": ["cdc.shop.orders", "&#34;cqlType&#34;: &#34;bigint&#34;"],
    "/data-targets": ["warehouse", "redshift", "warehouse-loader", "team-bi"],
    "/data-targets/warehouse": ["redshift://warehouse/analytics", "all of", "cdc.shop.customers"],
    "/clients": ["materializer", "team-data", "invoice-mailer", "as invoices"],
    "/tags": ["finance", "2"],
    "/tags/finance": ["orders", "total", "field of cdc.shop/orders"],
    "/api": ["openapi.json", "/api/v1/namespaces/{namespace}/sources", "Sources of a namespace.", "deployments"],
    "/api/topics_topics_get": ["GET /api/v1/topics", "created_since", "query", "list of object", "pii_misplaced"],
    "/unused": ["Everything was used in that time."],
    "/unused?days=0": ["cdc.shop.orders", "Disable"],
    "/search": ["Type a few words"],
    "/search?q=tax": ["total", "value added tax included", "1 result for"],
    "/search?q=custmer": ["Nothing has all of", "custmer", "for “customer”"],
    "/search?q=timestamp": ["placed"],
    "/search?q=tax+zeppelin": ["Nothing has all of"],
}
HOSTILE = """"><script>alert(1)</script><img src=x onerror=alert(1)>'{{ 7 * 7 }}"""
MAX_BYTES = 50_000
LONG_AGO = now() - timedelta(days=20)


class Structure(HTMLParser):
    """The elements of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def named(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.tags if name == tag]


def check_page(text: str) -> None:
    """Every page: nothing runs that is not a file of the registry, one heading, a way out, one search box."""
    structure = Structure(text)
    assert [tag.get("src", "") for tag in structure.named("script")] == [
        match for match in re.findall(r'src="([^"]*)"', text) if "htmx.min.js" in match
    ]
    assert len(structure.named("script")) == 1
    for tag, attributes in structure.tags:
        handlers = [name for name in attributes if name.startswith("on") or name in ("style", "hx-on")]
        assert not handlers, (tag, attributes)
        assert tag not in ("style", "iframe", "object", "img"), tag
        href = attributes.get("href") or ""
        assert re.match(r"(/watson/|/api/v1/openapi.json$|\?|#main|https?://|mailto:)", href) or tag not in (
            "a",
            "link",
        ), href
    assert len(structure.named("h1")) == 1
    assert len([tag for tag in structure.named("input") if tag.get("type") == "search"]) == 1
    assert len(text.encode()) < MAX_BYTES


@pytest.mark.parametrize("path", PAGES)
def test_a_page_shows_what_it_is_about(shown: Watson, path: str) -> None:
    answer = shown.client.get(f"/watson{path}")
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    missing = [words for words in PAGES[path] if words not in answer.text]
    assert not missing, (missing, answer.text)
    check_page(answer.text)


@pytest.mark.parametrize("path", [*PAGES, "/sources/cdc.shop/none", "/nowhere"])
def test_nothing_from_elsewhere_and_nothing_inline_may_run(shown: Watson, path: str) -> None:
    headers = shown.client.get(f"/watson{path}").headers
    policy = dict(part.strip().split(" ", 1) for part in headers["content-security-policy"].split(";"))
    assert policy["default-src"] == "'none'"
    assert policy["script-src"] == policy["style-src"] == policy["form-action"] == "'self'"
    assert policy["frame-ancestors"] == policy["base-uri"] == "'none'"
    assert "unsafe" not in headers["content-security-policy"]
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "same-origin"


def test_change_topics_come_first_and_raw_ones_are_asked_for(shown: Watson) -> None:
    assert "cdc.raw.shop.stock" not in shown.page("/topics")
    assert "cdc.raw.shop.stock" in shown.page("/topics?kind=raw")


def test_what_changed_is_shown_by_day(watson: Watson, database: Database) -> None:
    """The newest first, in the period that was asked for, without raw topics."""
    watson.store.register("cdc.shop.older-value", '{"type":"record","name":"V","fields":[]}')
    older = update(ChangeRow).where(ChangeRow.about.startswith("cdc.shop")).where(ChangeRow.about.contains("older"))
    database.write_session(lambda session: session.execute(older.values(changed_at=LONG_AGO)) and None)
    page = watson.page("/changes")
    assert page.index("<h2") == page.rindex("<h2"), "all of the data was made on one day"
    assert "cdc.shop.older" not in page
    assert "cdc.raw.shop.stock" not in page
    assert f'<a href="/watson/sources/{NAMESPACE}/orders/history">What is different</a>' in page
    month = watson.page("/changes?days=30")
    assert month.index("cdc.shop.orders") < month.index("cdc.shop.older")
    assert f"{LONG_AGO:%Y-%m-%d}" in month
    assert "Nothing in" in watson.page("/changes?days=1&namespace=cdc.none")


@pytest.mark.parametrize("path", ["/", "/topics", "/clients", "/data-targets", "/tags", "/unused", "/search?q=a"])
def test_pages_of_an_empty_registry(empty: Watson, path: str) -> None:
    check_page(empty.page(path))


@pytest.mark.parametrize(
    "path",
    [
        "/namespaces/none",
        f"/sources/{NAMESPACE}/none",
        f"/sources/{NAMESPACE}/orders/fields/none",
        f"/sources/{NAMESPACE}/none/history",
        "/topics/none",
        "/schemas/999",
        "/data-targets/none",
        "/nowhere",
        "/static/none.js",
    ],
)
def test_what_is_not_there_is_said_on_a_page(shown: Watson, path: str) -> None:
    text = shown.page(path, 404)
    assert "Not here" in text
    check_page(text)


@pytest.mark.parametrize("path", ["/schemas/nine", "/topics?kind=strange", "/unused?days=-1", "/?part=x"])
def test_what_cannot_be_read_is_said_on_a_page(shown: Watson, path: str) -> None:
    check_page(shown.page(path, 422))


def test_hostile_names_and_docs_are_text(watson: Watson) -> None:
    """They are text in every place where someone else's words stand."""
    catalogue = watson.catalogue
    fields = {"total": FieldText(doc=HOSTILE, owner=HOSTILE[:200]), "id": FieldText(doc="</td></table>")}
    catalogue.documentation.put(
        NAMESPACE, "orders", SourceDocumentation(doc=HOSTILE, owner=HOSTILE, fields=fields), by="x"
    )
    catalogue.namespaces.describe(NAMESPACE, HOSTILE, HOSTILE, by="x")
    source = catalogue.sources.get(NAMESPACE, "orders")
    catalogue.tags.put(HOSTILE[:64], About.SOURCE, source.id, by=HOSTILE)
    catalogue.notes.add(
        About.SOURCE, source.id, f"# {HOSTILE}\n\n[x](javascript:alert(1)) ![y](http://evil/z.png)", by=HOSTILE
    )
    catalogue.data_targets.put("warehouse", HOSTILE[:60], HOSTILE, HOSTILE, HOSTILE, by="x")
    schema: dict[str, Any] = {"type": "record", "name": "V", "doc": HOSTILE, "fields": []}
    schema["fields"] = [{"name": "a", "type": ["null", "int"], "doc": HOSTILE, "cqlType": HOSTILE}]
    watson.store.register("cdc.evil.stock-value", json.dumps(schema))
    paths = [*PAGES, f"/search?q={'%3Cscript%3Ealert'}", "/tags/%22%3E%3Cscript%3E", "/sources/cdc.evil/stock"]
    paths += ["/sources/cdc.evil/stock/history", "/sources/cdc.evil/stock/fields/a"]
    for path in paths:
        text = watson.page(path)
        check_page(text)
        assert "<script>alert" not in text
        assert "onerror=alert(1)>" not in text.replace("&gt;", "")
        assert "49" not in re.findall(r"'(\d+)", text)
        assert 'href="javascript:' not in text


def test_field_paths_of_lists_and_maps_have_pages(watson: Watson) -> None:
    inner = {"type": "record", "name": "Line", "fields": [{"name": "price", "type": "int", "doc": "In cents."}]}
    fields = [{"name": "lines", "type": {"type": "array", "items": inner}}]
    fields.append({"name": "more", "type": {"type": "map", "values": inner["name"]}})
    watson.store.register("a.b.c-value", json.dumps({"type": "record", "name": "V", "fields": fields}))
    links = [anchor["href"] or "" for anchor in Structure(watson.page("/sources/a.b/c")).named("a")]
    found = [link for link in links if "/fields/" in link]
    assert any("%5B%5D" in link for link in found), found
    for link in found:
        check_page(watson.page(link.removeprefix("/watson")))
    assert "In cents." in watson.page("/sources/a.b/c/fields/lines%5B%5D.price")


def test_long_lists_are_shown_in_parts(watson: Watson) -> None:
    for number in range(60):
        watson.store.register(f"many.of.source{number:03}-value", '"string"')
    first, last = watson.page("/namespaces/many.of"), watson.page("/namespaces/many.of?part=2")
    assert "source000" in first
    assert "source050" not in first
    assert "source059" in last
    assert "Part 2 of 2" in watson.page("/namespaces/many.of?part=9")
    check_page(first)
    check_page(watson.page("/topics"))
    assert "part=2" in watson.page("/topics?kind=change")


def test_a_list_that_is_cut_says_so(watson: Watson) -> None:
    """No one takes a part for the whole."""
    for number in range(120):
        watson.store.register(f"many.of.source{number:03}-value", '"string"')
    watson.catalogue.data_targets.put_group("warehouse", "warehouse-loader", [DataSource(namespace="many.of")], by="x")
    assert "Part 1 of 3" in watson.page("/data-targets/warehouse")
    last = watson.page("/data-targets/warehouse?part=3")
    assert "many.of.source119" in last
    check_page(last)
    schema_id = watson.catalogue.topics.latest_schema("many.of.source000").schema_id
    assert f"And 70 more, by GET /api/v1/schemas/{schema_id}/topics." in watson.page(f"/schemas/{schema_id}")
    inside = {"type": "record", "name": "I", "fields": [{"name": f"f{n}", "type": "int"} for n in range(103)]}
    fields = [{"name": "all", "type": inside}]
    watson.store.register("a.b.c-value", json.dumps({"type": "record", "name": "V", "fields": fields}))
    assert "And 3 more, on the page of the source." in watson.page("/sources/a.b/c/fields/all")
    wider = {"type": "record", "name": "V"}
    for number in range(101):
        named = [{"name": f"f{n}", "type": "int", "default": 0} for n in range(number + 1)]
        watson.store.register("a.b.d-value", json.dumps({**wider, "fields": named}))
    assert "And 1 more, older ones: see the source" in watson.page("/topics/a.b.d")


@pytest.mark.parametrize(
    ("path", "section"),
    [("/", "Namespaces"), ("/topics?kind=change", "Topics"), ("/data-targets", "Data targets"), ("/unused", "Unused")],
)
def test_the_section_that_is_shown_is_marked(shown: Watson, path: str, section: str) -> None:
    """The mark is for those who hear the page."""
    found = re.findall(r'<a href="[^"]*" aria-current="page">([^<]*)</a>', shown.page(path))
    assert found == [section]


def test_a_table_of_many_long_columns_stays_small(watson: Watson) -> None:
    fields = [{"name": f"column_{n:03}", "type": ["null", "string"], "doc": "word " * 400} for n in range(400)]
    schema = json.dumps({"type": "record", "name": "V", "fields": fields})
    schema_id = watson.store.register("wide.of.table-value", schema).schema_id
    for path in ("/sources/wide.of/table", "/sources/wide.of/table?part=4", f"/schemas/{schema_id}", "/search?q=word"):
        check_page(watson.page(path))


class Measuring:
    problem = None

    def of(self, topic: str) -> Measured | None:
        return Measured(2, 12.5, {"warehouse-loader": 1234, "seen-by-kafka": 0}) if topic == "cdc.shop.orders" else None


def test_rates_and_lags_are_shown(database: Database) -> None:
    watson = watson_over(database, Measuring())
    topic = watson.page("/topics/cdc.shop.orders")
    assert "12.5 /s" in topic
    assert "1,234" in topic
    assert "seen-by-kafka" in topic
    source = watson.page(f"/sources/{NAMESPACE}/orders")
    assert "lag 1,234" in source
    assert "fills" in source
    assert "unknown" in watson.page("/topics/cdc.shop.stock")


def test_a_reader_sees_no_forms_and_a_stranger_no_page(watson: Watson) -> None:
    watson.access.role = Role.READER
    for path in PAGES:
        assert 'method="post"' not in watson.page(path), path
    watson.access.role = Role.WRITER
    assert 'method="post"' in watson.page(f"/sources/{NAMESPACE}/orders")
    watson.access.namespaces = ("other",)
    for path in PAGES:
        assert "Not allowed" in watson.page(path, 403), path


def test_what_a_reader_may_not_see_is_in_no_list(watson: Watson) -> None:
    """A data target is shown to readers of all that it reads."""
    watson.store.register("cdc.secret.plans-value", '"string"')
    watson.catalogue.sources.describe("cdc.secret", "plans", "evil", "the tax of the moon", by="x")
    source = watson.catalogue.sources.get("cdc.secret", "plans")
    watson.catalogue.tags.put("finance", About.SOURCE, source.id, by="x")
    watson.catalogue.tags.put("finance", About.DATA_TARGET, watson.catalogue.data_targets.get("warehouse").id, by="x")
    shop, secret = DataSource(namespace=NAMESPACE, source="orders"), DataSource(namespace="cdc.secret")
    watson.catalogue.data_targets.put_group("warehouse", "warehouse-loader", [shop, secret], by="x")
    target, lists = (
        "/watson/data-targets/warehouse",
        ("/", "/topics", "/changes?raw=true", "/search?q=moon", "/tags/finance", "/unused?days=0"),
    )
    for path in lists:
        assert "secret" in watson.page(path), path
    of_targets = ("/search?q=warehouse", "/tags/finance", "/data-targets")
    for path in of_targets:
        assert target in watson.page(path), path
    watson.access.namespaces = (NAMESPACE,)
    for path in lists:
        assert "secret" not in watson.page(path), path
    for path in of_targets:
        assert target not in watson.page(path), path
    hidden = ("/namespaces/cdc.secret", "/sources/cdc.secret/plans", "/topics/cdc.secret.plans")
    for path in (*hidden, "/data-targets/warehouse"):
        assert "Not allowed" in watson.page(path, 403)
    watson.catalogue.data_targets.put_group("warehouse", "warehouse-loader", [shop], by="x")
    for path in of_targets:
        assert target in watson.page(path), path
    assert f"{NAMESPACE}.orders" in watson.page("/data-targets/warehouse")


def test_results_alone_are_sent_while_someone_types(shown: Watson) -> None:
    headers = {"HX-Request": "true", "HX-Target": "suggestions"}
    answer = shown.client.get("/watson/search?q=tax", headers=headers)
    assert "<html" not in answer.text
    assert f"/watson/sources/{NAMESPACE}/orders/fields/total" in answer.text
    assert shown.client.get("/watson/search?q=", headers=headers).text.strip() == ""


def test_disabled_things_say_so(watson: Watson) -> None:
    watson.catalogue.topics.set_status("cdc.shop.stock", Status.DISABLED, by="x")
    assert "disabled" in watson.page("/topics")
    assert "disabled" in watson.page("/topics/cdc.shop.stock")


def test_static_files_are_kept_and_the_licence_is_there(watson: Watson) -> None:
    script = re.search(r'src="([^"]+)"', watson.page("/"))
    assert script is not None
    answer = watson.client.get(script[1])
    assert "immutable" in answer.headers["cache-control"]
    assert answer.headers["content-type"].startswith("text/javascript")
    assert "BSD" in watson.page("/static/htmx.LICENSE.txt")


def test_the_address_without_a_slash_leads_there(watson: Watson) -> None:
    assert watson.client.get("/watson").url.path == "/watson/"


def test_a_link_that_is_no_web_page_is_text(watson: Watson) -> None:
    """Somebody who applies files may write any link into them."""
    about = {"path": HOSTILE, "link": "javascript:alert(1)", "typology": HOSTILE}
    deployments = watson.catalogue.deployments
    token = deployments.lease("staging", "ci", 60, None, by="eve").token
    made = Managed(kind="topic", name=f"{NAMESPACE}.orders", content={}, about=about)
    begun = Managed(kind="topic", name=f"{NAMESPACE}.customers", content={}, about={**about, "pending": "true"})
    deployments.change("staging", token, [made, begun], [], by="eve")
    page = watson.page(f"/topics/{NAMESPACE}.orders")
    assert "<dt>Environment</dt><dd>staging</dd>" in page
    assert "javascript:" not in page
    assert HOSTILE not in page
    pii = watson.page("/topics?kind=change")
    assert pii.count(" in staging:") == 1, "not of what an apply has only begun to make"


def test_every_operation_of_the_interface_has_a_page(shown: Watson) -> None:
    links = re.findall(r'href="/watson(/api/[^"]+)"', shown.page("/api"))
    assert len(links) == len(set(links)) > 50
    for link in links:
        page = shown.page(link)
        assert '<td class="type">anything' not in page, "each value has a type"
        assert '<p class="lacks">' not in page, "each operation says what it does"
    assert "see the list of operations" in shown.page("/api/none", 404).lower()
