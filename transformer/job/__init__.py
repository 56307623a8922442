"""Transformers on the stream runtime: planning, the tasks, and the protocol of one source partition."""
