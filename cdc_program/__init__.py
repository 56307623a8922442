"""What all programs share: settings, error codes, logging, command line, and clients of Cassandra and Kafka."""
