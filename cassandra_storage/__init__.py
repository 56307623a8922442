"""Cassandra's formats and rules, and nothing else: bytes to values, types, row merging.

No I/O and no third-party imports. Module names follow Cassandra's classes, so that a reader can hold the Java file
beside them.
"""
