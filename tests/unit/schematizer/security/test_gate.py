"""The gate before the service: limits, bounds, headers, forged forms, and signing in with a browser."""

from __future__ import annotations

import asyncio
import html
import re
import threading
import time
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schematizer.security.code_flow import CodeFlow
from schematizer.security.limits import TokenBuckets, network_of
from schematizer.security.sign_in import local_path
from tests.support.schematizer.oidc_issuer import TestIssuer
from tests.support.schematizer.secured import CLOSED, RECORD, Secured, token_of

if TYPE_CHECKING:
    from collections.abc import Iterator, MutableMapping
    from pathlib import Path

    from fastapi.testclient import TestClient

VERSIONS = "/subjects/cdc.shop.orders-value/versions"
HTTPS = "https://127.0.0.1"


def test_requests_of_an_address_and_of_an_actor(tmp_path: Path) -> None:
    secured = Secured(tmp_path, requests_per_second=0.01)  # one at once, and one more every 100 s
    client = secured.client()
    assert client.get("/subjects").status_code == 200
    answer = client.get("/subjects")
    assert (answer.status_code, answer.json()["error_code"]) == (429, 429)
    assert 1 <= int(answer.headers["retry-after"]) <= 100
    assert secured.refused("rate") == 1
    assert not secured.security.audit.entries(), "who asks too often must not fill the database"


def test_failed_logins_of_an_address(tmp_path: Path) -> None:
    secured = Secured(tmp_path, **CLOSED, failed_logins_per_minute=1)
    answers = [secured.client().get("/subjects", auth=("cdck_a", "b")).status_code for _ in range(12)]
    assert answers == [401] * 10 + [429] * 2
    assert secured.client(secured.admin).get("/subjects").status_code == 200, "a right key is never held up by others"
    assert len(secured.security.audit.entries()) <= 12


def test_a_body_that_is_too_large(tmp_path: Path) -> None:
    secured = Secured(tmp_path, max_body_bytes=1024)
    for path in (VERSIONS, "/api/v1/namespaces"):
        answer = secured.client().post(path, content=b"x" * 2000)
        assert answer.status_code == 413
        chunks = (b"x" * 500 for _ in range(5))
        assert secured.client().post(path, content=chunks).status_code == 413, "without a length, too"
    assert secured.refused("body-size") == 4


def test_a_client_that_goes_away_within_its_body_is_no_error_of_the_registry(tmp_path: Path) -> None:
    secured, sent = Secured(tmp_path), list[Any]()
    for path in (VERSIONS, "/api/v1/namespaces"):
        messages: list[dict[str, object]] = [{"type": "http.disconnect"}]
        messages.append({"type": "http.request", "body": b'{"sch', "more_body": True})

        async def receive(messages: list[dict[str, object]] = messages) -> dict[str, object]:
            return messages.pop()

        async def send(message: MutableMapping[str, Any]) -> None:
            sent.append(message)

        headers = [(b"host", b"127.0.0.1"), (b"content-type", b"application/json")]
        scope = {"type": "http", "method": "POST", "path": path, "headers": headers, "query_string": b""}
        asyncio.run(secured.app({**scope, "client": ("127.0.0.1", 1), "scheme": "http"}, receive, send))
    assert [event["status"] for event in sent if event["type"] == "http.response.start"] == [408, 408]
    assert secured.refused("disconnect") == 2


