"""Sessions of browsers: a random cookie, whose hash the database has."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from sqlalchemy import delete

from schematizer.access import Actor, Grants
from schematizer.model.base import now
from schematizer.model.security_tables import SessionRow
from schematizer.model.source_tables import NAME_LENGTH
from schematizer.security.keys import actor_name, is_row_usable, stored_grants
from schematizer.security.secrets import hash_of, new_secret

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

    from schematizer.model.database import Database


class Sessions:
    """Several threads may use one. A session that has expired is as none."""

    def __init__(self, database: Database, seconds: float) -> None:
        self._database = database
        self.seconds = seconds

    def start(self, actor: str, grants: Grants, api_key_id: int | None = None) -> str:
        """The cookie's value. Old sessions are deleted."""
        token = new_secret()
        row = {
            "token_hash": hash_of(token),
            "actor": actor[:NAME_LENGTH],
            "grants": "\n".join(str(grant) for grant in grants.every),
            "api_key_id": api_key_id,
            "expires_at": now() + timedelta(seconds=self.seconds),
        }

        def transaction(session: Session) -> None:
            session.execute(delete(SessionRow).where(SessionRow.expires_at <= now()))
            session.add(SessionRow(**row))

        self._database.write_session(transaction)
        return token

    def actor(self, token: str) -> Actor | None:
        """Return the actor of a session; None if the session has ended, or its API key is not usable."""

        def transaction(session: Session) -> Actor | None:
            row = session.get(SessionRow, hash_of(token))
            if row is None or row.expires_at <= now():
                return None
            if row.api_key is None:
                return Actor(row.actor, stored_grants(row.grants))
            if not is_row_usable(row.api_key):
                return None
            return Actor(actor_name(row.api_key.name), stored_grants(row.api_key.grants))

        return self._database.read_session(transaction)

    def end(self, token: str) -> None:
        query = delete(SessionRow).where(SessionRow.token_hash == hash_of(token))
        self._database.write(lambda connection: connection.execute(query))
