"""The catalogue: namespaces, sources, topics and their schemas, who uses them, and what is said of them.

Revision ID: 0002
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.mysql import LONGTEXT

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

_TEXT = sa.Text().with_variant(LONGTEXT, "mysql", "mariadb")


def _table(name: str, *parts: sa.schema.SchemaItem, **options: bool) -> None:
    op.create_table(
        name, sa.Column("id", sa.Integer(), nullable=False), *parts, sa.PrimaryKeyConstraint("id"), **options
    )


def _to(table: str, *, is_nullable: bool = False) -> sa.Column[int]:
    """The id of a row of that table: `topic_id` for `topics`."""
    name = f"{table.removesuffix('s')}_id"
    return sa.Column(name, sa.Integer(), sa.ForeignKey(f"{table}.id"), nullable=is_nullable)


def _name(name: str, length: int = 249, *, is_nullable: bool = False) -> sa.Column[str]:
    return sa.Column(name, sa.String(length), nullable=is_nullable)


def _text(name: str, *, is_nullable: bool = False) -> sa.Column[str]:
    return sa.Column(name, _TEXT, nullable=is_nullable)


def _time(name: str) -> sa.Column[int]:
    """Microseconds since 1970."""
    return sa.Column(name, sa.BigInteger(), nullable=False)


def _number(name: str) -> sa.Column[int]:
    return sa.Column(name, sa.Integer(), nullable=False)


def _flag(name: str) -> sa.Column[bool]:
    return sa.Column(name, sa.Boolean(), nullable=False)


def upgrade() -> None:
    _main_line()
    _clients()
    _records()


def downgrade() -> None:
    raise NotImplementedError("restore a backup from before the upgrade instead")


def _main_line() -> None:
    _table(
        "namespaces",
        _name("name"),
        _name("owner", is_nullable=True),
        _text("doc", is_nullable=True),
        _time("created_at"),
        sa.UniqueConstraint("name"),
    )
    _table(
        "sources",
        _to("namespaces"),
        _name("name"),
        _name("owner", is_nullable=True),
        _text("doc", is_nullable=True),
        _time("created_at"),
        sa.UniqueConstraint("namespace_id", "name"),
    )
    op.create_index("ix_sources_name", "sources", ["name"])
    op.create_index("ix_sources_owner", "sources", ["owner"])
    _table(
        "source_fields",
        _to("sources"),
        _name("path", 512),
        _text("doc", is_nullable=True),
        _name("owner", is_nullable=True),
        _flag("is_pii"),
        sa.UniqueConstraint("source_id", "path"),
    )
    _table(
        "topics",
        _name("name"),
        _to("sources"),
        _name("kind", 16),
        _name("status", 16),
        _text("pii"),
        _time("created_at"),
        _time("last_used_at"),
        sa.UniqueConstraint("name"),
    )
    op.create_index("ix_topics_created_at", "topics", ["created_at"])
    op.create_index("ix_topics_source_id", "topics", ["source_id"])
    _table(
        "topic_schemas",
        _to("topics"),
        _name("part", 8),
        _to("schemas"),
        _name("status", 16),
        _name("format", 64),
        _text("primary_key"),
        _time("created_at"),
        _time("last_used_at"),
        sa.UniqueConstraint("topic_id", "part", "schema_id"),
    )
    op.create_index("ix_topic_schemas_schema_id", "topic_schemas", ["schema_id"])
    _table(
        "elements",
        _to("schemas"),
        _number("position"),
        _name("path", 512),
        _text("type"),
        _text("source_type", is_nullable=True),
        _flag("is_nullable"),
        _text("doc", is_nullable=True),
        sa.UniqueConstraint("schema_id", "position"),
    )
    op.create_index("ix_elements_path", "elements", ["path"])


def _clients() -> None:
    _table(
        "data_targets",
        _name("name"),
        _name("kind", 64),
        _name("destination", 512),
        _name("owner", is_nullable=True),
        _text("doc", is_nullable=True),
        _time("created_at"),
        sa.UniqueConstraint("name"),
    )
    _table(
        "consumer_groups",
        _name("name"),
        _to("data_targets"),
        _time("created_at"),
        sa.UniqueConstraint("name"),
    )
    op.create_index("ix_consumer_groups_data_target_id", "consumer_groups", ["data_target_id"])
    _table(
        "data_sources",
        _to("consumer_groups"),
        _to("namespaces"),
        _to("sources", is_nullable=True),
        sa.UniqueConstraint("consumer_group_id", "namespace_id", "source_id"),
    )
    _table(
        "producers",
        _name("team"),
        _name("service"),
        _to("topics"),
        _to("schemas"),
        _number("expected_frequency_seconds"),
        _time("first_seen_at"),
        _time("last_seen_at"),
        sa.UniqueConstraint("service", "topic_id", "schema_id"),
    )
    op.create_index("ix_producers_team", "producers", ["team"])
    op.create_index("ix_producers_topic_id", "producers", ["topic_id"])
    _table(
        "consumers",
        _name("team"),
        _name("service"),
        _to("topics"),
        _name("consumer_group"),
        _number("expected_frequency_seconds"),
        _time("first_seen_at"),
        _time("last_seen_at"),
        sa.UniqueConstraint("service", "topic_id", "consumer_group"),
    )
    op.create_index("ix_consumers_team", "consumers", ["team"])
    op.create_index("ix_consumers_topic_id", "consumers", ["topic_id"])


def _records() -> None:
    _table(
        "notes",
        _name("about", 16),
        _number("about_id"),
        _text("text"),
        _name("author"),
        _time("created_at"),
        _time("updated_at"),
    )
    op.create_index("ix_notes_about", "notes", ["about", "about_id"])
    _table(
        "tags",
        _name("name", 64),
        _name("about", 16),
        _number("about_id"),
        sa.UniqueConstraint("name", "about", "about_id"),
    )
    op.create_index("ix_tags_about", "tags", ["about", "about_id"])
    _table(
        "refreshes",
        _to("sources"),
        _name("status", 16),
        _text("reason"),
        _name("requested_by"),
        _number("rows_sent"),
        _time("created_at"),
        _time("updated_at"),
    )
    op.create_index("ix_refreshes_source_id", "refreshes", ["source_id"])
    _table(
        "decisions",
        _to("sources"),
        _to("topics"),
        _to("schemas"),
        _flag("is_new_topic"),
        _name("rule", 64),
        _text("reason"),
        _time("decided_at"),
    )
    op.create_index("ix_decisions_source_id", "decisions", ["source_id"])
    op.create_index("ix_decisions_topic_id", "decisions", ["topic_id"])
    _table(
        "changes",
        _time("changed_at"),
        _name("changed_by"),
        _name("action", 64),
        _name("namespace", is_nullable=True),
        _name("about", 1024),
        _text("detail"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_changes_changed_at", "changes", ["changed_at"])
    op.create_index("ix_changes_namespace", "changes", ["namespace"])
    _table(
        "outbox",
        _name("key", 1024),
        _text("value"),
        _time("created_at"),
        sqlite_autoincrement=True,
    )
