"""The Cassandra node on this machine: its sizes, and the rows by which publishers agree on a snapshot."""
