"""Every route has a rule, and every rule is kept: without a login, and by a reader, a writer and an administrator."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from fastapi.routing import APIRoute
from hypothesis import given
from hypothesis import strategies as st
from starlette.routing import BaseRoute, Mount, Route

from cdc_common.clients.registry.kinds import About
from schematizer.access import Grant, Grants, Role, grant_from_text
from schematizer.application import REST_PATH, WATSON_PATH
from schematizer.confluent.guard import RULES, Scope
from tests.support.schematizer.secured import CLOSED, RECORD, Secured, token_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from fastapi.testclient import TestClient

SUBJECT = "cdc.shop.orders-value"
NAMES = {
    "subject": SUBJECT,
    "schema_id": "1",
    "version": "1",
    "namespace": "cdc.shop",
    "topic": "cdc.shop.orders",
    "source": "orders",
    "guid": "00000000-0000-0000-0000-000000000000",
    "about": "source",
    "path": "a",
    "file": "watson.css",
}
PUBLIC = {
    "GET /sign-in/",
    "GET /sign-in/style.css",
    "POST /sign-in/",
    "POST /sign-in/out",
    f"GET {WATSON_PATH}/static/{{file}}",
}
"""Who signs in has no role yet. Both forms need the token of the page. Watson's files are the same for everyone."""

REST_WRITES_ALL = {
    "PUT /data-targets/{name}",
    "PUT /data-targets/{name}/consumer-groups/{group}",
    "POST /notes",
    "PUT /notes/{note_id}",
    "DELETE /notes/{note_id}",
    "PUT /tags/{about}/{about_id}/{name}",
    "DELETE /tags/{about}/{about_id}/{name}",
    "PUT /refreshes/{refresh_id}",
    "PUT /deployments/{deployment}/lease",
    "DELETE /deployments/{deployment}/lease",
    "POST /deployments/{deployment}/managed",
}
NARROWED = {
    "GET /me",
    "GET /schemas/{schema_id}",
    "GET /schemas/{schema_id}/topics",
    "GET /schemas/{schema_id}/elements",
    "GET /plans",
    "GET /plans/{planner}",
    "GET /unused",
}
"""A reader of some namespaces gets the part of these that lies in them."""
_REMARK = {"about": "source", "about_id": "1"}
WATSON_FORMS = {
    "/namespaces/{namespace}": {"doc": "x"},
    "/sources/{namespace}/{source}": {"doc": "x"},
    "/sources/{namespace}/{source}/deprecation": {"reason": "Old."},
    "/sources/{namespace}/{source}/fields/{path:path}": {"doc": "x"},
    "/data-targets/{name}": {"doc": "x"},
    "/notes": {**_REMARK, "text": "x"},
    "/notes/{note_id}": {"text": "x"},
    "/notes/{note_id}/remove": {},
    "/tags": {**_REMARK, "name": "x"},
    "/tags/remove": {**_REMARK, "name": "x"},
    "/topics/{topic}/status": {"status": "read-write"},
    "/topics/{topic}/schemas/{schema_id}/status": {"status": "read-write"},
}
LOGIN_ADMIN = {"GET /keys", "POST /keys", "DELETE /keys/{key_id}", "GET /audit"}


def routes_of(routes: Sequence[BaseRoute], prefix: str = "") -> Iterator[tuple[str, str]]:
    """(method, path) of every route, through all mounts and routers."""
    for route in routes:
        if isinstance(route, Mount) and not route.routes:
            yield "GET", f"{prefix}{route.path}/{{file}}"
        elif isinstance(route, Mount):
            yield from routes_of(route.routes, prefix + route.path)
        elif isinstance(route, (APIRoute, Route)):
            for method in sorted(set(route.methods or ()) - {"HEAD"}):
                yield method, prefix + route.path
        else:
            inner = getattr(route, "routes", None) or getattr(getattr(route, "original_router", None), "routes", None)
            assert inner is not None, f"a route of an unknown kind: {route!r}"
            yield from routes_of(inner, prefix)


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Secured:
    made = Secured(tmp_path_factory.mktemp("rights"), **CLOSED)
    made.store.register(SUBJECT, RECORD)
    return made


def filled(path: str) -> str:
    return re.sub(r"\{(\w+)(:path)?\}", lambda found: NAMES.get(found[1], "1"), path)


def status(client: TestClient, method: str, path: str) -> int:
    return client.request(method, filled(path), json=None if method in ("GET", "DELETE") else {}).status_code


def all_routes(secured: Secured) -> list[tuple[str, str]]:
    found = list(routes_of(secured.app.routes))
    assert len(found) > 70, "the walk does not see all routes"
    return found


def test_nobody_reaches_any_route_without_a_login(secured: Secured) -> None:
    """Whatever a colleague adds: a route without a guard answers something other than 401."""
    client = secured.client()
    open_ = {f"{method} {path}" for method, path in all_routes(secured) if status(client, method, path) != 401}
    assert open_ - {f"GET {REST_PATH}/openapi.json"} == PUBLIC
    for path in ("/sign-in/", "/sign-in/out"):
        assert client.post(path, data={"key_id": "a", "secret": "b"}).status_code == 403


