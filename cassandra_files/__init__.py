"""Commit logs and SSTables as files: directories, segments as they grow, data decompressed, decrypted and verified.

It uses cassandra_storage, which parses the bytes without I/O. The programs use it.
"""
