"""Transformers: each reads the topics of one source and writes those of another, under a schema derived from the first.

The way of a message: `job` reads it in a Spark task, looks the schemas up by the ids in the message, has `derive` make
the target's schemas and the functions for keys and values, registers the schemas in `catalogue`, which names the topic,
and commits message and position in one Kafka transaction.
"""
