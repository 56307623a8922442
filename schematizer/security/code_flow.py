"""Signing in by OIDC: the authorization code flow with PKCE.

Everything that the flow must remember follows from one random cookie: state, nonce and code verifier are HMACs of it.
So nothing is stored before a user is signed in, and an answer that another browser asked for is refused.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
from typing import TYPE_CHECKING, Any, NamedTuple

import httpx
import structlog
from authlib.common.errors import AuthlibBaseError
from authlib.integrations.httpx_client import OAuth2Client

from cdc_common.errors.codes import Code
from schematizer.errors import CatalogueError, Refusal
from schematizer.security.issuer import TIMEOUT_SECONDS, Issuer
from schematizer.security.tokens import Claims, InvalidTokenError, Tokens

if TYPE_CHECKING:
    from schematizer.access import Actor
    from schematizer.settings import SchematizerSettings

CALLBACK = "/sign-in/oidc/callback"


class Begun(NamedTuple):
    """The beginning of a login with OIDC."""

    # The value that the browser must bring back.
    cookie: str
    # Where the browser goes now.
    url: str


class CodeFlow:
    """Several threads may use one."""

    def __init__(self, settings: SchematizerSettings, issuer: Issuer, claims: Claims) -> None:
        self._issuer = issuer
        self._claims = claims
        self._tokens = Tokens(issuer, settings.oidc_client_id, settings.oidc_clock_skew_seconds)
        self._client_id = settings.oidc_client_id
        self._secret = settings.oidc_client_secret
        self._scopes = settings.oidc_scopes
        self._redirect_uri = f"{settings.public_url}{CALLBACK}"

    def begin(self, after: str) -> Begun:
        """`after`: the path to go to when all is done. CatalogueError UNAVAILABLE."""
        random = secrets.token_urlsafe(32)
        cookie = f"{random}.{base64.urlsafe_b64encode(after.encode()).decode()}"
        endpoint = self._issuer.endpoints().authorization
        with self._client() as client:
            url, _ = client.create_authorization_url(
                endpoint,
                state=_derived(cookie, "state"),
                nonce=_derived(cookie, "nonce"),
                code_verifier=_derived(cookie, "verifier"),
            )
        return Begun(cookie, str(url))

    def finish(self, cookie: str, code: str, state: str, issuer: str | None) -> tuple[Actor, str]:
        """Return who signed in, and the path to go to. InvalidTokenError if the answer is not to this browser's
        question, or proves nothing; CatalogueError UNAVAILABLE if the issuer does not give a token.
        """
        if not cookie or not hmac.compare_digest(_derived(cookie, "state").encode(), state.encode()):
            raise InvalidTokenError("state")
        if issuer not in (None, self._issuer.url):
            raise InvalidTokenError("other-issuer")
        answer = self._fetch(code, _derived(cookie, "verifier"))
        claims = self._tokens.claims(str(answer.get("id_token", "")))
        nonce = claims.get("nonce")
        if not isinstance(nonce, str) or not hmac.compare_digest(_derived(cookie, "nonce").encode(), nonce.encode()):
            raise InvalidTokenError("nonce")
        return self._claims.actor(claims), _after(cookie)

    def _fetch(self, code: str, verifier: str) -> dict[str, Any]:
        try:
            with self._client() as client:
                answer: dict[str, Any] = client.fetch_token(
                    self._issuer.endpoints().token, grant_type="authorization_code", code=code, code_verifier=verifier
                )
        except AuthlibBaseError as error:
            raise InvalidTokenError("code") from error
        except (httpx.HTTPError, ValueError) as error:
            structlog.get_logger(__name__).error(
                "OIDC issuer failed", code=Code.REGISTRY_ISSUER.text, issuer=self._issuer.url, reason=str(error)
            )
            raise CatalogueError(
                Refusal.UNAVAILABLE, "The OIDC issuer gives no token.", "Try again; see the registry's log (CDC-039)."
            ) from error
        return answer

    def _client(self) -> OAuth2Client:
        secret = self._secret.get_secret_value()
        return OAuth2Client(
            client_id=self._client_id,
            client_secret=secret or None,
            token_endpoint_auth_method="client_secret_basic" if secret else "none",
            scope=self._scopes,
            redirect_uri=self._redirect_uri,
            code_challenge_method="S256",
            verify=self._issuer.verify,
            timeout=TIMEOUT_SECONDS,
        )


def _derived(cookie: str, purpose: str) -> str:
    digest = hmac.new(cookie.encode(), purpose.encode(), hashlib.sha256).digest()
    return base64.urlsafe_b64encode(digest).rstrip(b"=").decode()


def _after(cookie: str) -> str:
    return base64.urlsafe_b64decode(cookie.partition(".")[2]).decode()
