"""`python -m cassandra_storage.commands.commitlog`."""

from __future__ import annotations

from cassandra_storage.commands.commitlog.cli import main

if __name__ == "__main__":
    main()
