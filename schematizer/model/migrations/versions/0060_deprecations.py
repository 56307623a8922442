"""Deprecated sources: why, since when, and what to read instead.

Revision ID: 0060
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.mysql import LONGTEXT

revision = "0060"
down_revision = "0050"
branch_labels = None
depends_on = None


def upgrade() -> None:
    text = sa.Text().with_variant(LONGTEXT, "mysql", "mariadb")
    op.add_column("sources", sa.Column("deprecation", text, nullable=True))
    op.add_column("sources", sa.Column("deprecated_at", sa.BigInteger(), nullable=True))  # microseconds since 1970
    op.add_column("sources", sa.Column("successor", sa.String(512), nullable=True))


def downgrade() -> None:
    raise NotImplementedError("restore a backup from before the upgrade instead")
