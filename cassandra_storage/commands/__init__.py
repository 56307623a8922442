"""The commands cassandra-commitlog and cassandra-sstable, and the output that both have."""
