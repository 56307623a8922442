"""API keys: made, listed, revoked, and verified in requests."""

from __future__ import annotations

import secrets
import string
from datetime import UTC, datetime, timedelta
from threading import Lock
from typing import TYPE_CHECKING, NamedTuple

from cachetools import TTLCache
from pydantic import BaseModel, ConfigDict
from sqlalchemy import select

from schematizer.access import Grants, grant_from_text
from schematizer.errors import CatalogueError, Refusal, invalid, not_found
from schematizer.model.base import now
from schematizer.model.security_tables import ApiKeyRow
from schematizer.model.source_tables import NAME_LENGTH
from schematizer.security.secrets import hash_of, is_hash_of, new_secret

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sqlalchemy.orm import Session

    from schematizer.model.database import Database

KEY_PREFIX = "cdck_"
CACHE_SECONDS = 5.0
"""How long another process on the same database may still accept a key that was revoked."""
_CACHED_KEYS = 4096
_ALPHABET = string.ascii_lowercase + string.digits
_ID_LENGTH = 16
_NOBODY = hash_of(new_secret())  # so that an unknown key takes as long as a wrong secret


class ApiKey(BaseModel):
    """A key without its secret. `grants`: `ROLE:NAMESPACE`. `is_usable`: neither revoked nor expired."""

    model_config = ConfigDict(frozen=True)

    # The key's id.
    key_id: str
    # Who uses the key.
    name: str
    # The grants, as `ROLE:NAMESPACE`.
    grants: list[str]
    # The name of the one who made it.
    created_by: str
    # When it was made.
    created_at: datetime
    # When it ends; None if it does not expire.
    expires_at: datetime | None
    # When it was revoked.
    revoked_at: datetime | None
    # The name of the one who revoked it.
    revoked_by: str | None
    # Whether it is neither revoked nor expired.
    is_usable: bool


class NewApiKey(BaseModel):
    """The only time that the secret is shown. `bearer`: what `Authorization: Bearer` carries."""

    model_config = ConfigDict(frozen=True)

    # The key.
    key: ApiKey
    # The secret, which is shown only here.
    secret: str
    # The value that `Authorization: Bearer` carries.
    bearer: str


class VerifiedKey(NamedTuple):
    """An API key whose secret was right."""

    # The id of its row in the table.
    row_id: int
    # The name of the actor.
    actor: str
    # The rights.
    grants: Grants


class _Known(NamedTuple):
    row_id: int
    name: str
    secret_hash: str
    grants: Grants
    expires_at: datetime | None
    is_revoked: bool

    @property
    def is_usable(self) -> bool:
        return not self.is_revoked and (self.expires_at is None or self.expires_at > now())


