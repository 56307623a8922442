"""API keys and OIDC tokens: which are believed, what is refused, and what the audit log and the program's log say."""

from __future__ import annotations

import base64
import hmac
import json
import time
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from joserfc import jwt
from joserfc.jwk import RSAKey
from structlog.testing import capture_logs

from cdc_common.errors.codes import CdcError, Code
from schematizer.model.security_tables import Result
from schematizer.security import issuer as issuer_module
from schematizer.security.policy import check_logins, policy_of
from schematizer.security.tokens import claim_rules
from schematizer.settings import SchematizerSettings
from tests.support.schematizer.oidc_issuer import AUDIENCE, TestIssuer
from tests.support.schematizer.secured import CLOSED, RECORD, Secured

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

VERSIONS = "/subjects/cdc.shop.orders-value/versions"


@pytest.fixture
def secured(tmp_path: Path) -> Secured:
    return Secured(tmp_path, **CLOSED)


@pytest.fixture
def issuer() -> Iterator[TestIssuer]:
    with TestIssuer() as running:
        yield running


def with_issuer(folder: Path, issuer: TestIssuer, **settings: Any) -> Secured:  # noqa: ANN401 - of SchematizerSettings
    grants = ["groups=data:writer:cdc.shop", "scope=registry.read:reader:*"]
    return Secured(folder, **CLOSED, oidc_issuer=issuer.url, oidc_audience=AUDIENCE, oidc_grants=grants, **settings)


def bearer(secured: Secured, token: str, path: str = "/api/v1/me") -> Any:  # noqa: ANN401 - a response
    return secured.client().get(path, headers={"Authorization": f"Bearer {token}"})


def test_a_key_logs_in_by_basic_and_by_bearer(secured: Secured) -> None:
    key = secured.key("writer:cdc.shop", name="orders")
    basic = secured.client(key)
    assert basic.post(VERSIONS, json={"schema": RECORD}).status_code == 200
    assert basic.get("/api/v1/me").json() == {"actor": "key:orders", "grants": ["writer:cdc.shop"]}
    assert bearer(secured, key.bearer).json()["actor"] == "key:orders"


def test_only_a_hash_is_stored(secured: Secured, tmp_path: Path) -> None:
    key = secured.key("writer:cdc.shop")
    secured.client(key).post(VERSIONS, json={"schema": RECORD})
    stored = b"".join(file.read_bytes() for file in tmp_path.glob("registry.db*"))
    assert key.key.key_id.encode() in stored
    assert key.secret.encode() not in stored


def test_what_a_failed_login_says_and_logs(secured: Secured) -> None:
    """One answer for an unknown key and a wrong secret; no secret in any log."""
    key = secured.key("admin:*")
    wrong = "wrong-secret-of-somebody"
    with capture_logs() as events:
        answers = [
            secured.client().get("/subjects", auth=auth)
            for auth in ((key.key.key_id, wrong), ("cdck_unknown", wrong), (key.key.key_id, ""), ("", wrong))
        ]
    assert {answer.status_code for answer in answers} == {401}
    assert len({answer.text for answer in answers}) == 1
    assert answers[0].headers.get_list("www-authenticate")[0].startswith("Basic ")
    assert wrong not in json.dumps(events)
    entries = secured.security.audit.entries()
    assert {(entry.result, entry.reason) for entry in entries} == {(Result.REFUSED, "key")}
    assert wrong not in "".join(entry.model_dump_json() for entry in entries)
    assert secured.refused("login") == 4


@pytest.mark.parametrize(
    "header", ["Basic", "Basic !!!", "Basic YQ==", "Digest a", "Bearer", "Bearer a.b.c", "x" * 5000]
)
def test_credentials_that_are_none(secured: Secured, header: str) -> None:
    assert secured.client().get("/subjects", headers={"Authorization": header}).status_code == 401


def test_a_key_ends_when_it_is_revoked_or_expires(secured: Secured, monkeypatch: pytest.MonkeyPatch) -> None:
    admin = secured.client(secured.admin)
    made = admin.post("/api/v1/keys", json={"name": "app", "grants": ["reader:*"]})
    assert made.status_code == 201
    assert made.headers["cache-control"] == "no-store"
    key_id, secret = made.json()["key"]["key_id"], made.json()["secret"]
    app = secured.client()
    app.auth = (key_id, secret)
    assert app.get("/subjects").status_code == 200
    assert secret not in admin.get("/api/v1/keys").text
    assert admin.delete(f"/api/v1/keys/{key_id}").json()["revoked_by"] == "key:first"
    assert app.get("/subjects").status_code == 401
    soon = secured.security.keys.create("b", ["reader:*"], datetime.now(UTC) + timedelta(hours=1), by="t")
    client = secured.client(soon)
    assert client.get("/subjects").status_code == 200
    later = datetime.now(UTC) + timedelta(hours=2)
    monkeypatch.setattr("schematizer.security.keys.now", lambda: later)
    assert client.get("/subjects").status_code == 401


