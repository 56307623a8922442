"""Random histories of a table, with schema changes, several hosts and resharding, and a plain model of their result."""
