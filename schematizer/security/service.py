"""The security of a registry as one object, made of its settings."""

from __future__ import annotations

from typing import TYPE_CHECKING

import structlog

from schematizer.access import Role
from schematizer.security.audit import AuditLog
from schematizer.security.authenticator import Authenticator, Bearers, Limits
from schematizer.security.code_flow import CodeFlow
from schematizer.security.gate import Bounds, Gate
from schematizer.security.issuer import Issuer
from schematizer.security.keys import ApiKeys
from schematizer.security.limits import TokenBuckets
from schematizer.security.policy import BURST_SECONDS, check_logins, is_loopback, policy_of
from schematizer.security.sessions import Sessions
from schematizer.security.sign_in import sign_in_application
from schematizer.security.tls import ServerCertificate
from schematizer.security.tokens import Claims, Tokens, claim_rules

if TYPE_CHECKING:
    from collections.abc import Callable

    from fastapi import FastAPI
    from starlette.types import ASGIApp

    from schematizer.model.database import Database
    from schematizer.settings import SchematizerSettings

_FAILURES_AT_ONCE = 10.0


class Security:
    """`access` decides on requests, `gate` stands before the service, `certificate` is None without TLS."""

    def __init__(self, settings: SchematizerSettings, database: Database) -> None:
        """CdcError CONFIG_INVALID, REGISTRY_OPEN or REGISTRY_CERTIFICATE."""
        self._settings = settings
        self.policy = policy_of(settings)
        self.keys = ApiKeys(database)
        check_logins(settings, has_keys=self.keys.is_any_usable())
        certificate = settings.tls_certificate_file
        self.certificate = ServerCertificate(settings, certificate) if certificate else None
        self.sessions = Sessions(database, settings.session_hours * 3600)
        self.audit = AuditLog(database, settings.audit_days)
        claims = Claims(settings.oidc_name_claim, claim_rules(settings.oidc_grants))
        issuer = _issuer(settings)
        bearers = (
            None
            if issuer is None
            else Bearers(Tokens(issuer, settings.oidc_audience, settings.oidc_clock_skew_seconds), claims)
        )
        failures = settings.failed_logins_per_minute / 60
        limits = Limits(self._buckets(), TokenBuckets(failures, _FAILURES_AT_ONCE))
        self.access = Authenticator(self.policy, self.keys, self.sessions, bearers, self.audit, limits)
        self._flow = CodeFlow(settings, issuer, claims) if issuer and settings.oidc_client_id else None

    def warn(self) -> None:
        """Warns of what the settings allow and few may want."""
        log, own = structlog.get_logger(__name__), self._settings
        if is_loopback(own.host):
            return
        if self.policy.anonymous.allows(Role.WRITER, None):
            log.warning("anyone may write", setting="schematizer.open_writes")
        if self.certificate is None and not own.trusted_proxies:
            log.warning("keys and tokens are sent without TLS", setting="schematizer.tls_certificate_file")

    def gate(self, app: ASGIApp, count_refusal: Callable[[str], None]) -> Gate:
        own = self._settings
        bounds = Bounds(own.max_body_bytes, own.body_seconds, own.request_seconds)
        return Gate(app, self.policy, bounds, self._buckets(), self.audit, count_refusal)

    def sign_in(self) -> FastAPI:
        return sign_in_application(self.access, self.sessions, self.audit, self._flow)

    def _buckets(self) -> TokenBuckets | None:
        rate = self.policy.rate
        return None if rate is None else TokenBuckets(rate, max(rate * BURST_SECONDS, 1.0))


def _issuer(settings: SchematizerSettings) -> Issuer | None:
    if settings.oidc_issuer is None:
        return None
    return Issuer(settings.oidc_issuer, settings.oidc_ca_file, settings.oidc_keys_seconds)
