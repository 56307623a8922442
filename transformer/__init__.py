"""Transformers: each reads the topics of one source and writes those of another, under a schema derived from the first.

A message passes through these rooms: `job` reads it in a Spark task. `routing` looks its schemas up by the ids in it,
and registers those of the target in its catalogue, which names the topic. `steps` makes them, and compiles what changes
keys and values. `stream_runtime` commits the messages and the position in one Kafka transaction.
"""
