"""The node's tables: their schemas, which of them are published, and what the log says of their ends and switches."""
