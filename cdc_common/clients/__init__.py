"""Connections to Cassandra, Kafka and the schema registry, and what their errors mean."""
