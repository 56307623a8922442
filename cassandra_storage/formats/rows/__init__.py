"""Clusterings, rows, partition updates and mutations, and how they are serialized."""
