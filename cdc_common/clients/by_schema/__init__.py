"""A producer and a consumer of Kafka that name a source and a schema; cassandra-schematizer names the topics.

They need the extra `schematizer-client`.
"""