class ApiKeys:
    """CatalogueError if a request is refused. Several threads may use one."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._cache: TTLCache[str, _Known] = TTLCache(_CACHED_KEYS, CACHE_SECONDS)
        self._lock = Lock()

    def create(self, name: str, grants: Sequence[str], expires_at: datetime | None, *, by: str) -> NewApiKey:
        if not 0 < len(name) <= NAME_LENGTH - len("key:") or not name.isprintable():
            raise invalid(f"{name!r} is not a key's name.", "Say who uses it in 1 to 245 printable characters.")
        parsed = [str(grant) for grant in parsed_grants(grants).every]
        if not parsed:
            raise invalid("The key has no grant.", "Give at least one ROLE:NAMESPACE, as in writer:cdc.shop.")
        if expires_at is not None and _aware(expires_at) <= now():
            raise invalid(f"The key would expire at {expires_at.isoformat()}.", "Give a time to come.")
        key_id = KEY_PREFIX + "".join(secrets.choice(_ALPHABET) for _ in range(_ID_LENGTH))
        secret = new_secret()
        row = ApiKeyRow(
            key_id=key_id,
            secret_hash=hash_of(secret),
            name=name,
            grants="\n".join(parsed),
            created_by=by[:NAME_LENGTH],
            expires_at=None if expires_at is None else _aware(expires_at),
        )

        def transaction(session: Session) -> ApiKey:
            merged = session.merge(row)
            session.flush()
            return _view(merged)

        return NewApiKey(key=self._database.write_session(transaction), secret=secret, bearer=f"{key_id}.{secret}")

    def every(self) -> list[ApiKey]:
        """The oldest first; those that are revoked or expired, too."""
        query = select(ApiKeyRow).order_by(ApiKeyRow.id)
        return self._database.read_session(lambda session: [_view(row) for row in session.scalars(query)])

    def revoke(self, key_id: str, *, by: str) -> ApiKey:
        """Revoke a key. Idempotent. Sessions that signed in with the key end with it."""

        def transaction(session: Session) -> ApiKey:
            row = session.scalar(select(ApiKeyRow).where(ApiKeyRow.key_id == key_id))
            if row is None:
                raise not_found(
                    "API key", key_id, "Check the id (cassandra-schematizer keys list, or GET /api/v1/keys)."
                )
            if row.revoked_at is None:
                row.revoked_at, row.revoked_by = now(), by[:NAME_LENGTH]
            return _view(row)

        view = self._database.write_session(transaction)
        with self._lock:
            self._cache.pop(key_id, None)
        return view

    def verify(self, key_id: str, secret: str) -> VerifiedKey | None:
        """The key with this id if the secret is its own and it may be used."""
        known = self._known(key_id)
        is_right = is_hash_of(known.secret_hash if known else _NOBODY, secret)
        if known is None or not is_right or not known.is_usable:
            return None
        return VerifiedKey(known.row_id, actor_name(known.name), known.grants)

    def is_any_usable(self) -> bool:
        return any(key.is_usable for key in self.every())

    def _known(self, key_id: str) -> _Known | None:
        with self._lock:
            found = self._cache.get(key_id)
        if found is not None:
            return found
        if not key_id.startswith(KEY_PREFIX):
            return None
        query = select(ApiKeyRow).where(ApiKeyRow.key_id == key_id)
        row = self._database.read_session(lambda session: _known(session.scalar(query)))
        if row is not None:
            with self._lock:
                self._cache[key_id] = row
        return row


def actor_name(name: str) -> str:
    """Return the name of a key's actor in changes and in the audit log."""
    return f"key:{name}"


def parsed_grants(texts: Sequence[str]) -> Grants:
    """Parse the texts of grants. CatalogueError INVALID."""
    try:
        return Grants(tuple(grant_from_text(text) for text in texts))
    except ValueError as error:
        raise CatalogueError(Refusal.INVALID, f"{error}.", "Write a grant as ROLE:NAMESPACE.") from error


def stored_grants(text: str) -> Grants:
    """The grants in a row's text."""
    return Grants(tuple(grant_from_text(line) for line in text.split("\n") if line))


def in_days(days: float | None) -> datetime | None:
    return None if days is None else now() + timedelta(days=days)


def is_row_usable(row: ApiKeyRow) -> bool:
    return row.revoked_at is None and (row.expires_at is None or row.expires_at > now())


def _aware(time: datetime) -> datetime:
    return time if time.tzinfo else time.replace(tzinfo=UTC)


def _known(row: ApiKeyRow | None) -> _Known | None:
    if row is None:
        return None
    grants = stored_grants(row.grants)
    return _Known(row.id, row.name, row.secret_hash, grants, row.expires_at, row.revoked_at is not None)


def _view(row: ApiKeyRow) -> ApiKey:
    return ApiKey(
        key_id=row.key_id,
        name=row.name,
        grants=row.grants.split("\n"),
        created_by=row.created_by,
        created_at=row.created_at,
        expires_at=row.expires_at,
        revoked_at=row.revoked_at,
        revoked_by=row.revoked_by,
        is_usable=is_row_usable(row),
    )
