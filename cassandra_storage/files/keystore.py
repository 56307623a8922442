"""Secret keys from a JCEKS keystore (com.sun.crypto.provider.JceKeyStore, KeyProtector), as Cassandra's JKSKeyProvider
reads them.

Big-endian: magic, version, count, entries, SHA-1 of the password and everything before. An entry is its tag, alias and
time, then its content. A secret key is a serialized SealedObject: the serialized key, encrypted by
PBEWithMD5AndTripleDES. No library is used: pyjks needs a compiler to install, and its dependency javaobj logs the bytes
that it cannot read.
"""

from __future__ import annotations

import hashlib
import hmac
import io
import struct
from typing import TYPE_CHECKING, Any, TypeAlias

from cryptography.hazmat.decrepit.ciphers.algorithms import TripleDES
from cryptography.hazmat.primitives.ciphers import Cipher, modes
from cryptography.hazmat.primitives.padding import PKCS7

from cassandra_storage.files.java_serialization import read_object

if TYPE_CHECKING:
    from pathlib import Path

_MAGIC = 0xCECECECE
_VERSION = 2
_DIGEST_SIZE = 20
_WHITENER = b"Mighty Aphrodite"  # JceKeyStore.getPreKeyedHash
_PRIVATE_KEY, _CERTIFICATE, _SECRET_KEY = 1, 2, 3
_MOST_ITERATIONS = 5_000_000  # KeyProtector.MAX_ITERATION_COUNT

# The fields of a javax.crypto.SealedObject.
_Sealed: TypeAlias = dict[str, Any]


class KeystoreError(Exception):
    """A keystore that cannot be read: damaged, of another type, or with another password. It has no secrets."""


def read_keys(path: Path, password: str, key_password: str | None = None) -> dict[str, bytes]:
    """The secret keys by alias (lower case) of the JCEKS keystore at `path`. `key_password` protects all keys. Its
    default is the keystore's password. KeystoreError if the keystore cannot be read, OSError if the file cannot.
    """
    data = path.read_bytes()
    try:
        sealed = _read_store(data, password)
        return {alias: _unseal(secret, key_password or password) for alias, secret in sealed.items()}
    except KeystoreError as error:
        raise KeystoreError(f"{path}: {error}") from None


def _read_store(data: bytes, password: str) -> dict[str, _Sealed]:
    """JceKeyStore.engineLoad: the sealed keys by alias."""
    if data[:4] != _MAGIC.to_bytes(4, "big"):
        raise KeystoreError("not a JCEKS keystore")
    content, digest = data[:-_DIGEST_SIZE], data[-_DIGEST_SIZE:]
    expected = hashlib.sha1(password.encode("utf-16-be") + _WHITENER + content, usedforsecurity=False).digest()
    if not hmac.compare_digest(digest, expected):
        raise KeystoreError("wrong password, or damaged keystore")
    stream = io.BytesIO(content)
    try:
        _, version, count = struct.unpack(">III", stream.read(12))
        if version != _VERSION:
            raise KeystoreError(f"version {version} of the JCEKS format is not supported")
        entries = [_read_entry(stream) for _ in range(count)]
    except (struct.error, ValueError) as error:
        raise KeystoreError("its entries cannot be read") from error
    return {alias: secret for alias, secret in entries if secret is not None}


def _read_entry(stream: io.BytesIO) -> tuple[str, _Sealed | None]:
    """(alias, the SealedObject of a secret key; None for another entry)."""
    (tag,) = struct.unpack(">I", stream.read(4))
    alias = _read_sized(stream, ">H").decode()
    stream.read(8)  # time of creation
    if tag == _SECRET_KEY:
        return alias.lower(), read_object(stream)
    if tag == _CERTIFICATE:
        _read_certificate(stream)
    elif tag == _PRIVATE_KEY:
        _read_sized(stream, ">I")
        (chain,) = struct.unpack(">I", stream.read(4))
        for _ in range(chain):
            _read_certificate(stream)
    else:
        raise KeystoreError(f"entry of unknown kind {tag}")
    return alias, None


def _read_certificate(stream: io.BytesIO) -> None:
    _read_sized(stream, ">H")
    _read_sized(stream, ">I")


def _read_sized(stream: io.BytesIO, size: str) -> bytes:
    (length,) = struct.unpack(size, stream.read(struct.calcsize(size)))
    return stream.read(length)


def _unseal(sealed: _Sealed, password: str) -> bytes:
    """KeyProtector.unseal: the key's own bytes."""
    try:
        if sealed["paramsAlg"] != "PBEWithMD5AndTripleDES":
            raise KeystoreError(f"a key is protected by {sealed['paramsAlg']}, which is not supported")
        salt, iterations = _parse_parameters(sealed["encodedParams"])
        key, iv = _derive(password.encode("ascii"), salt, iterations)
        decryptor = Cipher(TripleDES(key), modes.CBC(iv)).decryptor()
        unpadder = PKCS7(TripleDES.block_size).unpadder()
        padded = decryptor.update(sealed["encryptedContent"]) + decryptor.finalize()
        secret = read_object(io.BytesIO(unpadder.update(padded) + unpadder.finalize()))["key"]  # SecretKeySpec's
    except (ValueError, TypeError, KeyError) as error:
        raise KeystoreError("wrong password of a key, or unreadable key") from error
    if not isinstance(secret, bytes):
        raise KeystoreError("a key without bytes")
    return secret


def _parse_parameters(der: bytes) -> tuple[bytes, int]:
    """PBEParameterSpec, in DER: a sequence of the salt (8 bytes) and the number of iterations."""
    if len(der) < 15 or der[0] != 0x30 or der[2:4] != b"\x04\x08" or der[12] != 0x02:
        raise ValueError("PBE parameters")
    iterations = int.from_bytes(der[14 : 14 + der[13]], "big")
    if not 0 < iterations <= _MOST_ITERATIONS:
        raise ValueError("PBE iterations")
    return der[4:12], iterations


def _derive(password: bytes, salt: bytes, iterations: int) -> tuple[bytes, bytes]:
    """com.sun.crypto.provider.PBES1Core.deriveCipherKey of Triple DES: (key, IV)."""
    halves = [salt[:4], salt[4:]]
    if halves[0] == halves[1]:  # meant to reverse the half, but Java has always done this
        halves[0] = bytes((salt[3], salt[0], salt[1], salt[3]))
    derived = b""
    for half in halves:
        digest = half
        for _ in range(iterations):
            digest = hashlib.md5(digest + password, usedforsecurity=False).digest()
        derived += digest
    return derived[:24], derived[24:]
