"""Consumers of other projects, and the servers that they need."""

from tests.support.fix_consumers import database, flink, postgresql, shared_registry, sinks

__all__ = ["database", "flink", "postgresql", "shared_registry", "sinks"]
