"""Encrypted commit logs: a JCEKS keystore made by Java's own keytool, and the part of cassandra.yaml that names it."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from dev.local_stack.java.runtime import Java

KEYTOOL = "java.base/sun.security.tools.keytool.Main"
KEY_ALIAS = "testing:1"
PASSWORD = "cassandra"  # noqa: S105 - of keystores that are made for tests
CIPHER = "AES/CBC/PKCS5Padding"
KEY_BITS = 256


def make_keystore(path: Path, java: Java) -> Path:
    """A new keystore at `path`, which must not exist, with one random AES key."""
    command = [str(java.executable), "-m", KEYTOOL, "-genseckey", "-keyalg", "AES", "-keysize", str(KEY_BITS)]
    command += ["-alias", KEY_ALIAS, "-storetype", "JCEKS", "-keystore", str(path)]
    command += ["-storepass", PASSWORD, "-keypass", PASSWORD]
    subprocess.run(command, check=True, capture_output=True)
    return path


def encryption_options(keystore: Path) -> dict[str, object]:
    """`transparent_data_encryption_options` as cassandra.yaml has them."""
    parameters = {
        "keystore": str(keystore),
        "keystore_password": PASSWORD,
        "store_type": "JCEKS",
        "key_password": PASSWORD,
    }
    return {
        "enabled": True,
        "chunk_length_kb": 64,
        "cipher": CIPHER,
        "key_alias": KEY_ALIAS,
        "key_provider": [{"class_name": "org.apache.cassandra.security.JKSKeyProvider", "parameters": [parameters]}],
    }
