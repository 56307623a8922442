"""Login and TLS to the schema registry, for clients that are not Confluent's."""

from __future__ import annotations

import ssl
from typing import TYPE_CHECKING

from cdc_common.errors.codes import CdcError, Code

if TYPE_CHECKING:
    from cdc_common.settings import RegistrySettings


def registry_tls(settings: RegistrySettings) -> ssl.SSLContext:
    """Trusts registry.ssl_ca_file, or the system's authorities, and shows registry.ssl_identity_file, if it is set.
    CdcError CONFIG_INVALID if a file cannot be used.
    """
    file = settings.ssl_ca_file
    try:
        context = ssl.create_default_context(cafile=file)
        if (file := settings.ssl_identity_file) is not None:
            context.load_cert_chain(file)
    except OSError as error:  # ssl.SSLError is one
        raise CdcError(
            Code.CONFIG_INVALID,
            f"The certificates in {file}, for the schema registry, cannot be used: {error.strerror or error}.",
            "Set registry.ssl_ca_file, and ssl_identity_file to one PEM file with certificate and private key.",
        ) from error
    return context


def check_certificates(settings: RegistrySettings) -> None:
    """CdcError CONFIG_INVALID if a file that is set cannot be used."""
    if settings.ssl_ca_file is not None or settings.ssl_identity_file is not None:
        registry_tls(settings)


def registry_login(settings: RegistrySettings) -> tuple[str, str] | None:
    """User and password for HTTP Basic; None if no user is set."""
    return (settings.username, settings.password.get_secret_value()) if settings.username else None
