"""The tables of the registry. A database from before the migrations has them already.

Revision ID: 0001
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.mysql import LONGTEXT

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    if sa.inspect(op.get_bind()).has_table("schemas"):
        return
    op.create_table(
        "schemas",
        sa.Column("id", sa.Integer(), primary_key=True, autoincrement=True),
        sa.Column("digest", sa.String(64), nullable=False, unique=True),
        sa.Column("text", sa.Text().with_variant(LONGTEXT, "mysql", "mariadb"), nullable=False),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "versions",
        sa.Column("subject", sa.String(512), primary_key=True),
        sa.Column("version", sa.Integer(), primary_key=True, autoincrement=False),
        sa.Column("schema_id", sa.Integer(), sa.ForeignKey("schemas.id"), nullable=False),
        sa.Column("deleted", sa.Boolean(), nullable=False),
    )
    op.create_index("ix_versions_schema_id", "versions", ["schema_id"])
    op.create_table(
        "subject_settings",
        sa.Column("subject", sa.String(512), primary_key=True),
        sa.Column("compatibility", sa.String(32)),
        sa.Column("mode", sa.String(32)),
    )


def downgrade() -> None:
    raise NotImplementedError("the registry's tables are never removed")
