"""Decides which topic a schema belongs to: a pure function of the schema and the newest topic of its source."""
