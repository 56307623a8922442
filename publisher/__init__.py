"""Reads a Cassandra node's commit log and publishes each mutation to Kafka as raw messages."""
