"""The values of counter cells (org.apache.cassandra.db.context.CounterContext)."""

from __future__ import annotations


def merge_contexts(left: bytes, right: bytes) -> bytes:
    """CounterContext.merge: both contexts' shards."""
    raise NotImplementedError


def total(context: bytes) -> int:
    """CounterContext.total: the counter's value."""
    raise NotImplementedError
