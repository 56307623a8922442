"""Submit cassandra-warehouse, as submit.py submits the materializer; see docs/guides/warehouse.md."""

from warehouse.cli import main

main()
