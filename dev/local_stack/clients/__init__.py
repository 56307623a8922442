"""Clients of the running servers: CQL, readers of change topics, and the comparison of both."""