def test_the_audit_log_of_a_write_and_of_a_refusal(secured: Secured) -> None:
    writer = secured.client(secured.key("writer:cdc.shop", name="orders"))
    writer.post(VERSIONS, json={"schema": RECORD})
    writer.post(VERSIONS, json={"schema": "nonsense"})
    writer.put("/config", json={"compatibility": "NONE"})
    writer.get("/subjects")
    found = secured.client(secured.admin).get("/api/v1/audit").json()
    about = VERSIONS
    versions = "POST /subjects/{subject:path}/versions"
    assert [
        (record["actor"], record["action"], record["about"], record["result"], record["status"]) for record in found[:3]
    ] == [
        ("key:orders", versions, about, "done", 200),
        ("key:orders", versions, about, "failed", 422),
        ("key:orders", "PUT /config", "/config", "refused", 403),
    ]
    assert {(record["namespace"], record["address"]) for record in found[:2]} == {("cdc.shop", "192.0.2.1")}
    assert len(found) == 4, "reading leaves no record; asking for the audit log, as an administrator, does"


def test_no_write_without_its_record(secured: Secured, monkeypatch: pytest.MonkeyPatch) -> None:
    writer = secured.client(secured.key("writer:cdc.shop"), raise_server_exceptions=False)

    def full(_deed: object) -> int:
        raise OSError("no space")

    monkeypatch.setattr(secured.security.audit, "record", full)
    assert writer.post(VERSIONS, json={"schema": RECORD}).status_code == 500
    assert secured.store.subjects("", deleted=True, only_deleted=False) == []


def test_a_token_of_the_issuer(tmp_path: Path, issuer: TestIssuer) -> None:
    secured = with_issuer(tmp_path, issuer)
    answer = bearer(secured, issuer.token(groups=["data", "other"]))
    assert answer.json() == {"actor": "oidc:alice", "grants": ["writer:cdc.shop"]}
    assert bearer(secured, issuer.token(scope="openid registry.read")).json()["grants"] == ["reader:*"]
    assert bearer(secured, issuer.token(aud=["other", AUDIENCE], groups="data")).status_code == 200
    assert bearer(secured, issuer.token()).status_code == 403, "a token without a role may do nothing"


def part(value: object) -> str:
    """A part of a token, encoded."""
    data = value if isinstance(value, bytes) else json.dumps(value).encode()
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def signed_with_the_public_key(issuer: TestIssuer) -> str:
    """HMAC with what everyone knows. The library makes no such token, so that this does."""
    public = issuer.first.get_op_key("verify").public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    signed = f"{part({'alg': 'HS256', 'kid': 'first'})}.{part(issuer.claims(groups='data'))}"
    return f"{signed}.{part(hmac.digest(public, signed.encode(), 'sha256'))}"


def signed_otherwise(issuer: TestIssuer) -> str:
    """Return a token signed by the issuer's own key, with an algorithm that the key is not for."""
    key = RSAKey.import_key(
        {name: value for name, value in issuer.first.as_dict(private=True).items() if name != "alg"}
    )
    return jwt.encode({"alg": "PS256", "kid": "first"}, issuer.claims(groups="data"), key, algorithms=["PS256"])


def with_other_claims(issuer: TestIssuer) -> str:
    header, _, signature = issuer.token(groups="none").split(".")
    return f"{header}.{part(issuer.claims(groups='data'))}.{signature}"


FORGED: dict[str, Callable[[TestIssuer], str]] = {
    "no signature": lambda issuer: f"{part({'alg': 'none', 'kid': 'first'})}.{part(issuer.claims(groups='data'))}.",
    "HS256 with the public key": signed_with_the_public_key,
    "another algorithm of the key": signed_otherwise,
    "another key with the same id": lambda issuer: issuer.token(
        RSAKey.generate_key(2048, {"kid": "first"}), groups="data"
    ),
    "an unknown key": lambda issuer: issuer.token(RSAKey.generate_key(2048, {"kid": "unknown"}), groups="data"),
    "changed claims": with_other_claims,
}


def forged(issuer: TestIssuer, case: str) -> str:
    if case in FORGED:
        return FORGED[case](issuer)
    now = int(time.time())
    changes: dict[str, dict[str, Any]] = {
        "another audience": {"aud": "other"},
        "no audience": {"aud": None},
        "another issuer": {"iss": "https://evil.example"},
        "expired": {"exp": now - 31},
        "no expiry": {"exp": None},
        "not yet valid": {"nbf": now + 60},
        "from the future": {"iat": now + 60},
        "no subject": {"sub": None},
        "expires never": {"exp": float("inf")},
    }
    return issuer.token(**{"groups": "data", **changes[case]})


