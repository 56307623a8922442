"""The tables of deployments: who may apply topic files now, and what was made from them."""

from __future__ import annotations

from datetime import datetime  # noqa: TC003 - SQLAlchemy reads annotations

from sqlalchemy import String, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from schematizer.model.base import Base, LongText, now
from schematizer.model.source_tables import NAME_LENGTH

DEPLOYMENT_LENGTH = 64
THING_LENGTH = 512


class LeaseRow(Base):
    """The right to apply the files of a deployment, of one holder at a time. `token`: rises with each holder, so that
    one whose time is over can write nothing more.
    """

    __tablename__ = "leases"

    deployment: Mapped[str] = mapped_column(String(DEPLOYMENT_LENGTH), primary_key=True)
    holder: Mapped[str] = mapped_column(String(NAME_LENGTH))
    token: Mapped[int]
    expires_at: Mapped[datetime]


class ManagedRow(Base):
    """A thing that was made from topic files, as they said it last. `content`, `about`: JSON objects; what is compared
    with the thing, and what people want to know of it.
    """

    __tablename__ = "managed"
    __table_args__ = (UniqueConstraint("deployment", "kind", "name"),)

    id: Mapped[int] = mapped_column(primary_key=True)
    deployment: Mapped[str] = mapped_column(String(DEPLOYMENT_LENGTH))
    kind: Mapped[str] = mapped_column(String(16))
    name: Mapped[str] = mapped_column(String(THING_LENGTH))
    content: Mapped[str] = mapped_column(LongText)
    about: Mapped[str] = mapped_column(LongText)
    changed_by: Mapped[str] = mapped_column(String(NAME_LENGTH))
    changed_at: Mapped[datetime] = mapped_column(default=now)
