"""Cassandra's own CQL tests, run through the whole path: Java sources become cases, cases become changes.

`source` finds the classes, `java_tokens` and `java_parser` read them, `interpreter` runs a test method without a server
and lists its statements, `run` sends these to a stack, and `judge` compares what comes out with SELECT.
"""
