"""`python -m cassandra_commitlog`."""

from __future__ import annotations

from cassandra_commitlog.cli import main

if __name__ == "__main__":
    main()
