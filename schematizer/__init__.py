"""The schema registry cassandra-schematizer: Confluent's Schema Registry API for Avro schemas."""
