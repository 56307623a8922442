"""What all programs share: settings, error codes, logging, the command line, and clients of Cassandra and Kafka."""
