"""The tables of notes, tags, refreshes, decisions and changes, and of messages that are still to be sent to Kafka."""

from __future__ import annotations

from datetime import datetime  # noqa: TC003 - SQLAlchemy reads annotations

from sqlalchemy import ForeignKey, Index, String, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column, relationship

from cdc_common.clients.registry.kinds import About, RefreshStatus
from schematizer.model.base import Base, LongText, now, words
from schematizer.model.source_tables import NAME_LENGTH, SourceRow, TopicRow


class NoteRow(Base):
    """`text`: Markdown."""

    __tablename__ = "notes"
    __table_args__ = (Index("ix_notes_about", "about", "about_id"),)

    id: Mapped[int] = mapped_column(primary_key=True)
    about: Mapped[About] = mapped_column(words(About, 16))
    about_id: Mapped[int]
    text: Mapped[str] = mapped_column(LongText)
    author: Mapped[str] = mapped_column(String(NAME_LENGTH))
    created_at: Mapped[datetime] = mapped_column(default=now)
    updated_at: Mapped[datetime] = mapped_column(default=now)


class TagRow(Base):
    __tablename__ = "tags"
    __table_args__ = (UniqueConstraint("name", "about", "about_id"), Index("ix_tags_about", "about", "about_id"))

    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str] = mapped_column(String(64))
    about: Mapped[About] = mapped_column(words(About, 16))
    about_id: Mapped[int]


class RefreshRow(Base):
    """A request to send all rows of a source again, and its progress."""

    __tablename__ = "refreshes"

    id: Mapped[int] = mapped_column(primary_key=True)
    source_id: Mapped[int] = mapped_column(ForeignKey("sources.id"), index=True)
    status: Mapped[RefreshStatus] = mapped_column(words(RefreshStatus, 16), default=RefreshStatus.WAITING)
    reason: Mapped[str] = mapped_column(LongText)
    requested_by: Mapped[str] = mapped_column(String(NAME_LENGTH))
    rows_sent: Mapped[int] = mapped_column(default=0)
    created_at: Mapped[datetime] = mapped_column(default=now)
    updated_at: Mapped[datetime] = mapped_column(default=now)

    source: Mapped[SourceRow] = relationship()


class DecisionRow(Base):
    """Why a schema is in its topic."""

    __tablename__ = "decisions"

    id: Mapped[int] = mapped_column(primary_key=True)
    source_id: Mapped[int] = mapped_column(ForeignKey("sources.id"), index=True)
    topic_id: Mapped[int] = mapped_column(ForeignKey("topics.id"), index=True)
    schema_id: Mapped[int] = mapped_column(ForeignKey("schemas.id"))
    is_new_topic: Mapped[bool]
    rule: Mapped[str] = mapped_column(String(64))
    reason: Mapped[str] = mapped_column(LongText)
    decided_at: Mapped[datetime] = mapped_column(default=now)

    topic: Mapped[TopicRow] = relationship()


class ChangeRow(Base):
    """A write to the catalogue. The ids rise in the order of commits: they are cursors for those who follow it.
    `action`: a verb and a noun (`add topic`); `about`: the name of what changed; `namespace`: the one it belongs to.
    """

    __tablename__ = "changes"
    __table_args__ = {"sqlite_autoincrement": True}  # noqa: RUF012 - SQLAlchemy reads it from the class

    id: Mapped[int] = mapped_column(primary_key=True)
    changed_at: Mapped[datetime] = mapped_column(default=now, index=True)
    changed_by: Mapped[str] = mapped_column(String(NAME_LENGTH))
    action: Mapped[str] = mapped_column(String(64))
    namespace: Mapped[str | None] = mapped_column(String(NAME_LENGTH), index=True)
    about: Mapped[str] = mapped_column(String(1024))
    detail: Mapped[str] = mapped_column(LongText, default="")


class OutboxRow(Base):
    """A message that Kafka is still to get; the row goes when a broker has it. `value`: JSON."""

    __tablename__ = "outbox"
    __table_args__ = {"sqlite_autoincrement": True}  # noqa: RUF012 - as above

    id: Mapped[int] = mapped_column(primary_key=True)
    key: Mapped[str] = mapped_column(String(1024))
    value: Mapped[str] = mapped_column(LongText)
    created_at: Mapped[datetime] = mapped_column(default=now)
