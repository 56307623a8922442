"""Paths that are open without a login, and settings that the registry must have before it listens."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from cdc_common.errors.codes import CdcError, Code
from schematizer.access import EVERYTHING, NOTHING, Grant, Grants, Role

if TYPE_CHECKING:
    from schematizer.settings import SchematizerSettings

RATE_OFF_LOOPBACK = 100.0
BURST_SECONDS = 5.0
_LOCAL_NAME = "localhost"


@dataclass(frozen=True, slots=True)
class Policy:
    """The rules for requests."""

    # The rights of those who did not log in.
    anonymous: Grants
    # The requests a second of an address or an actor; None for no limit.
    rate: float | None
    # The names under which browsers may call an open registry; None for any.
    hosts: frozenset[str] | None
    # The places that forms may come from besides the host that they are sent to.
    origins: frozenset[str]

    def knows_host(self, host: str) -> bool:
        """Whether a Host header names this registry. A name that any owner of a domain can point here does not, where
        only the address protects it (DNS rebinding).
        """
        name = host_name(host)
        return self.hosts is None or is_loopback(name) or name in self.hosts


def policy_of(settings: SchematizerSettings) -> Policy:
    is_local = is_loopback(settings.host)
    reads = is_local if settings.open_reads is None else settings.open_reads
    writes = is_local if settings.open_writes is None else settings.open_writes
    own = urlsplit(settings.public_url or "").hostname
    rate = settings.requests_per_second
    return Policy(
        anonymous=EVERYTHING if writes else Grants((Grant(Role.READER, "*"),)) if reads else NOTHING,
        rate=rate if rate is not None or is_local else RATE_OFF_LOOPBACK,
        hosts=frozenset({own} if own else ()) if is_local and writes else None,
        origins=frozenset({settings.public_url} if settings.public_url else ()),
    )


def check_logins(settings: SchematizerSettings, *, has_keys: bool) -> None:
    """Raise CdcError REGISTRY_OPEN if no client could write; CONFIG_INVALID for settings that need each other."""
    if settings.oidc_issuer and not settings.oidc_audience:
        raise CdcError(
            Code.CONFIG_INVALID,
            "schematizer.oidc_issuer is set, but not schematizer.oidc_audience: the registry would accept tokens for "
            "other services.",
            "Set schematizer.oidc_audience to the audience that the issuer writes into tokens for this registry.",
        )
    if settings.oidc_client_id and not (settings.oidc_issuer and settings.public_url):
        raise CdcError(
            Code.CONFIG_INVALID,
            "schematizer.oidc_client_id needs schematizer.oidc_issuer and schematizer.public_url.",
            "Set both; the issuer sends browsers back to the public URL.",
        )
    if settings.tls_certificate_file is None and (settings.tls_client_ca_file or settings.tls_key_file):
        raise CdcError(
            Code.CONFIG_INVALID,
            "schematizer.tls_client_ca_file or tls_key_file is set, but not schematizer.tls_certificate_file.",
            "Set schematizer.tls_certificate_file, or remove the others.",
        )
    if policy_of(settings).anonymous.allows(Role.WRITER, None) or has_keys or settings.oidc_issuer:
        return
    raise CdcError(
        Code.REGISTRY_OPEN,
        f"The registry would listen on {settings.host}, with schematizer.open_writes = false: there is no "
        "API key and no schematizer.oidc_issuer, so that no client could register a schema.",
        "Make a key (cassandra-schematizer keys create NAME --grant admin:*), set schematizer.oidc_issuer, or open the "
        "registry to everyone who reaches it: schematizer.open_writes = true.",
    )


def is_loopback(host: str) -> bool:
    if host.lower() == _LOCAL_NAME:
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def host_name(host: str) -> str:
    """A Host header without its port."""
    try:
        return urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return ""
