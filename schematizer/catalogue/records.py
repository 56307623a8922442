"""Notes, tags, refreshes, and what was decided and changed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import func, or_, select

from cdc_common.clients.registry.kinds import About, RefreshStatus
from cdc_common.clients.registry.views import (
    Change,
    Decision,
    Note,
    Refresh,
)
from schematizer.catalogue import lookups
from schematizer.errors import conflict, invalid, not_found
from schematizer.model.base import now
from schematizer.model.client_tables import DataTargetRow
from schematizer.model.record_tables import ChangeRow, DecisionRow, NoteRow, RefreshRow, TagRow
from schematizer.model.registry_tables import schemas
from schematizer.model.source_tables import FieldRow, NamespaceRow, SourceRow, TopicRow

if TYPE_CHECKING:
    from datetime import datetime

    from sqlalchemy import Select
    from sqlalchemy.orm import Session

    from schematizer.model.database import Database

_TABLES = {
    About.NAMESPACE: NamespaceRow.id,
    About.SOURCE: SourceRow.id,
    About.FIELD: FieldRow.id,
    About.TOPIC: TopicRow.id,
    About.SCHEMA: schemas.c.id,
    About.DATA_TARGET: DataTargetRow.id,
}
_MAX_NOTE = 100_000
_NOTE_FIX = "Check the id: /notes?about=…&about_id=… lists the notes on one thing."
_MAX_TAG = 64
_MOST_CHANGES = 10_000
_FINISHED = (RefreshStatus.DONE, RefreshStatus.FAILED)


class Notes:
    def __init__(self, database: Database) -> None:
        self._database = database

    def about(self, about: About, about_id: int) -> list[Note]:
        """The oldest first."""
        query = select(NoteRow).where(NoteRow.about == about, NoteRow.about_id == about_id).order_by(NoteRow.id)
        return self._database.read_session(lambda session: [_note(row) for row in session.scalars(query)])

    def get(self, note_id: int) -> Note:
        def transaction(session: Session) -> Note:
            row = session.get(NoteRow, note_id)
            if row is None:
                raise not_found("note", note_id, _NOTE_FIX)
            return _note(row)

        return self._database.read_session(transaction)

    def add(self, about: About, about_id: int, text: str, *, by: str) -> Note:
        def transaction(session: Session) -> Note:
            _require(session, about, about_id)
            row = NoteRow(about=about, about_id=about_id, text=_checked(text), author=by)
            lookups.added(session, row)
            lookups.record(session, by, lookups.Change("add note", None, f"{about.value} {about_id}"))
            return _note(row)

        return self._database.write_session(transaction)

    def change(self, note_id: int, text: str, *, by: str) -> Note:
        def transaction(session: Session) -> Note:
            row = session.get(NoteRow, note_id)
            if row is None:
                raise not_found("note", note_id, _NOTE_FIX)
            row.text, row.updated_at = _checked(text), now()
            lookups.record(session, by, lookups.Change("change note", None, f"{row.about.value} {row.about_id}"))
            return _note(row)

        return self._database.write_session(transaction)

    def remove(self, note_id: int, *, by: str) -> None:
        def transaction(session: Session) -> None:
            row = session.get(NoteRow, note_id)
            if row is None:
                raise not_found("note", note_id, _NOTE_FIX)
            session.delete(row)
            lookups.record(session, by, lookups.Change("remove note", None, f"{row.about.value} {row.about_id}"))

        self._database.write_session(transaction)


class Tags:
    def __init__(self, database: Database) -> None:
        self._database = database

    def every(self) -> dict[str, int]:
        """Return each tag's name, and how often it is used."""
        query = select(TagRow.name, func.count()).group_by(TagRow.name).order_by(TagRow.name)
        return self._database.read_session(lambda session: dict(session.execute(query).fetchall()))

    def about(self, about: About, about_id: int) -> list[str]:
        query = select(TagRow.name).where(TagRow.about == about, TagRow.about_id == about_id).order_by(TagRow.name)
        return self._database.read_session(lambda session: list(session.scalars(query)))

    def tagged(self, name: str) -> list[tuple[About, int]]:
        query = select(TagRow.about, TagRow.about_id).where(TagRow.name == name).order_by(TagRow.about, TagRow.about_id)
        return self._database.read_session(lambda session: list(session.execute(query)))

    def put(self, name: str, about: About, about_id: int, *, by: str) -> None:
        """Put a tag on something. Idempotent."""

        def transaction(session: Session) -> None:
            if not 0 < len(name) <= _MAX_TAG or not name.isprintable():
                raise invalid(f"{name!r} is not a tag.", f"Use at most {_MAX_TAG} printable characters.")
            _require(session, about, about_id)
            if not session.scalar(_tag(name, about, about_id)):
                session.add(TagRow(name=name, about=about, about_id=about_id))
                lookups.record(session, by, lookups.Change("add tag", None, f"{about.value} {about_id}", name))

        self._database.write_session(transaction)

    def remove(self, name: str, about: About, about_id: int, *, by: str) -> None:
        """Remove a tag from something. Idempotent."""

        def transaction(session: Session) -> None:
            row = session.scalar(_tag(name, about, about_id))
            if row is not None:
                session.delete(row)
                lookups.record(session, by, lookups.Change("remove tag", None, f"{about.value} {about_id}", name))

        self._database.write_session(transaction)


