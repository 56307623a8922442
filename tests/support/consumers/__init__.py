"""Consumers of change topics that this project did not write, as tests run them."""
