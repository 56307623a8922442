"""A login with a role in some namespaces gets its part of a list, or the whole if it may read all that it names."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest
from sqlalchemy import update

from cdc_common.clients.registry.views import DataSource, FieldText, SourceDocumentation
from schematizer.application import REST_PATH, WATSON_PATH
from schematizer.model.base import now
from schematizer.model.source_tables import TopicRow
from tests.support.schematizer.secured import CLOSED, RECORD, Secured

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

SHOP, STOCK, SECRET = "cdc.shop", "cdc.stock", "cdc.secret"


@pytest.fixture
def secured(tmp_path: Path) -> Secured:
    """A source in each of three namespaces, and data targets of the first two, of the last two, and of none."""
    made = Secured(tmp_path, **CLOSED)
    for namespace in (SHOP, STOCK, SECRET):
        made.store.register(f"{namespace}.orders-value", RECORD)
    reads(made, "both", [DataSource(namespace=SHOP, source="orders"), DataSource(namespace=STOCK)])
    reads(made, "mixed", [DataSource(namespace=STOCK), DataSource(namespace=SECRET)])
    reads(made, "empty", [])
    return made


def reads(secured: Secured, target: str, sources: Iterable[DataSource]) -> None:
    secured.catalogue.data_targets.put(target, "warehouse", "address", None, None, by="test")
    secured.catalogue.data_targets.put_group(target, target, list(sources), by="test")


class Answer(NamedTuple):
    status: int
    body: Any


def get(secured: Secured, grants: Iterable[str], path: str, **query: str | int) -> Answer:
    found = secured.client(secured.key(*grants)).get(f"{REST_PATH}{path}", params=query)
    return Answer(found.status_code, found.json())


def names(answer: Answer) -> list[str]:
    assert answer.status == 200, answer.body
    return [entry["name"] for entry in answer.body]


@pytest.mark.parametrize("grants", [(f"reader:{SHOP}", f"reader:{STOCK}"), ("reader:cdc.*",), ("reader:*",)])
def test_a_data_target_is_followed_by_readers_of_all_that_it_reads(secured: Secured, grants: tuple[str, ...]) -> None:
    followed = get(secured, grants, "/data-targets/both/topics").body
    assert [topic["name"] for topic in followed["topics"]] == [f"{SHOP}.orders", f"{STOCK}.orders"]
    assert get(secured, grants, "/data-targets/both").body["destination"] == "address"
    [group] = get(secured, grants, "/data-targets/both/consumer-groups").body
    assert [source["namespace"] for source in group["data_sources"]] == [SHOP, STOCK]
    assert names(get(secured, grants, "/topics", data_target="both")) == [f"{SHOP}.orders", f"{STOCK}.orders"]


@pytest.mark.parametrize("path", ["", "/topics", "/consumer-groups"])
def test_a_reader_of_a_part_learns_which_grant_is_missing(secured: Secured, path: str) -> None:
    """A part of the topics would look like all of them: the warehouse would lack rows, and no one would know."""
    answer = get(secured, [f"reader:{STOCK}"], f"/data-targets/both{path}")
    assert (answer.status, answer.body["error"]) == (403, "forbidden")
    assert f"is not a reader of the namespace {SHOP}." in answer.body["message"]
    assert "Ask an administrator" in answer.body["fix"]


@pytest.mark.parametrize("path", ["", "/topics", "/consumer-groups"])
def test_to_others_what_is_missing_looks_like_what_is_forbidden(secured: Secured, path: str) -> None:
    grants = [f"reader:{SHOP}"]
    answers = [get(secured, grants, f"/data-targets/{name}{path}") for name in ("mixed", "nothing")]
    assert [answer.status for answer in answers] == [403, 403]
    assert answers[0].body == answers[1].body
    assert get(secured, ["reader:*"], f"/data-targets/nothing{path}").status == 404


def test_a_data_target_that_reads_nothing_yet(secured: Secured) -> None:
    """Its reader may start before its sources are named, and gets no error while they are exchanged."""
    grants = [f"reader:{SHOP}"]
    assert get(secured, grants, "/data-targets/empty/topics").body["topics"] == []
    assert get(secured, grants, "/data-targets/empty").status == 403
    assert get(secured, ["reader:*"], "/data-targets/empty").status == 200
    reads(secured, "empty", [DataSource(namespace=SHOP)])
    assert len(get(secured, grants, "/data-targets/empty/topics").body["topics"]) == 1
    reads(secured, "empty", [DataSource(namespace=SECRET)])
    assert get(secured, grants, "/data-targets/empty/topics").status == 403


def test_a_source_without_topics_counts(secured: Secured) -> None:
    secured.catalogue.namespaces.add("cdc.later", None, None, by="test")
    reads(secured, "both", [DataSource(namespace=SHOP), DataSource(namespace="cdc.later")])
    assert get(secured, [f"reader:{SHOP}"], "/data-targets/both/topics").status == 403


def test_topics_of_a_namespace(secured: Secured) -> None:
    grants = [f"reader:{SHOP}"]
    assert names(get(secured, grants, "/topics", namespace=SHOP, created_since="2020-01-01T00:00:00Z")) == [
        f"{SHOP}.orders"
    ]
    for query in ({}, {"namespace": SECRET}, {"source": "orders"}, {"schema_id": 1}, {"data_target": "mixed"}):
        assert get(secured, grants, "/topics", **query).status == 403, query
    assert get(secured, grants, "/topics", namespace=SHOP, data_target="both").status == 403


def test_topics_and_elements_of_a_schema(secured: Secured) -> None:
    """All three sources have this schema."""
    schema_id = secured.store.register(f"{SHOP}.orders-value", RECORD).schema_id
    for namespace in (SHOP, STOCK):
        said = SourceDocumentation(fields={"a": FieldText(doc=f"of {namespace}")})
        secured.catalogue.documentation.put(namespace, "orders", said, by="test")
    grants = [f"reader:{SHOP}"]
    assert names(get(secured, grants, f"/schemas/{schema_id}/topics")) == [f"{SHOP}.orders"]
    assert len(names(get(secured, ["reader:*"], f"/schemas/{schema_id}/topics"))) == 3
    path = f"/schemas/{schema_id}/elements"
    for reader, namespace in (("*", SHOP), (STOCK, STOCK)):
        assert get(secured, [f"reader:{reader}"], path).body[0]["doc"] == f"of {namespace}", "the first it may read"
    assert get(secured, grants, path, topic=f"{SHOP}.orders").body[0]["doc"] == f"of {SHOP}"
    assert get(secured, grants, path, topic=f"{SECRET}.orders").status == 403
    assert get(secured, ["reader:cdc.none"], path).status == 403


def test_a_schema_of_another_namespace_is_closed_however_its_id_is_written(secured: Secured) -> None:
    schema_id = secured.store.register(f"{SECRET}.cards-value", RECORD.replace('"a"', '"number"')).schema_id
    client, every = secured.client(secured.key(f"reader:{SHOP}")), secured.client(secured.key("reader:*"))
    for written in ("{}", "+{}", "%20{}", "{}.0", "0{}", "0000000000{}"):
        for rest in ("", "/schema", "/versions", "/subjects"):
            path = f"/schemas/ids/{written.format(schema_id)}{rest}"
            assert client.get(path).status_code == 403, path
            assert every.get(path).status_code == 200, path


def test_watsons_page_of_a_schema_shows_what_the_login_may_read(secured: Secured) -> None:
    """All three sources have this schema; the first one's docs and flags are not everybody's."""
    schema_id = secured.store.register(f"{SHOP}.orders-value", RECORD).schema_id
    said = SourceDocumentation(fields={"a": FieldText(doc="only for the shop", pii=True)})
    secured.catalogue.documentation.put(SHOP, "orders", said, by="test")
    path = f"{WATSON_PATH}/schemas/{schema_id}"
    pages = {
        namespace: secured.client(secured.key(f"reader:{namespace}")).get(path).text for namespace in (SHOP, STOCK)
    }
    assert f"{STOCK}.orders" in pages[STOCK]
    assert SHOP not in pages[STOCK]
    assert "only for the shop" not in pages[STOCK]
    assert "only for the shop" in pages[SHOP]


def test_watson_does_not_say_which_schemas_of_others_there_are(secured: Secured) -> None:
    secret = secured.store.register(f"{SECRET}.cards-value", RECORD.replace('"a"', '"number"')).schema_id
    client = secured.client(secured.key(f"reader:{SHOP}"))
    answers = [client.get(f"{WATSON_PATH}/schemas/{schema_id}") for schema_id in (secret, 999_999)]
    assert [answer.status_code for answer in answers] == [403, 403]
    assert SECRET not in answers[0].text


def test_clients_of_a_topic(secured: Secured) -> None:
    grants = [f"reader:{SHOP}"]
    for what in ("producers", "consumers"):
        assert get(secured, grants, f"/{what}", topic=f"{SHOP}.orders").body == []
        assert get(secured, grants, f"/{what}", topic=f"{SECRET}.orders").status == 403
        assert get(secured, grants, f"/{what}").status == 403
        assert get(secured, ["reader:*"], f"/{what}").status == 200


def test_what_is_unused(secured: Secured) -> None:
    """A reader of a part gets that part; a reader of nothing that is there an empty list."""
    then = now() - timedelta(days=100)
    secured.database.write_session(lambda session: session.execute(update(TopicRow).values(last_used_at=then)))
    expected = {
        ("reader:*",): [f"{namespace}.orders" for namespace in (SECRET, SHOP, STOCK)],
        ("reader:cdc.*",): [f"{namespace}.orders" for namespace in (SECRET, SHOP, STOCK)],
        (f"reader:{SHOP}", f"writer:{STOCK}"): [f"{SHOP}.orders", f"{STOCK}.orders"],
        ("admin:cdc.none",): [],
    }
    for grants, topics in expected.items():
        answer = get(secured, grants, "/unused", days=99)
        assert sorted(topic["topic"] for topic in answer.body) == topics, grants
        assert get(secured, grants, "/unused", days=101).body == []
    page = secured.client(secured.key(f"reader:{SHOP}")).get(f"{WATSON_PATH}/unused?days=99").text
    assert [namespace for namespace in (SECRET, SHOP, STOCK) if f"{namespace}.orders" in page] == [SHOP]


def test_plans_of_schemas(secured: Secured) -> None:
    """All three sources have the first schema; the second is the stock's and the secret's alone."""
    wider = RECORD.replace("]", ', {"name": "b", "type": ["null", "int"], "default": null}]')
    first, second = (secured.store.register(f"{SECRET}.orders-value", schema).schema_id for schema in (RECORD, wider))
    assert secured.store.register(f"{STOCK}.orders-value", wider).schema_id == second
    for namespace in (STOCK, SHOP, SECRET):
        said = SourceDocumentation(fields={"a": FieldText(doc=f"of {namespace}")})
        secured.catalogue.documentation.put(namespace, "orders", said, by="test")

    def plan(grant: str, **query: int) -> Answer:
        return get(secured, [grant], "/plans/postgresql", table="t", **query)

    assert "postgresql" in get(secured, [f"reader:{SHOP}"], "/plans").body
    for grant, namespace in ((f"reader:{SHOP}", SHOP), (f"reader:{STOCK}", STOCK)):
        statements = "\n".join(plan(grant, schema_id=first).body)
        assert [owner for owner in (SHOP, STOCK, SECRET) if f"of {owner}" in statements] == [namespace]
    assert "ADD COLUMN" in " ".join(plan(f"reader:{STOCK}", schema_id=second, from_schema_id=first).body)
    refused = plan(f"reader:{SHOP}", schema_id=second, from_schema_id=first)
    assert refused.status == 403
    assert plan(f"reader:{SHOP}", schema_id=second + 1).body["message"] == refused.body["message"]
    assert plan(f"reader:{SHOP}", schema_id=first, from_schema_id=second).status == 403
    assert plan("reader:*", schema_id=second + 1).status == 404
    assert plan("reader:cdc.none", schema_id=first).status == 403


def test_changes_of_a_namespace(secured: Secured) -> None:
    grants = [f"reader:{SHOP}"]
    found = get(secured, grants, "/changes", namespace=SHOP).body
    assert found
    assert {change["namespace"] for change in found} == {SHOP}
    for query in ({}, {"namespace": SECRET}):
        assert get(secured, grants, "/changes", **query).status == 403


def test_watson_shows_the_data_targets_that_the_login_may_read(secured: Secured) -> None:
    client = secured.client(secured.key(f"reader:{SHOP}", f"reader:{STOCK}"))
    listed = client.get(f"{WATSON_PATH}/data-targets").text
    assert [name for name in ("both", "mixed", "empty") if f"/data-targets/{name}" in listed] == ["both"]
    assert f"{STOCK}.orders" in client.get(f"{WATSON_PATH}/data-targets/both").text
    for name in ("mixed", "empty", "nothing"):
        assert client.get(f"{WATSON_PATH}/data-targets/{name}").status_code == 403
    every = secured.client(secured.key("reader:*")).get(f"{WATSON_PATH}/data-targets").text
    assert all(f"/data-targets/{name}" in every for name in ("both", "mixed", "empty"))
