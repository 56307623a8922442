"""API keys, sessions of browsers, and the audit log.

Revision ID: 0010
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.mysql import LONGTEXT

revision = "0010"
down_revision = "0002"
branch_labels = None
depends_on = None

_TEXT = sa.Text().with_variant(LONGTEXT, "mysql", "mariadb")
_TIME = sa.BigInteger()  # microseconds since 1970


def upgrade() -> None:
    op.create_table(
        "api_keys",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("key_id", sa.String(32), nullable=False),
        sa.Column("secret_hash", sa.String(64), nullable=False),
        sa.Column("name", sa.String(249), nullable=False),
        sa.Column("grants", _TEXT, nullable=False),
        sa.Column("created_by", sa.String(249), nullable=False),
        sa.Column("created_at", _TIME, nullable=False),
        sa.Column("expires_at", _TIME),
        sa.Column("revoked_at", _TIME),
        sa.Column("revoked_by", sa.String(249)),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("key_id"),
    )
    op.create_table(
        "sessions",
        sa.Column("token_hash", sa.String(64), nullable=False),
        sa.Column("actor", sa.String(249), nullable=False),
        sa.Column("grants", _TEXT, nullable=False),
        sa.Column("api_key_id", sa.Integer()),
        sa.Column("created_at", _TIME, nullable=False),
        sa.Column("expires_at", _TIME, nullable=False),
        sa.ForeignKeyConstraint(["api_key_id"], ["api_keys.id"]),
        sa.PrimaryKeyConstraint("token_hash"),
    )
    op.create_index("ix_sessions_expires_at", "sessions", ["expires_at"])
    op.create_table(
        "audit_log",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("at", _TIME, nullable=False),
        sa.Column("actor", sa.String(249), nullable=False),
        sa.Column("address", sa.String(64), nullable=False),
        sa.Column("action", sa.String(256), nullable=False),
        sa.Column("about", sa.String(1024), nullable=False),
        sa.Column("namespace", sa.String(249)),
        sa.Column("result", sa.String(16), nullable=False),
        sa.Column("reason", sa.String(64), nullable=False),
        sa.Column("status", sa.Integer()),
        sa.PrimaryKeyConstraint("id"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_audit_log_at", "audit_log", ["at"])
    op.create_index("ix_audit_log_actor", "audit_log", ["actor"])


def downgrade() -> None:
    raise NotImplementedError("restore a backup from before the upgrade instead")
