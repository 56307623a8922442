"""TLS: the registry's certificate, read again when it was renewed, and certificates of clients."""

from __future__ import annotations

import ssl
from time import monotonic
from typing import TYPE_CHECKING

import structlog

from cdc_common.errors.codes import CdcError, Code

if TYPE_CHECKING:
    from pathlib import Path

    from schematizer.settings import SchematizerSettings

RELOAD_SECONDS = 10.0
_VERSIONS = {"1.2": ssl.TLSVersion.TLSv1_2, "1.3": ssl.TLSVersion.TLSv1_3}
_Stamp = tuple[tuple[int, int, int], ...]


class ServerCertificate:
    """The TLS context of the service. `reload_if_renewed` is called by the event loop, about once a second."""

    def __init__(self, settings: SchematizerSettings, certificate: Path) -> None:
        """CdcError REGISTRY_CERTIFICATE if a file cannot be used."""
        self._certificate = certificate
        self._key = settings.tls_key_file or certificate
        self._minimum = _VERSIONS[settings.tls_minimum_version]
        self._client_ca = settings.tls_client_ca_file
        self._read = self._stamp()
        self.context = self._new_context()
        self._looked_at = monotonic()

    def reload_if_renewed(self) -> None:
        """Connections that are made from now on get a renewed certificate. Files that do not fit each other (a renewal
        writes one after the other) leave the old one in use.
        """
        if monotonic() - self._looked_at < RELOAD_SECONDS:
            return
        self._looked_at = monotonic()
        try:
            stamp = self._stamp()
            if stamp == self._read:
                return
            self._new_context()  # fails without touching the one in use
            self.context.load_cert_chain(self._certificate, self._key)
        except CdcError as error:
            structlog.get_logger(__name__).error("certificate not renewed", code=error.code.text, reason=error.problem)
            return
        self._read = stamp
        structlog.get_logger(__name__).info("certificate renewed", file=str(self._certificate))

    def _new_context(self) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = self._minimum
        context.options |= ssl.OP_NO_RENEGOTIATION
        try:
            context.load_cert_chain(self._certificate, self._key, password=_no_password)
            if self._client_ca is not None:
                context.load_verify_locations(self._client_ca)
                context.verify_mode = ssl.CERT_REQUIRED
        except (OSError, ValueError) as error:
            raise _unusable([self._certificate, self._key, self._client_ca], error) from error
        return context

    def _stamp(self) -> _Stamp:
        """Return values that change when a file is written or replaced."""
        try:
            found = [path.stat() for path in (self._certificate, self._key)]
        except OSError as error:
            raise _unusable([self._certificate, self._key], error) from error
        return tuple((status.st_mtime_ns, status.st_size, status.st_ino) for status in found)


def _no_password() -> str:
    raise ValueError("the private key is encrypted")


def _unusable(files: list[Path | None], error: Exception) -> CdcError:
    names = ", ".join(dict.fromkeys(str(file) for file in files if file))
    reason = getattr(error, "strerror", None) or getattr(error, "reason", None) or str(error)
    return CdcError(
        Code.REGISTRY_CERTIFICATE,
        f"The registry's certificate cannot be used: {reason} ({names}).",
        "Set schematizer.tls_certificate_file, tls_key_file and tls_client_ca_file to readable PEM files: a chain, the "
        "unencrypted key of its first certificate, and authorities.",
    )
