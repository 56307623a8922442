"""`python -m schematizer`, the same as cassandra-schematizer."""

from schematizer.cli import main

main()
