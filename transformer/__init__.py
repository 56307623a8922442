"""Transformers: each reads the topics of one source and writes those of another, under a schema derived from the first.

A message passes through these modules: `job` reads it in a Spark task and looks its schemas up by the ids in it.
`derive` makes the target's schemas and the functions for keys and values. `job` registers the schemas in `catalogue`,
which names the topic, and commits message and position in one Kafka transaction.
"""
