"""Avro: the types and values that CQL's become, schemas as trees, and what a reader of another schema can read."""
