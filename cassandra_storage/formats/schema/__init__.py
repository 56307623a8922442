"""Tables and their columns, from CQL and from the rows of system_schema."""
