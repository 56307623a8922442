"""`cassandra-materializer rebuild`: discards a table's state, so that Cassandra's rebuild can send the table again."""
