"""The schema registry cassandra-schematizer: the API of Confluent's Schema Registry for Avro, and a catalogue."""
