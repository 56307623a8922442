"""What travels through Kafka: raw messages, table schemas, change messages and their Avro."""
