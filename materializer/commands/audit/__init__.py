"""`cassandra-materializer audit`: compares the state with what SELECT shows. docs/decisions/0036 has the design."""
