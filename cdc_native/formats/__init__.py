"""Cassandra's and the raw messages' bytes: values' order, rows, mutations, SSTables, and their merge."""
