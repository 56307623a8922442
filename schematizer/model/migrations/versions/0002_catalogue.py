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
_TIME = sa.BigInteger()  # microseconds since 1970


def upgrade() -> None:
    _main_line()
    _clients()
    _records()


def downgrade() -> None:
    raise NotImplementedError("restore a backup from before the upgrade instead")


def _main_line() -> None:
    op.create_table(
        "namespaces",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("name", sa.String(249), nullable=False),
        sa.Column("owner", sa.String(249)),
        sa.Column("doc", _TEXT),
        sa.Column("created_at", _TIME, nullable=False),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("name"),
    )
    op.create_table(
        "sources",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("namespace_id", sa.Integer(), nullable=False),
        sa.Column("name", sa.String(249), nullable=False),
        sa.Column("owner", sa.String(249)),
        sa.Column("doc", _TEXT),
        sa.Column("created_at", _TIME, nullable=False),
        sa.ForeignKeyConstraint(["namespace_id"], ["namespaces.id"]),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("namespace_id", "name"),
    )
    op.create_index("ix_sources_name", "sources", ["name"])
    op.create_index("ix_sources_owner", "sources", ["owner"])
    op.create_table(
        "source_fields",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("source_id", sa.Integer(), nullable=False),
        sa.Column("path", sa.String(512), nullable=False),
        sa.Column("doc", _TEXT),
        sa.Column("owner", sa.String(249)),
        sa.Column("is_pii", sa.Boolean(), nullable=False),
        sa.ForeignKeyConstraint(["source_id"], ["sources.id"]),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("source_id", "path"),
    )
    op.create_table(
        "topics",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("name", sa.String(249), nullable=False),
        sa.Column("source_id", sa.Integer(), nullable=False),
        sa.Column("kind", sa.String(16), nullable=False),
        sa.Column("status", sa.String(16), nullable=False),
        sa.Column("pii", _TEXT, nullable=False),
        sa.Column("created_at", _TIME, nullable=False),
        sa.Column("last_used_at", _TIME, nullable=False),
        sa.ForeignKeyConstraint(["source_id"], ["sources.id"]),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("name"),
    )
    op.create_index("ix_topics_created_at", "topics", ["created_at"])
    op.create_index("ix_topics_source_id", "topics", ["source_id"])
    op.create_table(
        "topic_schemas",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("topic_id", sa.Integer(), nullable=False),
        sa.Column("part", sa.String(8), nullable=False),
        sa.Column("schema_id", sa.Integer(), nullable=False),
        sa.Column("status", sa.String(16), nullable=False),
        sa.Column("format", sa.String(64), nullable=False),
        sa.Column("primary_key", _TEXT, nullable=False),
        sa.Column("created_at", _TIME, nullable=False),
        sa.Column("last_used_at", _TIME, nullable=False),
        sa.ForeignKeyConstraint(["schema_id"], ["schemas.id"]),
        sa.ForeignKeyConstraint(["topic_id"], ["topics.id"]),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("topic_id", "part", "schema_id"),
    )
    op.create_index("ix_topic_schemas_schema_id", "topic_schemas", ["schema_id"])
    op.create_table(
        "elements",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("schema_id", sa.Integer(), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("path", sa.String(512), nullable=False),
        sa.Column("type", _TEXT, nullable=False),
        sa.Column("source_type", _TEXT),
        sa.Column("is_nullable", sa.Boolean(), nullable=False),
        sa.Column("doc", _TEXT),
        sa.ForeignKeyConstraint(["schema_id"], ["schemas.id"]),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("schema_id", "position"),
    )
    op.create_index("ix_elements_path", "elements", ["path"])


def _clients() -> None:
    op.create_table(
        "data_targets",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("name", sa.String(249), nullable=False),
        sa.Column("kind", sa.String(64), nullable=False),
        sa.Column("destination", sa.String(512), nullable=False),
        sa.Column("owner", sa.String(249)),
        sa.Column("doc", _TEXT),
        sa.Column("created_at", _TIME, nullable=False),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("name"),
    )
    op.create_table(
        "consumer_groups",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("name", sa.String(249), nullable=False),
        sa.Column("data_target_id", sa.Integer(), nullable=False),
        sa.Column("created_at", _TIME, nullable=False),
        sa.ForeignKeyConstraint(["data_target_id"], ["data_targets.id"]),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("name"),
    )
    op.create_index("ix_consumer_groups_data_target_id", "consumer_groups", ["data_target_id"])
    op.create_table(
        "data_sources",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("consumer_group_id", sa.Integer(), nullable=False),
        sa.Column("namespace_id", sa.Integer(), nullable=False),
        sa.Column("source_id", sa.Integer()),
        sa.ForeignKeyConstraint(["consumer_group_id"], ["consumer_groups.id"]),
        sa.ForeignKeyConstraint(["namespace_id"], ["namespaces.id"]),
        sa.ForeignKeyConstraint(["source_id"], ["sources.id"]),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("consumer_group_id", "namespace_id", "source_id"),
    )
    op.create_table(
        "producers",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("team", sa.String(249), nullable=False),
        sa.Column("service", sa.String(249), nullable=False),
        sa.Column("topic_id", sa.Integer(), nullable=False),
        sa.Column("schema_id", sa.Integer(), nullable=False),
        sa.Column("expected_frequency_seconds", sa.Integer(), nullable=False),
        sa.Column("first_seen_at", _TIME, nullable=False),
        sa.Column("last_seen_at", _TIME, nullable=False),
        sa.ForeignKeyConstraint(["schema_id"], ["schemas.id"]),
        sa.ForeignKeyConstraint(["topic_id"], ["topics.id"]),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("service", "topic_id", "schema_id"),
    )
    op.create_index("ix_producers_team", "producers", ["team"])
    op.create_index("ix_producers_topic_id", "producers", ["topic_id"])
    op.create_table(
        "consumers",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("team", sa.String(249), nullable=False),
        sa.Column("service", sa.String(249), nullable=False),
        sa.Column("topic_id", sa.Integer(), nullable=False),
        sa.Column("consumer_group", sa.String(249), nullable=False),
        sa.Column("expected_frequency_seconds", sa.Integer(), nullable=False),
        sa.Column("first_seen_at", _TIME, nullable=False),
        sa.Column("last_seen_at", _TIME, nullable=False),
        sa.ForeignKeyConstraint(["topic_id"], ["topics.id"]),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("service", "topic_id", "consumer_group"),
    )
    op.create_index("ix_consumers_team", "consumers", ["team"])
    op.create_index("ix_consumers_topic_id", "consumers", ["topic_id"])


def _records() -> None:
    op.create_table(
        "notes",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("about", sa.String(16), nullable=False),
        sa.Column("about_id", sa.Integer(), nullable=False),
        sa.Column("text", _TEXT, nullable=False),
        sa.Column("author", sa.String(249), nullable=False),
        sa.Column("created_at", _TIME, nullable=False),
        sa.Column("updated_at", _TIME, nullable=False),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index("ix_notes_about", "notes", ["about", "about_id"])
    op.create_table(
        "tags",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("name", sa.String(64), nullable=False),
        sa.Column("about", sa.String(16), nullable=False),
        sa.Column("about_id", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("name", "about", "about_id"),
    )
    op.create_index("ix_tags_about", "tags", ["about", "about_id"])
    op.create_table(
        "refreshes",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("source_id", sa.Integer(), nullable=False),
        sa.Column("status", sa.String(16), nullable=False),
        sa.Column("reason", _TEXT, nullable=False),
        sa.Column("requested_by", sa.String(249), nullable=False),
        sa.Column("rows_sent", sa.Integer(), nullable=False),
        sa.Column("created_at", _TIME, nullable=False),
        sa.Column("updated_at", _TIME, nullable=False),
        sa.ForeignKeyConstraint(["source_id"], ["sources.id"]),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index("ix_refreshes_source_id", "refreshes", ["source_id"])
    op.create_table(
        "decisions",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("source_id", sa.Integer(), nullable=False),
        sa.Column("topic_id", sa.Integer(), nullable=False),
        sa.Column("schema_id", sa.Integer(), nullable=False),
        sa.Column("is_new_topic", sa.Boolean(), nullable=False),
        sa.Column("rule", sa.String(64), nullable=False),
        sa.Column("reason", _TEXT, nullable=False),
        sa.Column("decided_at", _TIME, nullable=False),
        sa.ForeignKeyConstraint(["schema_id"], ["schemas.id"]),
        sa.ForeignKeyConstraint(["source_id"], ["sources.id"]),
        sa.ForeignKeyConstraint(["topic_id"], ["topics.id"]),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index("ix_decisions_source_id", "decisions", ["source_id"])
    op.create_index("ix_decisions_topic_id", "decisions", ["topic_id"])
    op.create_table(
        "changes",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("changed_at", _TIME, nullable=False),
        sa.Column("changed_by", sa.String(249), nullable=False),
        sa.Column("action", sa.String(64), nullable=False),
        sa.Column("namespace", sa.String(249)),
        sa.Column("about", sa.String(1024), nullable=False),
        sa.Column("detail", _TEXT, nullable=False),
        sa.PrimaryKeyConstraint("id"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_changes_changed_at", "changes", ["changed_at"])
    op.create_index("ix_changes_namespace", "changes", ["namespace"])
    op.create_table(
        "outbox",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("key", sa.String(1024), nullable=False),
        sa.Column("value", _TEXT, nullable=False),
        sa.Column("created_at", _TIME, nullable=False),
        sa.PrimaryKeyConstraint("id"),
        sqlite_autoincrement=True,
    )
