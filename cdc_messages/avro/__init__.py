"""Avro schemas as trees, and finding the end of a value without decoding it."""
