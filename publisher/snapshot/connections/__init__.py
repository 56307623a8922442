"""Connects the worker to its node and to Kafka, and measures how busy both are."""
