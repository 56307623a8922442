"""The stored form of a Cassandra partition, and the rows that SELECT shows of it. No I/O."""
