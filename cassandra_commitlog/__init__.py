"""The command cassandra-commitlog inspects commit log segments without any server."""
