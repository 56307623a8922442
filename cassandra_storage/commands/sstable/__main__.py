"""`python -m cassandra_storage.commands.sstable`."""

from __future__ import annotations

from cassandra_storage.commands.sstable.cli import main

if __name__ == "__main__":
    main()
