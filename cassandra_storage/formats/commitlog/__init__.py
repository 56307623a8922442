"""Segments of a commit log: their header, their entries, and their compressed or encrypted sections."""
