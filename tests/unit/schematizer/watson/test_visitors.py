"""Watson of a registry with logins: who is asked to sign in, what a session sees, and what it leaves in the log."""

from __future__ import annotations

import re
from html import unescape
from typing import TYPE_CHECKING

import pytest

from schematizer.model.security_tables import Result
from tests.support.schematizer.secured import CLOSED, RECORD, Secured, token_of

if TYPE_CHECKING:
    from pathlib import Path

    from fastapi.testclient import TestClient

SOURCE = "/watson/sources/cdc.shop/orders"
SIGN_IN = re.compile(r'href="(/sign-in/[^"]*)">Sign in</a>')


def registry(folder: Path, **settings: object) -> Secured:
    secured = Secured(folder, **settings)
    secured.store.register("cdc.shop.orders-value", RECORD)
    return secured


def sign_in_link(page: str) -> str:
    found = SIGN_IN.search(page)
    assert found is not None, page
    return unescape(found[1])


def sign_in(secured: Secured, client: TestClient, link: str, *grants: str) -> str:
    """Where it leads to."""
    key = secured.key(*grants, name="ada")
    page = client.get(link).text
    after = re.search(r'name="next" value="([^"]*)"', page)
    assert after is not None
    form = {"key_id": key.key.key_id, "secret": key.secret, "next": unescape(after[1]), "csrf_token": token_of(page)}
    answer = client.post("/sign-in/", data=form)
    assert answer.status_code == 303
    return answer.headers["location"]


def test_from_a_closed_page_to_it_and_out_again(tmp_path: Path) -> None:
    secured = registry(tmp_path, **CLOSED)
    client = secured.client(follow_redirects=False)
    path = "/watson/search?q=a+b%26c&part=1"
    refused = client.get(path, headers={"Accept": "text/html"})
    assert refused.status_code == 401
    assert "www-authenticate" not in refused.headers, "a browser would open a dialog of its own"
    assert "orders" not in refused.text
    assert sign_in(secured, client, sign_in_link(refused.text), "writer:cdc.shop") == path

    page = client.get(SOURCE)
    assert page.status_code == 200
    assert "ada" in page.text
    assert SIGN_IN.search(page.text) is None
    assert page.headers["cache-control"] == "no-store", "no one reads it after the owner has signed out"
    assert client.post("/sign-in/out", data={"csrf_token": token_of(page.text)}).status_code == 303
    assert client.get(SOURCE).status_code == 401


def test_a_form_of_a_session(tmp_path: Path) -> None:
    secured = registry(tmp_path, **CLOSED)
    client = secured.client(follow_redirects=False)
    sign_in(secured, client, "/sign-in/?next=/", "writer:cdc.shop")
    token = token_of(client.get(SOURCE).text)
    assert client.post(SOURCE, data={"owner": "a"}).status_code == 403
    assert client.post(SOURCE, data={"owner": "a", "csrf_token": "0" * 64}).status_code == 403
    assert secured.refused("forged-form") == 2
    answer = client.post(SOURCE, data={"owner": "team-a", "csrf_token": token})
    assert (answer.status_code, answer.headers["location"]) == (303, SOURCE)
    assert secured.catalogue.sources.get("cdc.shop", "orders").owner == "team-a"
    entries = [record for record in secured.security.audit.entries() if record.action.startswith("POST /watson")]
    assert sorted(record.result for record in entries) == [Result.DONE, Result.REFUSED, Result.REFUSED]
    [entry] = [record for record in entries if record.result is Result.DONE]
    assert (entry.about, entry.namespace, entry.status) == (SOURCE, "cdc.shop", 303)
    assert entry.actor == secured.catalogue.history.changes()[-1].changed_by
    assert entry.actor.endswith("ada")


def test_reading_leaves_no_trace(tmp_path: Path) -> None:
    """Which forms a page shows is no attempt to write."""
    secured = registry(tmp_path, **CLOSED)
    secured.store.register("cdc.secret.plans-value", RECORD.replace('"R"', '"S"'))
    for grants in ("reader:cdc.shop", "writer:cdc.shop", "admin:*"):
        client = secured.client(secured.key(grants))
        for path in ("/watson/", SOURCE, "/watson/topics", "/watson/unused?days=0", "/watson/schemas/1"):
            page = client.get(path)
            assert page.status_code == 200
            assert ("secret" in page.text) == (grants == "admin:*" and path not in (SOURCE, "/watson/schemas/1"))
        assert ("Edit docs" in client.get(SOURCE).text) == (not grants.startswith("reader"))
    assert not [entry for entry in secured.security.audit.entries() if "/watson" in entry.about]
    assert secured.refused("role") == secured.refused("no-login") == 0


def test_open_reads(tmp_path: Path) -> None:
    secured = registry(tmp_path, open_reads=True, open_writes=False)
    client = secured.client(follow_redirects=False)
    page = client.get(SOURCE)
    assert page.status_code == 200
    assert 'method="post"' not in page.text
    assert sign_in_link(page.text) == "/sign-in/?next=%2Fwatson%2Fsources%2Fcdc.shop%2Forders"
    token = token_of(client.get("/sign-in/").text)
    refused = client.post(SOURCE, data={"owner": "a", "csrf_token": token})
    assert refused.status_code == 401
    assert sign_in_link(refused.text) == "/sign-in/?next=%2Fwatson%2F"


def test_a_login_reads_what_everyone_reads_and_writes_what_it_may(tmp_path: Path) -> None:
    secured = registry(tmp_path, open_reads=True, open_writes=False)
    client = secured.client(secured.key("writer:elsewhere"))
    assert client.get(SOURCE).status_code == 200
    assert "Edit docs" not in client.get(SOURCE).text
    assert client.get("/api/v1/audit").status_code == 403


def test_an_open_registry_asks_nobody_to_sign_in(tmp_path: Path) -> None:
    secured = registry(tmp_path)
    client = secured.client(follow_redirects=False)
    page = client.get(SOURCE)
    assert SIGN_IN.search(page.text) is None
    assert client.post(SOURCE, data={"owner": "a"}).status_code == 403, "a form without the token of a page"
    assert client.post(SOURCE, data={"owner": "a", "csrf_token": token_of(page.text)}).status_code == 303
    assert secured.catalogue.history.changes()[-1].changed_by == "anonymous"


@pytest.mark.parametrize("path", ["/watson/", "/watson/nowhere", "/watson/static/watson.css"])
def test_each_header_of_the_gate_and_of_watson_stands_once(tmp_path: Path, path: str) -> None:
    headers = registry(tmp_path).client(base_url="https://127.0.0.1").get(path).headers
    for name in ("content-security-policy", "x-content-type-options", "referrer-policy", "cache-control"):
        assert len(headers.get_list(name)) <= 1, name
    policy = headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "frame-ancestors 'none'" in policy
    assert ("script-src 'self'" in policy) == headers["content-type"].startswith("text/html")
    assert headers["x-frame-options"] == "DENY"
    assert headers["strict-transport-security"]
