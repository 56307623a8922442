"""The registry with a real OIDC server: tokens of services, keys that are rotated, and people who sign in."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import time
from typing import TYPE_CHECKING, Any

import httpx
import pytest
from confluent_kafka.schema_registry import Schema, SchemaRegistryClient
from joserfc import jwt

from dev.local_stack.process.network import free_ports
from tests.support.schematizer.confluent_javascript import JavaScriptClient
from tests.support.schematizer.oidc_server import AUDIENCE, SECRET, WEB, OidcServer, new_key, visit
from tests.support.schematizer.orders import ORDER
from tests.support.schematizer.secured_process import SecuredRegistry

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.exhaustive  # it installs packages of 170 MB

SERVICE, SHORT = "orders", "short"
SUBJECT = "/subjects/cdc.shop.orders-value/versions"
BODY = {"schema": json.dumps(ORDER)}
MIN_REFRESH_SECONDS = 10


class World:
    """The server, and a registry that trusts it."""

    def __init__(self, folder: Path) -> None:
        [port] = free_ports(1)
        self.url = f"http://127.0.0.1:{port}"
        lifetimes = {SERVICE: 300, SHORT: 1}
        self.server = OidcServer(f"{self.url}/sign-in/oidc/callback", [new_key("first")], lifetimes)
        self.secured = SecuredRegistry(
            folder,
            public_url=self.url,
            oidc_issuer=self.server.url,
            oidc_audience=AUDIENCE,
            oidc_client_id=WEB,
            oidc_scopes="openid",
            oidc_grants="scope=registry.write:writer:cdc.shop,groups=shop:reader:cdc.shop",
            oidc_clock_skew_seconds="0",
            oidc_keys_seconds=str(MIN_REFRESH_SECONDS),
            failed_logins_per_minute="1000",
        )
        self.secured.registry.port = port

    def register(self, token: str, path: str = SUBJECT) -> int:
        """The status."""
        headers = {"Authorization": f"Bearer {token}"}
        return httpx.post(self.url + path, json=BODY, headers=headers, timeout=60).status_code

    def reasons(self) -> list[str]:
        """The reasons of the failed logins in the registry's log."""
        events = [json.loads(line) for line in self.secured.registry.log if line.startswith("{")]
        return [event["reason"] for event in events if event["event"] == "login failed"]


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path)
    with made.server, made.secured:
        yield made


def encoded(value: object) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=").decode()


def decoded(part: str) -> dict[str, Any]:
    value: dict[str, Any] = json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))
    return value


def hs256(claims: dict[str, Any], secret: bytes) -> str:
    signed = f"{encoded({'alg': 'HS256', 'kid': 'first'})}.{encoded(claims)}"
    signature = hmac.new(secret, signed.encode(), hashlib.sha256).digest()
    return f"{signed}.{base64.urlsafe_b64encode(signature).rstrip(b'=').decode()}"


def test_tokens(world: World) -> None:
    good = world.server.token(SERVICE)
    header, claims, signature = good.split(".")
    assert world.register(good) == 200
    assert world.register(good, "/subjects/cdc.other.t-value/versions") == 403
    short = world.server.token(SHORT)
    assert world.register(short) in (200, 401), "it lives for a second"
    time.sleep(2)
    key = world.server.keys[0]
    other_key = new_key("first")
    names = decoded(claims)
    refused = {
        "wrong audience": world.server.token(SERVICE, "https://other.example"),
        "expired": short,
        "alg=none": f"{encoded({**decoded(header), 'alg': 'none'})}.{claims}.",
        "alg=none with a signature": f"{encoded({**decoded(header), 'alg': 'none'})}.{claims}.{signature}",
        "other claims": f"{header}.{encoded({**names, 'sub': 'admin'})}.{signature}",
        "the public key as a shared secret": hs256(names, key.as_pem(private=False)),
        "a key of its own": jwt.encode({"alg": "RS256", "kid": "first"}, names, other_key),
        "another issuer": jwt.encode({"alg": "RS256", "kid": "first"}, {**names, "iss": "http://127.0.0.1:1"}, key),
    }
    answers = {name: world.register(token) for name, token in refused.items()}
    assert answers == dict.fromkeys(refused, 401)
    assert "token-expired" in world.reasons()
    log = "".join(world.secured.registry.log)
    assert not any(token.split(".")[1] in log for token in (good, *refused.values()))
    assert world.register(good) == 200