class Refreshes:
    def __init__(self, database: Database) -> None:
        self._database = database

    def every(self, status: RefreshStatus | None = None) -> list[Refresh]:
        """The oldest first."""
        query = select(RefreshRow).order_by(RefreshRow.id)
        if status is not None:
            query = query.where(RefreshRow.status == status)
        return self._database.read_session(lambda session: [_refresh(row) for row in session.scalars(query)])

    def request(self, namespace: str, source: str, reason: str, *, by: str) -> Refresh:
        """Request a refresh of the source. CONFLICT while another one is not finished."""

        def transaction(session: Session) -> Refresh:
            row = lookups.source_row(session, namespace, source)
            open_ = select(RefreshRow).where(RefreshRow.source_id == row.id, RefreshRow.status.not_in(_FINISHED))
            lookups.refuse_if_there(session.scalar(open_), "unfinished refresh of", f"{namespace}/{source}")
            refresh = RefreshRow(source=row, reason=reason, requested_by=by)
            lookups.added(session, refresh)
            lookups.record(session, by, lookups.Change("request refresh", namespace, f"{namespace}/{source}", reason))
            return _refresh(refresh)

        return self._database.write_session(transaction)

    def update(self, refresh_id: int, status: RefreshStatus, rows_sent: int, *, by: str) -> Refresh:
        """Update a refresh. CONFLICT if it is finished."""

        def transaction(session: Session) -> Refresh:
            row = session.get(RefreshRow, refresh_id)
            if row is None:
                raise not_found("refresh", refresh_id)
            if row.status in _FINISHED:
                raise conflict(f"The refresh {refresh_id} is {row.status.value}.", "Request another one.")
            row.status, row.rows_sent, row.updated_at = status, rows_sent, now()
            view = _refresh(row)
            lookups.record(
                session,
                by,
                lookups.Change("update refresh", view.namespace, f"{view.namespace}/{view.source}", status.value),
            )
            return view

        return self._database.write_session(transaction)


class History:
    """The decisions and the changes, the newest last."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def decisions(self, namespace: str, source: str) -> list[Decision]:
        def transaction(session: Session) -> list[Decision]:
            row = lookups.source_row(session, namespace, source)
            query = select(DecisionRow).where(DecisionRow.source_id == row.id).order_by(DecisionRow.id)
            return [_decision(decision, row) for decision in session.scalars(query)]

        return self._database.read_session(transaction)

    def changes(self, since: int = 0, namespace: str | None = None, limit: int = 1000) -> list[Change]:
        """Return the changes after the cursor `since`, at most `limit` of them."""
        query = select(ChangeRow).where(ChangeRow.id > since).order_by(ChangeRow.id).limit(limit)
        if namespace is not None:
            query = query.where(ChangeRow.namespace == namespace)
        return self._database.read_session(lambda session: [_change(row) for row in session.scalars(query)])

    def since(self, moment: datetime, namespaces: list[str], *, has_rest: bool) -> list[Change]:
        """Return the changes since a moment in these namespaces, the newest first. `has_rest`: also those of none."""
        in_namespaces = ChangeRow.namespace.in_(namespaces)
        query = (
            select(ChangeRow)
            .where(ChangeRow.changed_at >= moment)
            .where(or_(in_namespaces, ChangeRow.namespace.is_(None)) if has_rest else in_namespaces)
            .order_by(ChangeRow.changed_at.desc(), ChangeRow.id.desc())
            .limit(_MOST_CHANGES)
        )
        return self._database.read_session(lambda session: [_change(row) for row in session.scalars(query)])


def _require(session: Session, about: About, about_id: int) -> None:
    column = _TABLES[about]
    if session.execute(select(column).where(column == about_id)).first() is None:
        raise not_found(about.value, about_id, lookups.ID_FIX)


def _tag(name: str, about: About, about_id: int) -> Select[TagRow]:
    return select(TagRow).where(TagRow.name == name, TagRow.about == about, TagRow.about_id == about_id)


def _checked(text: str) -> str:
    if not text.strip() or len(text) > _MAX_NOTE:
        raise invalid("A note is empty or too long.", f"Write at most {_MAX_NOTE} characters of Markdown.")
    return text


def _note(row: NoteRow) -> Note:
    return Note(
        id=row.id,
        about=row.about,
        about_id=row.about_id,
        text=row.text,
        author=row.author,
        created_at=row.created_at,
        updated_at=row.updated_at,
    )


def _refresh(row: RefreshRow) -> Refresh:
    return Refresh(
        id=row.id,
        namespace=row.source.namespace.name,
        source=row.source.name,
        status=row.status,
        reason=row.reason,
        requested_by=row.requested_by,
        rows_sent=row.rows_sent,
        created_at=row.created_at,
        updated_at=row.updated_at,
    )


def _decision(row: DecisionRow, source: SourceRow) -> Decision:
    return Decision(
        namespace=source.namespace.name,
        source=source.name,
        topic=row.topic.name,
        schema_id=row.schema_id,
        is_new_topic=row.is_new_topic,
        rule=row.rule,
        reason=row.reason,
        decided_at=row.decided_at,
    )


def _change(row: ChangeRow) -> Change:
    return Change(
        id=row.id,
        changed_at=row.changed_at,
        changed_by=row.changed_by,
        action=row.action,
        namespace=row.namespace,
        about=row.about,
        detail=row.detail,
    )
