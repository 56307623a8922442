"""Cassandra, Kafka, S3 and Spark on this machine, and our programs beside them."""
