"""Avro schemas: parsed, checked, written in one form, and compared."""
