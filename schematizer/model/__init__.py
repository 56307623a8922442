"""The database: its tables (SQLAlchemy), the migrations that make them, and transactions."""
