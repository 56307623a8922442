"""The job's query as Spark shows it: the Streaming tab, lastProgress, and Spark's own Prometheus sink."""
