"""What a chunk sends: change messages, and dead letters."""
