"""As submit.py, of cassandra-transformer; see docs/transformers.md."""

from transformer.cli import main

main()
