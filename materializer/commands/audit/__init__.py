"""`cassandra-materializer audit`: compares the state with what SELECT shows (decision 0036)."""
