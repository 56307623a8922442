"""OIDC tokens: their signature, their claims, and the grants that follow from them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from joserfc import jwt
from joserfc.errors import ExpiredTokenError, JoseError

from cdc_common.errors.codes import CdcError, Code
from schematizer.access import ANONYMOUS, Actor, Grant, Grants, grant_from_text

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from joserfc.jwk import GuestProtocol

    from schematizer.security.issuer import Issuer, PublicKey

ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA", "Ed25519")
"""Asymmetric ones only: `none` and those of a shared secret prove nothing."""
MAX_TOKEN_BYTES = 16 << 10
_MAX_NAME = 200


class InvalidTokenError(Exception):
    """A token that proves nothing; the reason is for the log and never for the caller."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class ClaimRule(NamedTuple):
    """The grant of those whose token has a value in a claim."""

    # The claim's name.
    claim: str
    # The value.
    value: str
    # The grant.
    grant: Grant


class Claims:
    """The meaning of claims here. `name_claim`: the one that names the actor."""

    def __init__(self, name_claim: str, rules: Sequence[ClaimRule]) -> None:
        self._name_claim = name_claim
        self._rules = tuple(rules)

    def actor(self, claims: Mapping[str, Any]) -> Actor:
        """Return the actor. InvalidTokenError if the claims name no one."""
        name = claims.get(self._name_claim)
        if not isinstance(name, str) or not 0 < len(name) <= _MAX_NAME or not name.isprintable():
            raise InvalidTokenError("no-name")
        grants = Grants(tuple(rule.grant for rule in self._rules if rule.value in _values(claims.get(rule.claim))))
        actor = Actor(f"oidc:{name}", grants)
        assert actor.name != ANONYMOUS
        return actor


class Tokens:
    """Verifies the tokens that an issuer signed for an audience. Several threads may use one."""

    def __init__(self, issuer: Issuer, audience: str, skew_seconds: int) -> None:
        self._issuer = issuer
        self._registry = jwt.JWTClaimsRegistry(
            leeway=skew_seconds,
            iss={"essential": True, "value": issuer.url},
            aud={"essential": True, "value": audience},
            exp={"essential": True},
            sub={"essential": True},
        )

    def claims(self, token: str) -> dict[str, Any]:
        """Return the token's claims. InvalidTokenError; CatalogueError UNAVAILABLE if the issuer's keys
        are not known.
        """
        if len(token) > MAX_TOKEN_BYTES:
            raise InvalidTokenError("too-long")
        try:
            decoded = jwt.decode(token, self._key_of, algorithms=ALGORITHMS)
            self._registry.validate(decoded.claims)
        except ExpiredTokenError as error:
            raise InvalidTokenError("expired") from error
        except JoseError as error:
            raise InvalidTokenError(error.error.replace("_", "-")) from error
        except (ValueError, TypeError, RecursionError) as error:
            raise InvalidTokenError("unreadable") from error
        return decoded.claims

    def _key_of(self, token: GuestProtocol) -> PublicKey:
        header = token.headers()
        algorithm, key_id = header.get("alg"), header.get("kid")
        if algorithm not in ALGORITHMS:
            raise InvalidTokenError("algorithm")
        if key_id is not None and not isinstance(key_id, str):
            raise InvalidTokenError("key-id")
        key = self._issuer.key(key_id)
        if key is None:
            raise InvalidTokenError("unknown-key")
        if key.get("alg", algorithm) != algorithm:
            raise InvalidTokenError("algorithm")
        return key


def claim_rules(texts: Sequence[str]) -> list[ClaimRule]:
    """Parses the setting oidc_grants. A value may hold colons and equal signs. CdcError CONFIG_INVALID."""
    return [_claim_rule(text) for text in texts]


def _claim_rule(text: str) -> ClaimRule:
    claim, equals, rest = text.partition("=")
    value, _, grant = rest.rpartition(":")
    value, colon, role = value.rpartition(":")
    try:
        if not (claim and equals and value and colon):
            raise ValueError("a part is missing")  # noqa: TRY301 - reported as the others are
        return ClaimRule(claim, value, grant_from_text(f"{role}:{grant}"))
    except ValueError as error:
        raise CdcError(
            Code.CONFIG_INVALID,
            f"{text!r} in schematizer.oidc_grants is not CLAIM=VALUE:ROLE:NAMESPACE: {error}.",
            "Write it as in groups=data-team:writer:cdc.shop.",
        ) from error


def _values(claim: object) -> frozenset[str]:
    """A list of texts, or one text of words, as `scope` is."""
    if isinstance(claim, str):
        return frozenset((claim, *claim.split()))
    if isinstance(claim, list):
        return frozenset(item for item in claim if isinstance(item, str))
    return frozenset()
