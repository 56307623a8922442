"""Keys of JCEKS keystores. `keys.jceks` was made by Java 17's keytool (password secret1): AES keys `One` (128 bits) and
`two` (256) with an RSA key pair between them; java.security.KeyStore said their bytes.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cassandra_storage.files.keystore import KeystoreError, read_keys
from tests.support.cassandra_storage.files.keystore import KEYSTORE, PASSWORD

if TYPE_CHECKING:
    from pathlib import Path

DIGEST_SIZE = 20


def test_keys() -> None:
    assert read_keys(KEYSTORE, PASSWORD) == {
        "one": bytes.fromhex("73aaac55eeb26bce440f625b275adf59"),
        "two": bytes.fromhex("e9b3e7ca54820be591ce6845bf6ce29174dace5b3c1fbed8798ca6fbf7dbb074"),
    }


def test_wrong_passwords() -> None:
    with pytest.raises(KeystoreError, match="wrong password"):
        read_keys(KEYSTORE, "secret2")
    with pytest.raises(KeystoreError, match="wrong password of a key"):
        read_keys(KEYSTORE, PASSWORD, "secret2")


def test_not_a_keystore(tmp_path: Path) -> None:
    (tmp_path / "other").write_bytes(b"PKCS12, for instance")
    with pytest.raises(KeystoreError, match="not a JCEKS keystore"):
        read_keys(tmp_path / "other", PASSWORD)
    with pytest.raises(FileNotFoundError):
        read_keys(tmp_path / "none", PASSWORD)


def _digest(content: bytes) -> bytes:
    return hashlib.sha1(PASSWORD.encode("utf-16-be") + b"Mighty Aphrodite" + content, usedforsecurity=False).digest()


@settings(max_examples=20, deadline=None)  # a key's password is hashed 200,000 times
@given(data=st.data())
def test_damaged(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    """Only its own error, even where the digest is right."""
    content = bytearray(KEYSTORE.read_bytes()[:-DIGEST_SIZE])
    for _ in range(data.draw(st.integers(1, 3))):
        content[data.draw(st.integers(4, len(content) - 1))] ^= data.draw(st.integers(1, 255))
    cut = bytes(content[: data.draw(st.integers(4, len(content)))])
    path = tmp_path_factory.mktemp("keystore") / "damaged"
    path.write_bytes(cut + _digest(cut))
    try:
        read_keys(path, PASSWORD)
    except KeystoreError:
        return
