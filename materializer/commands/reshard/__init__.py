"""`cassandra-materializer state reshard`: redistributes a raw topic's state over its new number of partitions."""
