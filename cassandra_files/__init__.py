"""Commit logs as files: directories of segments, read as they grow, decompressed and decrypted.

It uses cassandra_storage, which parses the bytes without I/O. The programs use it.
"""
