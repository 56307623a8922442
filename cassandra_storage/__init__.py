"""Cassandra's formats and rules: decoding of bytes and types, and merging of rows.

No I/O and no third-party imports. Module names follow Cassandra's classes, so that a reader can hold the Java file
beside them.
"""
