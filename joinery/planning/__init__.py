"""Compares joins with the schemas of their inputs, and makes the schemas of joined rows."""