def test_an_answer_that_takes_too_long(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    secured, release = Secured(tmp_path, request_seconds=0.2), threading.Event()
    monkeypatch.setattr(secured.store, "subjects", lambda *_, **__: [str(release.wait(2))])
    begun = time.monotonic()
    threading.Timer(1.0, release.set).start()
    assert secured.client().get("/subjects").status_code == 503
    assert time.monotonic() - begun < 30
    assert secured.refused("time") == 1


@pytest.mark.parametrize(
    ("headers", "is_refused"),
    [
        ({}, False),
        ({"Origin": "http://127.0.0.1"}, False),
        ({"Sec-Fetch-Site": "same-origin", "Origin": "http://127.0.0.1"}, False),
        ({"Origin": "https://evil.example"}, True),
        ({"Origin": "null"}, True),
        ({"Sec-Fetch-Site": "cross-site"}, True),
        ({"Sec-Fetch-Site": "same-site", "Origin": "http://127.0.0.1:9999"}, True),
    ],
)
def test_writes_from_pages_of_other_sites(tmp_path: Path, headers: dict[str, str], *, is_refused: bool) -> None:
    """Also on an open registry: a page could use the browser of somebody who reaches it."""
    secured = Secured(tmp_path)
    answer = secured.client().post(VERSIONS, json={"schema": RECORD}, headers=headers)
    assert answer.status_code == (403 if is_refused else 200)
    assert secured.client().get("/subjects", headers={"Sec-Fetch-Site": "cross-site"}).status_code == 200


def test_a_name_that_points_to_loopback(tmp_path: Path) -> None:
    """DNS rebinding: the page's own host is an address of this machine."""
    secured = Secured(tmp_path, public_url="http://registry.example")
    assert secured.client(base_url="http://evil.example").get("/subjects").status_code == 403
    for own in ("http://registry.example", "http://localhost:8081", "http://[::1]:8081", "http://127.0.0.1"):
        assert secured.client(base_url=own).get("/subjects").status_code == 200


def test_headers_for_browsers(tmp_path: Path) -> None:
    secured = Secured(tmp_path)
    plain, page = secured.client().get("/subjects"), secured.client(base_url=HTTPS).get("/sign-in/")
    for answer in (plain, page):
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["x-frame-options"] == "DENY"
        assert "frame-ancestors 'none'" in answer.headers["content-security-policy"]
    assert "strict-transport-security" not in plain.headers
    assert page.headers["strict-transport-security"]
    assert "unsafe" not in page.headers["content-security-policy"]


@pytest.fixture
def browser(tmp_path: Path) -> tuple[Secured, TestClient]:
    secured = Secured(tmp_path, **CLOSED)
    return secured, secured.client(base_url=HTTPS, follow_redirects=False)


def signed_in(secured: Secured, client: TestClient, *grants: str) -> str:
    """The token of the forms of the session."""
    key = secured.key(*grants)
    form = {"key_id": key.key.key_id, "secret": key.secret, "next": "/subjects"}
    form["csrf_token"] = token_of(client.get("/sign-in/").text)
    answer = client.post("/sign-in/", data=form)
    assert (answer.status_code, answer.headers["location"]) == (303, "/subjects")
    [cookie] = answer.headers.get_list("set-cookie")
    assert cookie.startswith("__Host-schematizer-session=")
    assert {"HttpOnly", "Secure", "SameSite=Lax", "Path=/"} <= {part.strip() for part in cookie.split(";")}
    return token_of(client.get("/sign-in/").text)


def test_a_session_of_a_key(browser: tuple[Secured, TestClient], tmp_path: Path) -> None:
    secured, client = browser
    token = signed_in(secured, client, "writer:cdc.shop")
    assert client.get("/api/v1/me").json()["grants"] == ["writer:cdc.shop"]
    assert client.post(VERSIONS, json={"schema": RECORD}).status_code == 403, "no token, no write by a cookie"
    assert client.post(VERSIONS, json={"schema": RECORD}, headers={"X-CSRF-Token": "0" * 64}).status_code == 403
    assert client.post(VERSIONS, json={"schema": RECORD}, headers={"X-CSRF-Token": token}).status_code == 200
    value = client.cookies["__Host-schematizer-session"]
    assert value.encode() not in b"".join(file.read_bytes() for file in tmp_path.glob("registry.db*"))
    assert client.post("/sign-in/out", data={"csrf_token": "0" * 64}).status_code == 403
    assert client.post("/sign-in/out", data={"csrf_token": token}).status_code == 303
    client.cookies.set("__Host-schematizer-session", value)
    assert client.get("/api/v1/me").status_code == 401, "the session has ended, whoever has its cookie"
    assert [entry.action for entry in secured.security.audit.entries() if entry.action.startswith("sign")] == [
        "sign in",
        "sign out",
    ]


def test_a_session_ends_with_its_key(browser: tuple[Secured, TestClient]) -> None:
    secured, client = browser
    signed_in(secured, client, "reader:*")
    assert client.get("/subjects").status_code == 200
    secured.security.keys.revoke(secured.security.keys.every()[-1].key_id, by="test")
    assert client.get("/subjects").status_code == 401


def test_a_wrong_secret_on_the_page(browser: tuple[Secured, TestClient]) -> None:
    secured, client = browser
    form = {"key_id": "<b>", "secret": "s", "csrf_token": token_of(client.get("/sign-in/").text)}
    answer = client.post("/sign-in/", data=form)
    assert answer.status_code == 401
    assert 'role="alert">The login failed.' in answer.text
    assert "<b>" not in answer.text
    assert not client.cookies.get("__Host-schematizer-session")
    assert secured.refused("login") == 1


@given(st.text() | st.from_regex(r"[/\\]{1,3}[a-z.]{1,5}[/\\:@a-z.]{0,5}", fullmatch=True))
def test_where_a_sign_in_leads_is_here(path: str) -> None:
    found = local_path(path)
    assert found.startswith("/")
    parts = urlsplit(found.replace("\\", "/"))
    assert not parts.netloc
    assert not parts.scheme


@pytest.fixture
def issuer() -> Iterator[TestIssuer]:
    with TestIssuer() as running:
        yield running


def test_signing_in_by_oidc(tmp_path: Path, issuer: TestIssuer, monkeypatch: pytest.MonkeyPatch) -> None:
    """The registry reads the issuer's answers. The issuer's exchange of the code for a token is replaced."""
    secured = Secured(
        tmp_path,
        **CLOSED,
        oidc_issuer=issuer.url,
        oidc_audience="registry",
        oidc_client_id="web",
        public_url=HTTPS,
        oidc_grants=["groups=data:reader:*"],
    )
    client = secured.client(base_url=HTTPS, follow_redirects=False)
    asked: dict[str, Any] = {}

    def fetch(_flow: CodeFlow, code: str, verifier: str) -> dict[str, Any]:
        asked.update(code=code, verifier=verifier)
        return {"id_token": issuer.token(aud="web", **asked["claims"])}

    monkeypatch.setattr(CodeFlow, "_fetch", fetch)

    def begin() -> dict[str, str]:
        sent = urlsplit(client.get("/sign-in/oidc?next=/subjects").headers["location"])
        return {name: value for name, [value] in parse_qs(sent.query).items()}

    link = re.search(r'href="(/sign-in/oidc[^"]*)"', client.get("/sign-in/?next=%2Fwatson%2F%3Fa%3D1%26part%3D2").text)
    assert link is not None
    assert parse_qs(urlsplit(html.unescape(link[1])).query) == {"next": ["/watson/?a=1&part=2"]}
    question = begin()
    assert question["redirect_uri"] == f"{HTTPS}/sign-in/oidc/callback"
    assert (question["code_challenge_method"], question["client_id"]) == ("S256", "web")
    asked["claims"] = {"nonce": question["nonce"], "groups": ["data"]}
    answer = client.get(f"/sign-in/oidc/callback?code=c&state={question['state']}")
    assert (answer.status_code, answer.headers["location"]) == (303, "/subjects")
    assert client.get("/api/v1/me").json() == {"actor": "oidc:alice", "grants": ["reader:*"]}

    def refused(state: str, claims: dict[str, Any], more: str = "") -> int:
        asked["claims"] = claims
        return client.get(f"/sign-in/oidc/callback?code=c&state={state}{more}").status_code

    good = {"groups": ["data"]}
    assert refused(begin()["state"], {**good, "nonce": "other"}) == 401
    assert refused("other", {**good, "nonce": begin()["nonce"]}) == 401
    question = begin()
    assert refused(question["state"], {**good, "nonce": question["nonce"]}, "&iss=https://evil") == 401
    question = begin()
    assert refused(question["state"], {"nonce": question["nonce"]}) == 403
    client.cookies.clear()
    assert refused(question["state"], {**good, "nonce": question["nonce"]}) == 401, "another browser's question"


@given(
    st.lists(st.tuples(st.sampled_from("abc"), st.floats(0, 5)), max_size=60),
    st.floats(0.1, 10),
    st.integers(1, 5),
)
def test_token_buckets_never_give_more_than_they_may(asked: list[tuple[str, float]], rate: float, burst: int) -> None:
    clock, taken = 0.0, {"a": 0, "b": 0, "c": 0}
    buckets = TokenBuckets(rate, burst, clock=lambda: clock)
    for key, pause in asked:
        clock += pause
        wait = buckets.wait(key)
        taken[key] += wait == 0
        assert taken[key] <= burst + rate * clock + 1e-6
        assert wait <= 1 / rate + 1e-6
    if taken["a"]:
        clock += burst / rate + 1
        assert buckets.wait("a") == 0, "whoever waits gets one"


def test_buckets_are_bounded_in_number() -> None:
    buckets = TokenBuckets(1, 1, size=100)
    for number in range(1000):
        buckets.wait(str(number))
    assert len(buckets) == 100


def test_an_ipv6_network_is_one_address() -> None:
    assert network_of("2001:db8:1:2::1") == network_of("2001:db8:1:2:ffff::9") == "2001:db8:1:2::/64"
    assert network_of("::ffff:192.0.2.7") == network_of("192.0.2.7") == "192.0.2.7"
    assert network_of("testclient") == "testclient"
