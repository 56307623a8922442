"""Joins on the stream runtime: planning, shares that route, and shares that join."""
