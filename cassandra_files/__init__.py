"""Commit logs as files: folders of segments, read as they grow, decompressed and decrypted.

Above cassandra_storage, which knows the bytes and does no I/O; below every program.
"""
