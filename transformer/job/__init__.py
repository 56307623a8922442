"""Transformers on the materializer's Spark job: planning, the tasks, and the protocol of one source partition."""
