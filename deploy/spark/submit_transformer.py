"""Submit cassandra-transformer, as submit.py submits the materializer; see docs/guides/transformers.md."""

from transformer.cli import main

main()
