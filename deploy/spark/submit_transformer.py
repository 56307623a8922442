"""As submit.py, of cassandra-transformer; see docs/guides/transformers.md."""

from transformer.cli import main

main()
