"""The command cassandra-sstable inspects SSTables without any server."""
