"""Writes the docs that are generated from the code: `python -m tools.reference`."""