def test_every_confluent_route_has_a_rule(secured: Secured) -> None:
    own = {
        (method, path)
        for method, path in all_routes(secured)
        if not path.startswith((REST_PATH, "/sign-in", WATSON_PATH))
    }
    assert own == set(RULES)


def test_confluent_rules_are_kept(secured: Secured) -> None:
    for (method, path), rule in RULES.items():
        for role in Role:
            for namespace in ("cdc.shop", "cdc.other", "*"):
                client = secured.client(secured.key(f"{role.word}:{namespace}"))
                is_there = namespace == "*" or (namespace == "cdc.shop" and rule.scope is not Scope.ALL)
                expected = role >= rule.role and (is_there or rule.scope is Scope.ANY)
                answered = status(client, method, path)
                assert (answered != 403) == expected, (method, path, role, namespace, answered)
                secured.store.register(SUBJECT, RECORD)


def test_rest_rules_are_kept(secured: Secured) -> None:
    """Reading needs a reader; what writes a writer; keys and the audit log an administrator."""
    mine, reader = secured.client(secured.key("reader:cdc.shop")), secured.client(secured.key("reader:*"))
    writer = secured.client(secured.key("writer:*"))
    for method, path in all_routes(secured):
        route = f"{method} {path.removeprefix(REST_PATH)}"
        if not path.startswith(REST_PATH) or route == "GET /openapi.json":
            continue
        is_admin = route in LOGIN_ADMIN
        assert (status(writer, method, path) == 403) == is_admin, route
        if method == "GET":
            assert (status(reader, method, path) == 403) == is_admin, route
        names = set(re.findall(r"\{(\w+)\}", path))
        if method == "GET" and not names & {"namespace", "topic"} and route not in NARROWED:
            assert status(mine, method, path) == 403, route


def test_a_schema_is_read_by_readers_of_its_topics(secured: Secured) -> None:
    """Readers see it with those of its topics that they may read; what is missing looks like what is forbidden."""
    schema_id = secured.store.register("cdc.elsewhere.t-value", RECORD).schema_id
    mine, other = secured.client(secured.key("reader:cdc.elsewhere")), secured.client(secured.key("reader:cdc.none"))
    found = mine.get(f"{REST_PATH}/schemas/{schema_id}").json()
    assert {topic["topic"] for topic in found["topics"]} == {"cdc.elsewhere.t"}
    assert other.get(f"{REST_PATH}/schemas/{schema_id}").status_code == 403
    assert mine.get(f"{REST_PATH}/schemas/999999").status_code == 403
    every = secured.client(secured.key("reader:*"))
    assert len(every.get(f"{REST_PATH}/schemas/{schema_id}").json()["topics"]) > 1
    assert every.get(f"{REST_PATH}/schemas/999999").status_code == 404


def test_clients_register_with_the_rights_that_they_work_with(secured: Secured) -> None:
    """A producer is a writer of its topic's namespace, a consumer a reader."""
    client = {"team": "t", "service": "s", "topic": "cdc.shop.orders", "expected_frequency_seconds": 60}
    bodies = {"producers": {**client, "schema_id": 1}, "consumers": {**client, "consumer_group": "g"}}
    for what, body in bodies.items():
        for grants in ("reader:cdc.none", "reader:cdc.shop", "writer:cdc.shop"):
            answered = secured.client(secured.key(grants)).post(f"{REST_PATH}/{what}", json=body).status_code
            is_allowed = grants == "writer:cdc.shop" or (grants == "reader:cdc.shop" and what == "consumers")
            assert answered == (200 if is_allowed else 403), (what, grants)


def test_watsons_pages_need_a_reader(secured: Secured) -> None:
    every, other = secured.client(secured.key("reader:*")), secured.client(secured.key("reader:cdc.none"))
    for method, path in all_routes(secured):
        if method == "GET" and path.startswith(WATSON_PATH) and "/static/" not in path:
            assert status(every, method, path) in (200, 404), path
            assert status(other, method, path) == 403, path


def test_watsons_forms_need_a_writer(secured: Secured) -> None:
    paths = {path for method, path in all_routes(secured) if method == "POST" and path.startswith(WATSON_PATH)}
    assert paths == {WATSON_PATH + path for path in WATSON_FORMS}
    secured.catalogue.data_targets.put("1", "a", "b", None, None, by="test")
    for grants in ("reader:*", "writer:cdc.none", "writer:cdc.shop", "writer:*"):
        client = secured.client(secured.key(grants), follow_redirects=False)
        token = token_of(client.get("/sign-in/").text)
        for path, form in WATSON_FORMS.items():
            note = secured.catalogue.notes.add(About.SOURCE, 1, "y", by="test")
            url = WATSON_PATH + filled(path.replace("{note_id}", str(note.id)))
            is_allowed = grants == "writer:*" or (grants == "writer:cdc.shop" and "{name}" not in path)
            answered = client.post(url, data={**form, "csrf_token": token}).status_code
            assert answered == (303 if is_allowed else 403), (path, grants)
            assert client.post(url, data=form).status_code == 403, "no token"


