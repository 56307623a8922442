"""Types, values, updates and tables as JSON."""
