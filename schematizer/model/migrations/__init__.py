"""Alembic's environment: `versions` has one module for each change of the tables."""
