"""The command cassandra-commitlog: commit log segments, looked into without any server."""
