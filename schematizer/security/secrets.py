"""Random secrets, and the hashes of them that are stored."""

from __future__ import annotations

import hashlib
import hmac
import secrets

_BYTES = 32


def new_secret() -> str:
    """256 random bits as text of letters, digits, `-` and `_`."""
    return secrets.token_urlsafe(_BYTES)


def hash_of(secret: str) -> str:
    """Hex SHA-256. The secret is random, so that nothing can be guessed from it."""
    return hashlib.sha256(secret.encode()).hexdigest()


def is_hash_of(expected: str, secret: str) -> bool:
    """Return whether it is the secret's hash, in a time that does not depend on where the two differ."""
    return hmac.compare_digest(expected, hash_of(secret))


def parts_of(credential: str, separator: str) -> tuple[str, str]:
    """(key id, secret) of a credential; the secret is empty without a separator."""
    key_id, _, secret = credential.partition(separator)
    return key_id, secret
