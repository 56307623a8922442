"""Several ids of one schema, as another registry may have given them.

Revision ID: 0030
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0030"
down_revision = "0020"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("schemas", sa.Column("same_as", sa.Integer()))
    op.create_index("ix_schemas_same_as", "schemas", ["same_as"])
    op.add_column("subject_settings", sa.Column("normalize", sa.Boolean()))


def downgrade() -> None:
    raise NotImplementedError("restore a backup from before the upgrade instead")
