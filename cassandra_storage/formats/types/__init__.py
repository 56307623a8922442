"""CQL types: the bytes of their values, their texts in CQL and as Java classes, and the order of values."""