@pytest.mark.parametrize(
    "case",
    [
        "no signature",
        "HS256 with the public key",
        "another key with the same id",
        "an unknown key",
        "another algorithm of the key",
        "changed claims",
        "another audience",
        "no audience",
        "another issuer",
        "expired",
        "no expiry",
        "not yet valid",
        "from the future",
        "no subject",
        "expires never",
    ],
)
def test_tokens_that_prove_nothing(tmp_path: Path, issuer: TestIssuer, case: str) -> None:
    secured = with_issuer(tmp_path, issuer)
    assert bearer(secured, issuer.token(groups="data")).status_code == 200
    token = forged(issuer, case)
    answer = bearer(secured, token)
    assert answer.status_code == 401
    assert answer.json()["message"] == "The login failed."


def test_clocks_that_differ_a_little(tmp_path: Path, issuer: TestIssuer) -> None:
    secured, now = with_issuer(tmp_path, issuer), int(time.time())
    assert bearer(secured, issuer.token(groups="data", exp=now - 10, nbf=now + 10, iat=now + 10)).status_code == 200


def test_a_rotated_key(tmp_path: Path, issuer: TestIssuer, monkeypatch: pytest.MonkeyPatch) -> None:
    """The new one is asked for when it is seen, though not for each token of an unknown one; the old one ends with the
    cache.
    """
    secured = with_issuer(tmp_path, issuer)
    assert bearer(secured, issuer.token(groups="data")).status_code == 200
    for _ in range(5):
        assert bearer(secured, forged(issuer, "an unknown key")).status_code == 401
    assert issuer.answers["/jwks"] == 1
    issuer.keys = [issuer.second]
    monkeypatch.setattr(issuer_module, "MIN_REFRESH_SECONDS", 0.0)
    assert bearer(secured, issuer.token(groups="data")).status_code == 200, "its key is cached"
    assert bearer(secured, issuer.token(issuer.second, groups="data")).status_code == 200
    assert bearer(secured, issuer.token(groups="data")).status_code == 401
    issuer.is_down = True
    assert bearer(secured, issuer.token(issuer.second, groups="data")).status_code == 200, "known keys go on"


def test_an_issuer_that_does_not_answer(tmp_path: Path, issuer: TestIssuer) -> None:
    secured = with_issuer(tmp_path, issuer)
    issuer.is_down = True
    with capture_logs() as events:
        assert bearer(secured, issuer.token()).status_code == 503
    assert [event["code"] for event in events if "code" in event] == [Code.REGISTRY_ISSUER.text]
    assert secured.client(secured.admin).get("/subjects").status_code == 200, "keys need no issuer"


@pytest.mark.parametrize(
    ("settings", "code", "named"),
    [
        ({"host": "0.0.0.0"}, Code.REGISTRY_OPEN, "schematizer.open_writes"),  # noqa: S104 - what is tried
        ({"open_writes": False}, Code.REGISTRY_OPEN, "schematizer.open_writes"),
        ({"oidc_issuer": "https://issuer"}, Code.CONFIG_INVALID, "schematizer.oidc_audience"),
        ({"oidc_client_id": "web"}, Code.CONFIG_INVALID, "schematizer.public_url"),
        ({"tls_key_file": "/key"}, Code.CONFIG_INVALID, "schematizer.tls_certificate_file"),
    ],
)
def test_settings_that_do_not_do(settings: dict[str, Any], code: Code, named: str) -> None:
    with pytest.raises(CdcError) as caught:
        check_logins(SchematizerSettings(**settings), has_keys=False)
    assert caught.value.code is code
    assert named in caught.value.problem + caught.value.fix


def test_what_is_open_by_default() -> None:
    assert policy_of(SchematizerSettings()).anonymous.every
    away = SchematizerSettings(host="0.0.0.0")  # noqa: S104 - what is tried
    assert not policy_of(away).anonymous.every
    assert policy_of(away).rate == 100
    assert policy_of(away).knows_host("example.com")
    check_logins(away, has_keys=True)
    check_logins(away.model_copy(update={"open_writes": True}), has_keys=False)


@pytest.mark.parametrize("open_writes", [None, True])
def test_a_registry_that_only_its_address_protects_knows_its_host(*, open_writes: bool | None) -> None:
    policy = policy_of(SchematizerSettings(open_writes=open_writes, public_url="http://registry.example.com:8081"))
    assert policy.knows_host("127.0.0.1:8081")
    assert policy.knows_host("registry.example.com:8081")
    assert not policy.knows_host("elsewhere.example.com")
    assert policy_of(SchematizerSettings(open_writes=False)).knows_host("elsewhere.example.com")


@pytest.mark.parametrize(
    "text", ["groups", "groups=a", "groups=a:writer", "=a:writer:*", "groups=:writer:*", "g=a:boss:*"]
)
def test_grants_of_claims_that_are_none(text: str) -> None:
    with pytest.raises(CdcError, match="oidc_grants"):
        claim_rules([text])


def test_a_claim_with_colons() -> None:
    [rule] = claim_rules(["groups=urn:x=1:team:writer:cdc.*"])
    assert (rule.claim, rule.value, str(rule.grant)) == ("groups", "urn:x=1:team", "writer:cdc.*")
