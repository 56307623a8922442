"""Tables of a warehouse: the types and names of their columns, by the schemas of messages."""
