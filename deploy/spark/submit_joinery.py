"""Submit cassandra-joinery, as submit.py submits the materializer; see docs/guides/joins.md."""

from joinery.cli import main

main()
