"""The state of a source partition: a local RocksDB, and its changelogs and snapshots in the checkpoint location."""
