"""`python -m cassandra_sstable`."""

from __future__ import annotations

from cassandra_sstable.cli import main

if __name__ == "__main__":
    main()
