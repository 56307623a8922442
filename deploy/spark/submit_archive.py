"""Submit cassandra-archive, as submit.py submits the materializer; see docs/guides/archive.md."""

from archive.cli import main

main()
