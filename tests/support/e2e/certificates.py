"""Certificates of an authority of our own, for servers on loopback addresses and for their clients."""

from __future__ import annotations

import ipaddress
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, NamedTuple

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    pkcs12,
)
from cryptography.x509.oid import NameOID

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


class Identity(NamedTuple):
    """A certificate and its private key."""

    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey

    def pem(self) -> bytes:
        """Both in one file, as our programs, librdkafka and Java read them."""
        key = self.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        return key + self.certificate.public_bytes(Encoding.PEM)


class Authority:
    """An authority; its files go to a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._root = _sign("authority", None, ())
        self.file = folder / "authority.pem"
        self.file.write_bytes(self._root.certificate.public_bytes(Encoding.PEM))

    def identity_file(self, name: str, addresses: Sequence[str] = ()) -> Path:
        """A PEM file with certificate and key."""
        file = self._folder / f"{name}.pem"
        file.write_bytes(_sign(name, self._root, addresses).pem())
        return file

    def java_stores(self, addresses: Sequence[str], password: str) -> tuple[Path, Path]:
        """(keystore, truststore) in PKCS12 of a server at these addresses."""
        stores = self._folder / "keystore.p12", self._folder / "truststore.p12"
        encryption = BestAvailableEncryption(password.encode())
        certificate, key = _sign("server", self._root, addresses)
        stores[0].write_bytes(pkcs12.serialize_key_and_certificates(b"server", key, certificate, None, encryption))
        trusted = [pkcs12.PKCS12Certificate(self._root.certificate, b"authority")]
        stores[1].write_bytes(pkcs12.serialize_java_truststore(trusted, encryption))
        return stores


def _general_name(address: str) -> x509.GeneralName:
    """An IP address; otherwise a host's name."""
    try:
        return x509.IPAddress(ipaddress.ip_address(address))
    except ValueError:
        return x509.DNSName(address)


def _sign(name: str, issuer: Identity | None, addresses: Sequence[str]) -> Identity:
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = datetime.now(UTC)
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer.certificate.subject if issuer else subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.BasicConstraints(ca=issuer is None, path_length=None), critical=True)
    )
    if addresses:
        names = [_general_name(address) for address in addresses]
        builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
    return Identity(builder.sign(issuer.key if issuer else key, hashes.SHA256()), key)
