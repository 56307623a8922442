"""What is stored of a Cassandra partition, and what SELECT shows of it. Pure."""
