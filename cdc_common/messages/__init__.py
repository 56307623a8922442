"""The messages in Kafka: raw messages, table schemas and change messages, and their Avro forms."""
