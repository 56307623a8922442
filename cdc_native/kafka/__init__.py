"""Messages to Kafka through librdkafka: a producer, its acknowledgements, and the partition of a key."""
