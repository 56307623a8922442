"""Python's garbage collector in a worker: it runs between chunks, never while one is folded.

A chunk makes tens of thousands of objects, nearly all of which reference counts free. By itself, the collector would
look at all of them again and again, and at all modules too. The few cycles of a chunk hold the chunk's writes, so they
are collected before the next chunk.
"""

from __future__ import annotations

import gc

_FULL_EVERY = 100  # collections of the youngest generation

_count = 0


def take_over() -> None:
    """Call once in a worker, when its modules are imported."""
    gc.collect()
    gc.freeze()
    gc.disable()


def collect() -> None:
    """Collect what was made since the last call, and from time to time everything. Nothing where Python collects."""
    global _count  # noqa: PLW0603 - of the process, as the collector
    if gc.isenabled():
        return
    _count += 1
    gc.collect(0 if _count % _FULL_EVERY else 2)
