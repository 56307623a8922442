"""Run by Alembic: migrates over the connection and in the transaction that schematizer.model.migrating gives it."""

from __future__ import annotations

from alembic import context

from schematizer.model.tables import metadata

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    render_as_batch=True,
    transaction_per_migration=False,
)
context.run_migrations()
