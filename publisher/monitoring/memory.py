"""This process's memory: its size, and returning free memory to the system."""

from __future__ import annotations

import ctypes


def resident_bytes() -> int:
    """0 if the system has no /proc."""
    try:
        with open("/proc/self/statm", "rb") as file:  # noqa: PTH123 - once a second, no Path needed
            return int(file.read().split()[1]) * 4096
    except OSError:
        return 0


def release_free_memory() -> None:
    """glibc keeps freed memory, such as a queue that was full while Kafka was away. Other C libraries do not have this
    call.
    """
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
