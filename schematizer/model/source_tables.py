"""The tables of the catalogue's main line: namespace → source → topic → schemas → elements."""

from __future__ import annotations

from datetime import datetime  # noqa: TC003 - SQLAlchemy reads annotations

from sqlalchemy import ForeignKey, String, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column, relationship

from cdc_common.clients.registry.kinds import Part, Status, TopicKind
from schematizer.model.base import Base, LongText, now, words

NAME_LENGTH = 249
"""The longest name of a topic, as in Kafka, and of a namespace and a source, which are parts of it."""
PATH_LENGTH = 512


class NamespaceRow(Base):
    """`name`: the topic prefix and the keyspace (`cdc.shop`), or any dotted name."""

    __tablename__ = "namespaces"

    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str] = mapped_column(String(NAME_LENGTH), unique=True)
    owner: Mapped[str | None] = mapped_column(String(NAME_LENGTH))
    doc: Mapped[str | None] = mapped_column(LongText)
    created_at: Mapped[datetime] = mapped_column(default=now)

    sources: Mapped[list[SourceRow]] = relationship(back_populates="namespace", order_by="SourceRow.name")


class SourceRow(Base):
    """A table, or another writer of one kind of message. `deprecation`: why it should no longer be read; None if it is
    not deprecated. `successor`: the name of the source to read instead, as NAMESPACE/SOURCE.
    """

    __tablename__ = "sources"
    __table_args__ = (UniqueConstraint("namespace_id", "name"),)

    id: Mapped[int] = mapped_column(primary_key=True)
    namespace_id: Mapped[int] = mapped_column(ForeignKey("namespaces.id"))
    name: Mapped[str] = mapped_column(String(NAME_LENGTH), index=True)
    owner: Mapped[str | None] = mapped_column(String(NAME_LENGTH), index=True)
    doc: Mapped[str | None] = mapped_column(LongText)
    created_at: Mapped[datetime] = mapped_column(default=now)
    deprecation: Mapped[str | None] = mapped_column(LongText)
    deprecated_at: Mapped[datetime | None]
    successor: Mapped[str | None] = mapped_column(String(512))

    namespace: Mapped[NamespaceRow] = relationship(back_populates="sources")
    topics: Mapped[list[TopicRow]] = relationship(back_populates="source", order_by="TopicRow.id")
    fields: Mapped[list[FieldRow]] = relationship(back_populates="source", order_by="FieldRow.path")


class FieldRow(Base):
    """The documentation of one field of a source, in whichever schema it stands: from a documentation file, mostly.
    `path`: names joined by dots, from the row's record down.
    """

    __tablename__ = "source_fields"
    __table_args__ = (UniqueConstraint("source_id", "path"),)

    id: Mapped[int] = mapped_column(primary_key=True)
    source_id: Mapped[int] = mapped_column(ForeignKey("sources.id"))
    path: Mapped[str] = mapped_column(String(PATH_LENGTH))
    doc: Mapped[str | None] = mapped_column(LongText)
    owner: Mapped[str | None] = mapped_column(String(NAME_LENGTH))
    is_pii: Mapped[bool] = mapped_column(default=False)

    source: Mapped[SourceRow] = relationship(back_populates="fields")


class TopicRow(Base):
    """`pii`: the paths of the personal fields that the topic may carry, sorted, one a line; empty for none.
    `last_used_at`: when a registration, a producer or a consumer last named it.
    """

    __tablename__ = "topics"

    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str] = mapped_column(String(NAME_LENGTH), unique=True)
    source_id: Mapped[int] = mapped_column(ForeignKey("sources.id"), index=True)
    kind: Mapped[TopicKind] = mapped_column(words(TopicKind, 16))
    status: Mapped[Status] = mapped_column(words(Status, 16), default=Status.READ_WRITE)
    pii: Mapped[str] = mapped_column(LongText, default="")
    created_at: Mapped[datetime] = mapped_column(default=now, index=True)
    last_used_at: Mapped[datetime] = mapped_column(default=now)

    source: Mapped[SourceRow] = relationship(back_populates="topics")
    schemas: Mapped[list[TopicSchemaRow]] = relationship(back_populates="topic", order_by="TopicSchemaRow.id")


class TopicSchemaRow(Base):
    """A schema of a topic. `format`: the name of the converter that read it. `primary_key`: paths in order, one a line;
    empty if it is unknown, or is the topic's key schema. `last_used_at`: when a registration or a producer last named
    it.
    """

    __tablename__ = "topic_schemas"
    __table_args__ = (UniqueConstraint("topic_id", "part", "schema_id"),)

    id: Mapped[int] = mapped_column(primary_key=True)
    topic_id: Mapped[int] = mapped_column(ForeignKey("topics.id"))
    part: Mapped[Part] = mapped_column(words(Part, 8))
    schema_id: Mapped[int] = mapped_column(ForeignKey("schemas.id"), index=True)
    status: Mapped[Status] = mapped_column(words(Status, 16), default=Status.READ_WRITE)
    format: Mapped[str] = mapped_column(String(64))
    primary_key: Mapped[str] = mapped_column(LongText, default="")
    created_at: Mapped[datetime] = mapped_column(default=now)
    last_used_at: Mapped[datetime] = mapped_column(default=now)

    topic: Mapped[TopicRow] = relationship(back_populates="schemas")


class ElementRow(Base):
    """A field of a schema, with the documentation that the schema itself has. Schemas never change, nor do these.
    `source_type`: the type in the database that the schema describes, if the schema says it.
    """

    __tablename__ = "elements"
    __table_args__ = (UniqueConstraint("schema_id", "position"),)

    id: Mapped[int] = mapped_column(primary_key=True)
    schema_id: Mapped[int] = mapped_column(ForeignKey("schemas.id"))
    position: Mapped[int]
    path: Mapped[str] = mapped_column(String(PATH_LENGTH), index=True)
    type: Mapped[str] = mapped_column(LongText)
    source_type: Mapped[str | None] = mapped_column(LongText)
    is_nullable: Mapped[bool]
    doc: Mapped[str | None] = mapped_column(LongText)
