"""Search finds fields by their types: the documents are made again at the next start.

Revision ID: 0050
"""

from __future__ import annotations

from alembic import op

revision = "0050"
down_revision = "0040"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("DELETE FROM search_documents")


def downgrade() -> None:
    raise NotImplementedError("restore a backup from before the upgrade instead")
