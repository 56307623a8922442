"""Store state: a local RocksDB, and changelogs and snapshots in the checkpoint location."""
