"""Migration plans: the statements that make a warehouse's table for a schema, or lead it from one schema to another."""
