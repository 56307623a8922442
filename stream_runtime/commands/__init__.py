"""The commands that each job has: status, retry and archive."""
