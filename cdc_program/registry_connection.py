"""Login and TLS to the schema registry, for clients that are not Confluent's."""

from __future__ import annotations

import ssl
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cdc_program.settings import RegistrySettings


def registry_tls(settings: RegistrySettings) -> ssl.SSLContext:
    """Trusts registry.ssl_ca_file, or the system's authorities, and shows registry.ssl_identity_file, if it is set."""
    context = ssl.create_default_context(cafile=settings.ssl_ca_file)
    if settings.ssl_identity_file is not None:
        context.load_cert_chain(settings.ssl_identity_file)
    return context


def registry_login(settings: RegistrySettings) -> tuple[str, str] | None:
    """User and password for HTTP Basic; None if no user is set."""
    return (settings.username, settings.password.get_secret_value()) if settings.username else None