@pytest.mark.parametrize("route", sorted(REST_WRITES_ALL))
def test_what_belongs_to_no_namespace_needs_a_writer_of_all(secured: Secured, route: str) -> None:
    method, _, path = route.partition(" ")
    bodies = {
        "/data-targets/{name}": {"kind": "a", "destination": "b"},
        "/data-targets/{name}/consumer-groups/{group}": {"data_sources": []},
        "/notes": {"about": "source", "about_id": 1, "text": "x"},
        "/notes/{note_id}": {"text": "x"},
        "/refreshes/{refresh_id}": {"status": "done", "rows_sent": 1},
        "/deployments/{deployment}/lease": {"holder": "a", "seconds": 1},
        "/deployments/{deployment}/managed": {"token": 1},
    }
    body = None if method == "DELETE" else bodies.get(path)
    for grants, is_allowed in (("reader:*", False), ("writer:cdc.shop", False), ("writer:*", True)):
        key = secured.key(grants)
        answered = secured.client(key).request(method, REST_PATH + filled(path), json=body).status_code
        assert (answered != 403) == is_allowed, (grants, answered)


def test_lists_hold_what_the_actor_may_read(secured: Secured) -> None:
    other = secured.store.register("cdc.other.t-value", RECORD.replace('"R"', '"Other"')).schema_id
    client = secured.client(secured.key("reader:cdc.shop"))
    assert client.get("/subjects").json() == [SUBJECT]
    assert {schema["subject"] for schema in client.get("/schemas").json()} == {SUBJECT}
    assert client.get("/schemas/ids/1").status_code == 200
    assert client.get(f"/schemas/ids/{other}").status_code == 403
    assert client.get("/schemas/ids/999999").status_code == 403, "what is missing looks like what is forbidden"
    shared = secured.store.register("cdc.other.same-value", RECORD).schema_id
    assert client.get(f"/schemas/ids/{shared}/subjects").json() == [SUBJECT]
    assert {use["subject"] for use in client.get(f"/schemas/ids/{shared}/versions").json()} == {SUBJECT}


def test_a_schema_stays_readable_after_its_versions_were_deleted(secured: Secured) -> None:
    """By those who could read it before: their topics still have messages with its id."""
    schema_id = secured.store.register("cdc.gone.t-value", RECORD.replace('"R"', '"Gone"')).schema_id
    clients = [secured.client(secured.key(f"reader:{namespace}")) for namespace in ("cdc.gone", "cdc.shop")]
    for permanent in (False, True):
        secured.store.delete_subject("cdc.gone.t-value", permanent=permanent)
        assert [client.get(f"/schemas/ids/{schema_id}").status_code for client in clients] == [200, 403], permanent


def test_a_permanent_deletion_needs_an_administrator(secured: Secured) -> None:
    secured.store.register("cdc.gone.t-value", RECORD)
    client = secured.client(secured.key("writer:cdc.gone"))
    for spelling in ("true", "1", "on", "yes", "True"):
        assert client.delete(f"/subjects/cdc.gone.t-value?permanent={spelling}").status_code == 403
    assert client.delete("/subjects/cdc.gone.t-value").status_code == 200


NAMESPACES = st.from_regex(r"[a-c]{1,2}(\.[a-c]{1,2}){0,2}", fullmatch=True)
PATTERNS = st.one_of(st.just("*"), NAMESPACES, NAMESPACES.map("{}.*".format))


@given(st.lists(st.tuples(st.sampled_from(Role), PATTERNS)), st.sampled_from(Role), st.none() | NAMESPACES)
def test_grants_against_a_plain_reading_of_them(
    given_: list[tuple[Role, str]], role: Role, namespace: str | None
) -> None:
    grants = Grants(tuple(Grant(*grant) for grant in given_))

    def covers(pattern: str) -> bool:
        if pattern == "*":
            return True
        if namespace is None:
            return False
        words, wanted = pattern.split("."), namespace.split(".")
        if words[-1] == "*":
            return len(wanted) >= len(words) and wanted[: len(words) - 1] == words[:-1]
        return words == wanted

    expected = any(granted >= role and covers(pattern) for granted, pattern in given_)
    assert grants.allows(role, namespace) == expected
    assert all(grant_from_text(str(grant)) == grant for grant in grants.every)
    assert not expected or grants.allows_somewhere(role)


@pytest.mark.parametrize("text", ["", "writer", "owner:cdc", "Admin:*"])
def test_what_is_no_role(text: str) -> None:
    with pytest.raises(ValueError, match="is not ROLE:NAMESPACE"):
        grant_from_text(text)


@pytest.mark.parametrize("text", ["writer:", "writer:a*", "writer:*.a", "writer:a b", "writer:a:b"])
def test_what_is_no_namespace(text: str) -> None:
    with pytest.raises(ValueError, match="is not a namespace"):
        grant_from_text(text)
