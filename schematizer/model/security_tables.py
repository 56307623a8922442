"""The tables of logins and of what was done: API keys, sessions of browsers, the audit log."""

from __future__ import annotations

from datetime import datetime  # noqa: TC003 - SQLAlchemy reads annotations
from enum import StrEnum

from sqlalchemy import ForeignKey, String
from sqlalchemy.orm import Mapped, mapped_column, relationship

from schematizer.model.base import Base, LongText, now, words
from schematizer.model.source_tables import NAME_LENGTH

ADDRESS_LENGTH = 64
ABOUT_LENGTH = 1024


class Result(StrEnum):
    """The result of a request in the audit log. STARTED: it is being answered, or the registry ended before it was."""

    STARTED = "started"
    DONE = "done"
    FAILED = "failed"
    REFUSED = "refused"


class ApiKeyRow(Base):
    """`key_id`: public, names the key in a request. `secret_hash`: hex SHA-256 of the secret, which has 256 random
    bits, so that a slow hash would add nothing. `grants`: one `ROLE:NAMESPACE` a line.
    """

    __tablename__ = "api_keys"

    id: Mapped[int] = mapped_column(primary_key=True)
    key_id: Mapped[str] = mapped_column(String(32), unique=True)
    secret_hash: Mapped[str] = mapped_column(String(64))
    name: Mapped[str] = mapped_column(String(NAME_LENGTH))
    grants: Mapped[str] = mapped_column(LongText)
    created_by: Mapped[str] = mapped_column(String(NAME_LENGTH))
    created_at: Mapped[datetime] = mapped_column(default=now)
    expires_at: Mapped[datetime | None]
    revoked_at: Mapped[datetime | None]
    revoked_by: Mapped[str | None] = mapped_column(String(NAME_LENGTH))


class SessionRow(Base):
    """A browser that is signed in. `token_hash`: hex SHA-256 of the cookie. With a key the grants are the key's of
    today, without one those of the token that signed in.
    """

    __tablename__ = "sessions"

    token_hash: Mapped[str] = mapped_column(String(64), primary_key=True)
    actor: Mapped[str] = mapped_column(String(NAME_LENGTH))
    grants: Mapped[str] = mapped_column(LongText)
    api_key_id: Mapped[int | None] = mapped_column(ForeignKey("api_keys.id"))
    created_at: Mapped[datetime] = mapped_column(default=now)
    expires_at: Mapped[datetime] = mapped_column(index=True)

    api_key: Mapped[ApiKeyRow | None] = relationship()


class AuditRow(Base):
    """A request that wrote or was refused, a login, or a command. `action`: method and route, or the command's name;
    `about`: the path; `status`: of HTTP, or None.
    """

    __tablename__ = "audit_log"
    __table_args__ = {"sqlite_autoincrement": True}  # noqa: RUF012 - SQLAlchemy reads it from the class

    id: Mapped[int] = mapped_column(primary_key=True)
    at: Mapped[datetime] = mapped_column(default=now, index=True)
    actor: Mapped[str] = mapped_column(String(NAME_LENGTH), index=True)
    address: Mapped[str] = mapped_column(String(ADDRESS_LENGTH))
    action: Mapped[str] = mapped_column(String(256))
    about: Mapped[str] = mapped_column(String(ABOUT_LENGTH))
    namespace: Mapped[str | None] = mapped_column(String(NAME_LENGTH))
    result: Mapped[Result] = mapped_column(words(Result, 16))
    reason: Mapped[str] = mapped_column(String(64), default="")
    status: Mapped[int | None]
