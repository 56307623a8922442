"""The messages of mutations, and the ends of truncated and dropped tables, go to the raw topics of their tables."""