def test_a_rotated_key(world: World) -> None:
    """The new key is taken at once, the old one as long as the server publishes it."""
    first, second = world.server.keys[0], new_key("second")
    old = world.server.token(SERVICE)
    assert world.register(old) == 200
    restart(world.server, [second, first])
    new = world.server.token(SERVICE)
    assert decoded(new.split(".")[0])["kid"] == "second"
    time.sleep(MIN_REFRESH_SECONDS)  # so often the registry asks at most
    assert world.register(new) == 200
    assert world.register(old) == 200
    restart(world.server, [second])
    time.sleep(MIN_REFRESH_SECONDS + 1)
    assert world.register(new) == 200
    assert world.register(old) == 401
    assert world.reasons() == ["token-unknown-key"]


def restart(server: OidcServer, keys: list[Any]) -> None:
    server.stop()
    server.keys = keys
    server.start()


def test_the_server_is_away(world: World) -> None:
    """The registry still knows the answers that it had before."""
    token = world.server.token(SERVICE)
    assert world.register(token) == 200
    world.server.stop()
    assert world.register(token) == 200
    world.server.start()


def test_a_person_signs_in(world: World) -> None:
    """The authorization code flow with PKCE, which the server requires, as a browser goes through it."""
    with httpx.Client(timeout=60) as browser:
        assert browser.get(f"{world.url}/watson/").status_code == 401
        visited = visit(browser, f"{world.url}/sign-in/oidc?next=/watson/namespaces/cdc.shop", "shop-alice")
        authorization = httpx.URL(next(url for url in visited.urls if url.startswith(f"{world.server.url}/auth?")))
        assert authorization.params["code_challenge_method"] == "S256"
        callback = next(url for url in visited.urls if url.startswith(f"{world.url}/sign-in/oidc/callback"))
        assert httpx.URL(callback).params["iss"] == world.server.url
        assert visited.urls[-1] == f"{world.url}/watson/namespaces/cdc.shop"
        assert visited.answer.status_code == 404, "she may read it; nothing is there yet"
        who = browser.get(f"{world.url}/api/v1/me").json()
        assert (who["actor"], who["grants"]) == ("oidc:shop-alice", ["reader:cdc.shop"])
        assert browser.get(f"{world.url}/watson/namespaces/cdc.other").status_code == 403
        assert browser.get(callback).status_code == 401, "an answer is taken once"
    with httpx.Client(timeout=60) as another:
        assert another.get(callback).status_code == 401, "and from the browser that asked alone"
        nobody = visit(another, f"{world.url}/sign-in/oidc?next=/watson/", "unknown")
        assert nobody.answer.status_code == 403
        assert "has no role here" in nobody.answer.text
    assert world.reasons() == ["sign-in-state", "sign-in-state"]


def test_confluents_clients_fetch_their_own_tokens(world: World) -> None:
    python = {
        "url": world.url,
        "bearer.auth.credentials.source": "OAUTHBEARER",
        "bearer.auth.client.id": SERVICE,
        "bearer.auth.client.secret": SECRET,
        "bearer.auth.scope": "registry.write",
        "bearer.auth.issuer.endpoint.url": f"{world.server.url}/token",
        "bearer.auth.logical.cluster": "none",
        "bearer.auth.identity.pool.id": "none",
    }
    with SchemaRegistryClient(python) as client:
        schema_id = client.register_schema("cdc.shop.orders-value", Schema(json.dumps(ORDER), "AVRO"))
    javascript = {
        "credentialsSource": "OAUTHBEARER",
        "clientId": SERVICE,
        "clientSecret": SECRET,
        "scope": "registry.write",
        "issuerEndpointUrl": f"{world.server.url}/token",
        "logicalCluster": "none",
        "identityPoolId": "none",
    }
    with JavaScriptClient(world.url, bearerAuthCredentials=javascript) as other:
        schema = {"schema": json.dumps(ORDER), "schemaType": "AVRO"}
        assert other.call("register", "cdc.shop.orders-value", schema, False) == schema_id
