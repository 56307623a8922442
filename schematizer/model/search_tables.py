"""The documents of full-text search: one for each namespace, source, field, topic and data target.

It is derived from the other tables and is not part of a backup, so it has its own metadata.
"""

from __future__ import annotations

from sqlalchemy import Column, Integer, MetaData, String, Table, UniqueConstraint

from schematizer.model.base import LongText
from schematizer.model.source_tables import NAME_LENGTH, PATH_LENGTH

metadata = MetaData()

documents = Table(
    "search_documents",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("about", String(16), nullable=False),
    Column("namespace", String(NAME_LENGTH), nullable=False),  # empty for a data target
    Column("source", String(NAME_LENGTH), nullable=False),  # empty for what has none
    Column("name", String(PATH_LENGTH), nullable=False),
    Column("text", LongText, nullable=False),
    Column("name_words", LongText, nullable=False),
    Column("text_words", LongText, nullable=False),
    UniqueConstraint("about", "namespace", "source", "name"),
)
"""`about`: a word of kinds.About. `text`: what is said of it. `name_words`, `text_words`: its words as
catalogue.words has them, one space between two; the databases index these.
"""

SQLITE_INDEX = "search_index"
POSTGRESQL_VECTOR = (
    "(setweight(to_tsvector('simple'::regconfig, name_words), 'A') || "
    "setweight(to_tsvector('simple'::regconfig, text_words), 'B'))"
)
"""The expression that PostgreSQL indexes: a query uses the index only if it has the same one."""
