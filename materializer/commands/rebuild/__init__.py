"""`cassandra-materializer rebuild`: discards a table's state, so that Cassandra's own rebuild can bring it again."""
