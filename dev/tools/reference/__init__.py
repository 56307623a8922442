"""Writes the docs that are generated from the code: `python -m dev.tools.reference`."""
