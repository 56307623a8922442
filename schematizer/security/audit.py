"""The audit log: who did what, when, from where, and how it ended. It holds no bodies, queries or credentials."""

from __future__ import annotations

from datetime import datetime, timedelta
from threading import Lock
from time import monotonic
from typing import TYPE_CHECKING

from pydantic import BaseModel, ConfigDict
from sqlalchemy import delete, insert, select, update

from schematizer.model.base import now
from schematizer.model.security_tables import ABOUT_LENGTH, ADDRESS_LENGTH, AuditRow, Result
from schematizer.model.source_tables import NAME_LENGTH

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from schematizer.model.database import Database

_PURGE_SECONDS = 3600.0
_ACTION_LENGTH = 256
_REASON_LENGTH = 64


class AuditEvent(BaseModel):
    """An event of the audit log."""

    model_config = ConfigDict(frozen=True)

    # The name of the one who asked.
    actor: str
    # The address that the request came from.
    address: str
    # The request's method, or another act.
    action: str
    # A path without its query, or a name.
    about: str
    # The namespace that it concerns; None for all.
    namespace: str | None = None
    # The result.
    result: Result
    # Why it was refused or failed.
    reason: str = ""
    # The status of the answer.
    status: int | None = None


class AuditEntry(AuditEvent):
    """A record; `id` rises."""

    # Its id, which rises with each record.
    id: int
    # When it was written.
    at: datetime


class AuditLog:
    """Several threads may use one."""

    def __init__(self, database: Database, days: int) -> None:
        self._database = database
        self._kept = timedelta(days=days)
        self._purged_at: float | None = None
        self._lock = Lock()

    def record(self, event: AuditEvent) -> int:
        """The id. Records older than the retention are deleted now and then."""
        is_time = self._is_time_to_purge()
        values = _values(event)

        def transaction(connection: Connection) -> int:
            if is_time:
                connection.execute(delete(AuditRow).where(AuditRow.at < now() - self._kept))
            [row_id] = connection.execute(insert(AuditRow).values(**values).returning(AuditRow.id)).one()
            return int(row_id)

        return self._database.write(transaction)

    def finish(self, row_id: int, result: Result, status: int, reason: str = "") -> None:
        """How an event that was STARTED ended."""
        values = {"result": result, "status": status, "reason": reason[:_REASON_LENGTH]}
        query = update(AuditRow).where(AuditRow.id == row_id).values(**values)
        self._database.write(lambda connection: connection.execute(query))

    def entries(self, since: int = 0, actor: str | None = None, limit: int = 1000) -> list[AuditEntry]:
        """Return the entries after the id `since`, the oldest first, at most `limit`."""
        query = select(AuditRow).where(AuditRow.id > since).order_by(AuditRow.id).limit(limit)
        if actor is not None:
            query = query.where(AuditRow.actor == actor)
        return self._database.read_session(lambda session: [_entry(row) for row in session.scalars(query)])

    def newest(self, limit: int, actor: str | None = None) -> list[AuditEntry]:
        """The newest `limit`, the oldest of them first."""
        query = select(AuditRow).order_by(AuditRow.id.desc()).limit(limit)
        if actor is not None:
            query = query.where(AuditRow.actor == actor)
        found = self._database.read_session(lambda session: [_entry(row) for row in session.scalars(query)])
        return found[::-1]

    def _is_time_to_purge(self) -> bool:
        with self._lock:
            if self._purged_at is not None and monotonic() < self._purged_at + _PURGE_SECONDS:
                return False
            self._purged_at = monotonic()
            return True


def _values(event: AuditEvent) -> dict[str, object]:
    """Texts are cut to what their columns hold: clients choose paths."""
    return {
        "actor": event.actor[:NAME_LENGTH],
        "address": event.address[:ADDRESS_LENGTH],
        "action": event.action[:_ACTION_LENGTH],
        "about": event.about[:ABOUT_LENGTH],
        "namespace": None if event.namespace is None else event.namespace[:NAME_LENGTH],
        "result": event.result,
        "reason": event.reason[:_REASON_LENGTH],
        "status": event.status,
        "at": now(),
    }


def _entry(row: AuditRow) -> AuditEntry:
    return AuditEntry(
        id=row.id,
        at=row.at,
        actor=row.actor,
        address=row.address,
        action=row.action,
        about=row.about,
        namespace=row.namespace,
        result=row.result,
        reason=row.reason,
        status=row.status,
    )
