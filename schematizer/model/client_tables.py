"""The tables of writers and readers: producers, consumers, and data targets with their consumer groups."""

from __future__ import annotations

from datetime import datetime  # noqa: TC003 - SQLAlchemy reads annotations

from sqlalchemy import ForeignKey, String, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column, relationship

from schematizer.model.base import Base, LongText, now
from schematizer.model.source_tables import NAME_LENGTH, NamespaceRow, SourceRow, TopicRow


class DataTargetRow(Base):
    """A place where data ends: a warehouse, a search index. `kind`: redshift, elasticsearch, …; `destination`: its
    address.
    """

    __tablename__ = "data_targets"

    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str] = mapped_column(String(NAME_LENGTH), unique=True)
    kind: Mapped[str] = mapped_column(String(64))
    destination: Mapped[str] = mapped_column(String(512))
    owner: Mapped[str | None] = mapped_column(String(NAME_LENGTH))
    doc: Mapped[str | None] = mapped_column(LongText)
    created_at: Mapped[datetime] = mapped_column(default=now)

    groups: Mapped[list[ConsumerGroupRow]] = relationship(
        back_populates="data_target", order_by="ConsumerGroupRow.name"
    )


class ConsumerGroupRow(Base):
    """A Kafka consumer group that fills a data target."""

    __tablename__ = "consumer_groups"

    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str] = mapped_column(String(NAME_LENGTH), unique=True)
    data_target_id: Mapped[int] = mapped_column(ForeignKey("data_targets.id"), index=True)
    created_at: Mapped[datetime] = mapped_column(default=now)

    data_target: Mapped[DataTargetRow] = relationship(back_populates="groups")
    data_sources: Mapped[list[DataSourceRow]] = relationship(
        back_populates="group", order_by="DataSourceRow.id", cascade="all, delete-orphan"
    )


class DataSourceRow(Base):
    """A part of what a consumer group reads: all sources of a namespace, or one source; whichever topics they have."""

    __tablename__ = "data_sources"
    __table_args__ = (UniqueConstraint("consumer_group_id", "namespace_id", "source_id"),)

    id: Mapped[int] = mapped_column(primary_key=True)
    consumer_group_id: Mapped[int] = mapped_column(ForeignKey("consumer_groups.id"))
    namespace_id: Mapped[int] = mapped_column(ForeignKey("namespaces.id"))
    source_id: Mapped[int | None] = mapped_column(ForeignKey("sources.id"))

    group: Mapped[ConsumerGroupRow] = relationship(back_populates="data_sources")
    namespace: Mapped[NamespaceRow] = relationship()
    source: Mapped[SourceRow | None] = relationship()


class ProducerRow(Base):
    """A service that writes messages with a schema to a topic."""

    __tablename__ = "producers"
    __table_args__ = (UniqueConstraint("service", "topic_id", "schema_id"),)

    id: Mapped[int] = mapped_column(primary_key=True)
    team: Mapped[str] = mapped_column(String(NAME_LENGTH), index=True)
    service: Mapped[str] = mapped_column(String(NAME_LENGTH))
    topic_id: Mapped[int] = mapped_column(ForeignKey("topics.id"), index=True)
    schema_id: Mapped[int] = mapped_column(ForeignKey("schemas.id"))
    expected_frequency_seconds: Mapped[int]
    first_seen_at: Mapped[datetime] = mapped_column(default=now)
    last_seen_at: Mapped[datetime] = mapped_column(default=now)

    topic: Mapped[TopicRow] = relationship()


class ConsumerRow(Base):
    """A service that reads a topic in a consumer group."""

    __tablename__ = "consumers"
    __table_args__ = (UniqueConstraint("service", "topic_id", "consumer_group"),)

    id: Mapped[int] = mapped_column(primary_key=True)
    team: Mapped[str] = mapped_column(String(NAME_LENGTH), index=True)
    service: Mapped[str] = mapped_column(String(NAME_LENGTH))
    topic_id: Mapped[int] = mapped_column(ForeignKey("topics.id"), index=True)
    consumer_group: Mapped[str] = mapped_column(String(NAME_LENGTH))
    expected_frequency_seconds: Mapped[int]
    first_seen_at: Mapped[datetime] = mapped_column(default=now)
    last_seen_at: Mapped[datetime] = mapped_column(default=now)

    topic: Mapped[TopicRow] = relationship()
