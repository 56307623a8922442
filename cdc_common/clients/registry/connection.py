"""Login and TLS to the schema registry. Needs no HTTP library: a publisher checks its certificates with it."""

from __future__ import annotations

import ssl
from pathlib import Path
from typing import TYPE_CHECKING

from cdc_common.errors.codes import CdcError, Code

if TYPE_CHECKING:
    from cdc_common.settings import RegistrySettings


def registry_tls(settings: RegistrySettings) -> ssl.SSLContext:
    """Trusts registry.ssl_ca_file, or the system's authorities (certifi's if the system has none). Shows
    registry.ssl_identity_file, if it is set.
    CdcError CONFIG_INVALID if a file cannot be used.
    """
    file = settings.ssl_ca_file
    try:
        context = ssl.create_default_context(cafile=file)
        if file is None and not _system_has_authorities():
            import certifi  # noqa: PLC0415 - a library of the HTTP client

            context.load_verify_locations(certifi.where())
        if (file := settings.ssl_identity_file) is not None:
            context.load_cert_chain(file)
    except OSError as error:  # ssl.SSLError is one
        raise CdcError(
            Code.CONFIG_INVALID,
            f"The certificates in {file}, for the schema registry, cannot be used: {error.strerror or error}.",
            "Set registry.ssl_ca_file, and ssl_identity_file to one PEM file with certificate and private key.",
        ) from error
    return context


def _system_has_authorities() -> bool:
    """Whether OpenSSL finds any where it was built to look, or in SSL_CERT_FILE and SSL_CERT_DIR."""
    found = ssl.get_default_verify_paths()
    return found.cafile is not None or (found.capath is not None and any(Path(found.capath).iterdir()))


def check_certificates(settings: RegistrySettings) -> None:
    """CdcError CONFIG_INVALID if a file that is set cannot be used."""
    if settings.ssl_ca_file is not None or settings.ssl_identity_file is not None:
        registry_tls(settings)


def registry_login(settings: RegistrySettings) -> tuple[str, str] | None:
    """User and password for HTTP Basic; None if no user is set."""
    return (settings.username, settings.password.get_secret_value()) if settings.username else None
