"""The tables of the registry: schemas, versions of subjects, and their settings."""

from __future__ import annotations

from sqlalchemy import Boolean, Column, ForeignKey, Integer, String, Table

from schematizer.model.base import Base, LongText

SUBJECT_LENGTH = 512
GLOBAL = ""
"""The subject of the default settings, for subjects without their own."""

schemas = Table(
    "schemas",
    Base.metadata,
    Column("id", Integer, primary_key=True, autoincrement=True),
    Column("digest", String(64), nullable=False, unique=True),
    Column("text", LongText, nullable=False),
    Column("same_as", Integer, index=True),
    sqlite_autoincrement=True,
)
"""Rows are never deleted or changed: messages stay readable by their ids. digest: hex SHA-256 of the canonical text.
Each schema has one row, and one more for each further id that an import brought: there `same_as` is the id of the first
one, and the digest is of id and text.
"""

versions = Table(
    "versions",
    Base.metadata,
    Column("subject", String(SUBJECT_LENGTH), primary_key=True),
    Column("version", Integer, primary_key=True, autoincrement=False),
    Column("schema_id", Integer, ForeignKey("schemas.id"), nullable=False, index=True),
    Column("deleted", Boolean, nullable=False, default=False),
)

subject_settings = Table(
    "subject_settings",
    Base.metadata,
    Column("subject", String(SUBJECT_LENGTH), primary_key=True),
    Column("compatibility", String(32)),
    Column("mode", String(32)),
    Column("normalize", Boolean),
)
