"""Real servers on this machine, Cassandra of any supported version and Kafka: for demo, tests and benchmarks."""
