"""Leases of deployments, and what was made from topic files.

Revision ID: 0040
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.mysql import LONGTEXT

revision = "0040"
down_revision = "0030"
branch_labels = None
depends_on = None

_TEXT = sa.Text().with_variant(LONGTEXT, "mysql", "mariadb")
_TIME = sa.BigInteger()  # microseconds since 1970


def upgrade() -> None:
    op.create_table(
        "leases",
        sa.Column("deployment", sa.String(64), nullable=False),
        sa.Column("holder", sa.String(249), nullable=False),
        sa.Column("token", sa.Integer(), nullable=False),
        sa.Column("expires_at", _TIME, nullable=False),
        sa.PrimaryKeyConstraint("deployment"),
    )
    op.create_table(
        "managed",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("deployment", sa.String(64), nullable=False),
        sa.Column("kind", sa.String(16), nullable=False),
        sa.Column("name", sa.String(512), nullable=False),
        sa.Column("content", _TEXT, nullable=False),
        sa.Column("about", _TEXT, nullable=False),
        sa.Column("changed_by", sa.String(249), nullable=False),
        sa.Column("changed_at", _TIME, nullable=False),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("deployment", "kind", "name"),
    )


def downgrade() -> None:
    raise NotImplementedError("restore a backup from before the upgrade instead")
