"""Migration plans: the statements that create a warehouse table for a schema, or alter it for a newer one."""
