"""Benchmarks; not shipped."""
