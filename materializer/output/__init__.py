"""The messages that a chunk sends: change messages and dead letters."""
