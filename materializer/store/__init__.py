"""Where state is stored: a local RocksDB, and changelogs and snapshots in the checkpoint location."""
