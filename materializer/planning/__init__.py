"""How a raw topic's messages are folded: the schemas of its table, and the change topics."""
