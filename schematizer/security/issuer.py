"""An OIDC issuer: what its discovery document says, and the keys with which it signs."""

from __future__ import annotations

import ssl
from threading import Lock
from time import monotonic
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit

import httpx
import structlog
from joserfc.errors import JoseError
from joserfc.jwk import ECKey, JWKRegistry, OKPKey, RSAKey

from cdc_common.errors.codes import CdcError, Code
from schematizer.errors import CatalogueError, Refusal
from schematizer.security.policy import is_loopback

if TYPE_CHECKING:
    from pathlib import Path

PublicKey = RSAKey | ECKey | OKPKey
DISCOVERY = "/.well-known/openid-configuration"
TIMEOUT_SECONDS = 5.0
MIN_REFRESH_SECONDS = 10.0
"""An unknown key id makes the registry ask for the keys again, but not more often than this."""
MAX_STALE_SECONDS = 24 * 3600.0
"""How long keys are used that the issuer, which does not answer, may have withdrawn."""
_MAX_BYTES = 1 << 20
_MAX_KEYS = 100


class Endpoints(NamedTuple):
    """The addresses of an issuer."""

    # The address of its public keys.
    jwks: str
    # The address of its login; empty if the issuer has none.
    authorization: str
    # The address that gives tokens; empty if the issuer has none.
    token: str


class Issuer:
    """Asks the issuer when something is needed, and remembers it. Several threads may use one."""

    def __init__(self, url: str, ca_file: Path | None, keys_seconds: float) -> None:
        """CdcError CONFIG_INVALID for a URL without TLS, or a file that holds no certificates."""
        _check_url(url)
        self.url = url
        self._keys_seconds = keys_seconds
        self.verify: ssl.SSLContext = _trust(ca_file)
        self._endpoints: Endpoints | None = None
        self._keys: dict[str | None, PublicKey] = {}
        self._fetched_at: float | None = None
        self._asked_at: float | None = None
        self._lock = Lock()

    def endpoints(self) -> Endpoints:
        """Return the issuer's endpoints. CatalogueError UNAVAILABLE if the issuer does not say them."""
        found = self._endpoints
        if found is None:
            found = self._endpoints = self._discover()
        return found

    def key(self, key_id: str | None) -> PublicKey | None:
        """The key with this id; of an issuer with one key, that one if the token names none. CatalogueError
        UNAVAILABLE if the issuer's keys are not known.
        """
        self._refresh(is_unknown=key_id is not None and key_id not in self._keys)
        keys = self._keys
        if key_id is None and len(keys) == 1:
            return next(iter(keys.values()))
        return keys.get(key_id)

    def _refresh(self, *, is_unknown: bool) -> None:
        if not self._is_due(is_unknown=is_unknown):
            return
        # While one thread asks, those that have keys go on with them.
        if not self._lock.acquire(blocking=self._fetched_at is None):
            return
        try:
            if self._is_due(is_unknown=is_unknown):
                self._fetch_keys()
        finally:
            self._lock.release()

    def _is_due(self, *, is_unknown: bool) -> bool:
        if self._asked_at is not None and monotonic() - self._asked_at < MIN_REFRESH_SECONDS:
            if self._fetched_at is None:
                raise _unavailable()
            return False
        return is_unknown or self._fetched_at is None or monotonic() - self._fetched_at > self._keys_seconds

    def _fetch_keys(self) -> None:
        self._asked_at = monotonic()
        try:
            self._keys = _public_keys(self._get(self.endpoints().jwks))
            self._fetched_at = monotonic()
        except CatalogueError:
            if self._fetched_at is None or monotonic() - self._fetched_at > MAX_STALE_SECONDS:
                self._keys, self._fetched_at = {}, None
                raise

    def _discover(self) -> Endpoints:
        document = self._get(self.url.rstrip("/") + DISCOVERY)
        if document.get("issuer") != self.url:
            raise self._failed(f"its discovery document names the issuer {document.get('issuer')!r}")
        found = Endpoints(
            *(str(document.get(name) or "") for name in ("jwks_uri", "authorization_endpoint", "token_endpoint"))
        )
        if not found.jwks:
            raise self._failed("its discovery document has no jwks_uri")
        for url in found:
            if url and not _is_safe(url):
                raise self._failed(f"its discovery document names {url}, which is not https")
        return found

    def _get(self, url: str) -> dict[str, Any]:
        try:
            with (
                httpx.Client(verify=self.verify, timeout=TIMEOUT_SECONDS) as client,
                client.stream("GET", url, headers={"Accept": "application/json"}) as response,
            ):
                response.raise_for_status()
                body = b""
                for chunk in response.iter_bytes():
                    body += chunk
                    if len(body) > _MAX_BYTES:
                        raise self._failed(f"{url} is larger than {_MAX_BYTES} bytes")
                value = httpx.Response(200, content=body).json()
        except (httpx.HTTPError, ValueError, RecursionError) as error:
            raise self._failed(f"{url}: {error or type(error).__name__}") from error
        if not isinstance(value, dict):
            raise self._failed(f"{url} is not a JSON object")
        return value

    def _failed(self, reason: str) -> CatalogueError:
        structlog.get_logger(__name__).error(
            "OIDC issuer failed", code=Code.REGISTRY_ISSUER.text, issuer=self.url, reason=reason
        )
        return _unavailable()


def _unavailable() -> CatalogueError:
    return CatalogueError(
        Refusal.UNAVAILABLE, "The OIDC issuer cannot be asked.", "Try again; see the registry's log (CDC-039)."
    )


def _public_keys(document: dict[str, Any]) -> dict[str | None, PublicKey]:
    """Keys for signatures, by id. A symmetric key is none: its owner is not the issuer alone."""
    found: dict[str | None, PublicKey] = {}
    keys = document.get("keys")
    for data in keys[:_MAX_KEYS] if isinstance(keys, list) else ():
        if not isinstance(data, dict) or data.get("use", "sig") != "sig" or data.get("kty") == "oct":
            continue
        try:
            key = JWKRegistry.import_key(data)
        except (JoseError, ValueError, TypeError):
            continue  # of a kind that this library does not know
        if isinstance(key, (RSAKey, ECKey, OKPKey)):
            found[data.get("kid")] = key
    return found


def _is_safe(url: str) -> bool:
    parts = urlsplit(url)
    return parts.scheme == "https" or (parts.scheme == "http" and is_loopback(parts.hostname or ""))


def _check_url(url: str) -> None:
    if not _is_safe(url):
        raise CdcError(
            Code.CONFIG_INVALID,
            f"schematizer.oidc_issuer {url} is not https: anyone on the network path could sign tokens.",
            "Name the issuer's https URL. Plain http is accepted only for a loopback address.",
        )


def _trust(ca_file: Path | None) -> ssl.SSLContext:
    try:
        return ssl.create_default_context(cafile=None if ca_file is None else str(ca_file))
    except OSError as error:
        raise CdcError(
            Code.CONFIG_INVALID,
            f"schematizer.oidc_ca_file {ca_file} cannot be used: {error.strerror or error}.",
            "Name a PEM file with the certificates of the authorities to trust.",
        ) from error
