"""Converters: from a description of a table (Avro, CQL, SQL, SQLAlchemy) to the Avro schemas of its messages."""
