"""The sidecar of a Cassandra node: reads the node's commit logs and sends single-row updates to raw topics."""
