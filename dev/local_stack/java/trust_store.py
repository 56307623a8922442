"""A Java trust store with the certificates that this Python trusts.

The JRE from PyPI knows only its own authorities; behind a network that has one of its own, pip works and Java would
not. The format is JKS as `sun.security.provider.JavaKeyStore` reads it.
"""

from __future__ import annotations

import hashlib
import ssl
import struct
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

MAGIC = 0xFEEDFEED
VERSION = 2
TRUSTED_CERTIFICATE = 2  # tag of an entry
PASSWORD = "changeit"  # noqa: S105 - Java's well-known default; the store holds public certificates
SALT = b"Mighty Aphrodite"  # of the digest at the end, as the format has it


def write_trust_store(path: Path) -> bool:
    """Write Python's default authorities to `path`; False (and no file) when Python cannot list them."""
    certificates = ssl.create_default_context().get_ca_certs(binary_form=True)
    if not certificates:
        return False
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(key_store(certificates))
    return True


def key_store(certificates: Iterable[bytes]) -> bytes:
    """A JKS of DER certificates, with aliases `0`, `1`, …"""
    entries = [_entry(str(number), der) for number, der in enumerate(certificates)]
    body = struct.pack(">IIi", MAGIC, VERSION, len(entries)) + b"".join(entries)
    digest = hashlib.sha1(PASSWORD.encode("utf-16-be") + SALT + body)  # noqa: S324 - the format's own check
    return body + digest.digest()


def _entry(alias: str, der: bytes) -> bytes:
    return (
        struct.pack(">i", TRUSTED_CERTIFICATE)
        + _text(alias)
        + bytes(8)
        + _text("X.509")
        + struct.pack(">i", len(der))
        + der
    )


def _text(value: str) -> bytes:
    encoded = value.encode()
    return struct.pack(">H", len(encoded)) + encoded
