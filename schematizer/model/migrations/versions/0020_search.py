"""Full-text search: a document for each thing of the catalogue, and the database's own index of their words.

Revision ID: 0020
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.mysql import LONGTEXT

revision = "0020"
down_revision = "0010"
branch_labels = None
depends_on = None

_TEXT = sa.Text().with_variant(LONGTEXT, "mysql", "mariadb")
# An FTS5 table that keeps the words only; the rows are those of search_documents, which triggers follow.
_SQLITE = (
    """CREATE VIRTUAL TABLE search_index USING fts5 (name_words, text_words, content = 'search_documents',
    content_rowid = 'id', tokenize = 'unicode61 remove_diacritics 0', prefix = '2 3')""",
    """CREATE TRIGGER search_documents_added AFTER INSERT ON search_documents BEGIN
    INSERT INTO search_index (rowid, name_words, text_words) VALUES (new.id, new.name_words, new.text_words); END""",
    """CREATE TRIGGER search_documents_removed AFTER DELETE ON search_documents BEGIN
    INSERT INTO search_index (search_index, rowid, name_words, text_words)
    VALUES ('delete', old.id, old.name_words, old.text_words); END""",
    """CREATE TRIGGER search_documents_changed AFTER UPDATE ON search_documents BEGIN
    INSERT INTO search_index (search_index, rowid, name_words, text_words)
    VALUES ('delete', old.id, old.name_words, old.text_words);
    INSERT INTO search_index (rowid, name_words, text_words) VALUES (new.id, new.name_words, new.text_words); END""",
)
_POSTGRESQL = (
    """CREATE INDEX ix_search_documents_words ON search_documents USING gin (
    (setweight(to_tsvector('simple'::regconfig, name_words), 'A') ||
    setweight(to_tsvector('simple'::regconfig, text_words), 'B')))""",
)


def upgrade() -> None:
    op.create_table(
        "search_documents",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("about", sa.String(16), nullable=False),
        sa.Column("namespace", sa.String(249), nullable=False),
        sa.Column("source", sa.String(249), nullable=False),
        sa.Column("name", sa.String(512), nullable=False),
        sa.Column("text", _TEXT, nullable=False),
        sa.Column("name_words", _TEXT, nullable=False),
        sa.Column("text_words", _TEXT, nullable=False),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("about", "namespace", "source", "name"),
    )
    statements = {"sqlite": _SQLITE, "postgresql": _POSTGRESQL}
    for statement in statements.get(op.get_bind().dialect.name, ()):
        op.execute(statement)


def downgrade() -> None:
    raise NotImplementedError("restore a backup from before the upgrade instead")
