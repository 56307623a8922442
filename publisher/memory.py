"""This process's memory: what it takes, and giving back what it has freed."""

from __future__ import annotations

import ctypes


def resident_bytes() -> int:
    """0 where /proc does not tell."""
    try:
        with open("/proc/self/statm", "rb") as file:  # noqa: PTH123 - once a second, no Path needed
            return int(file.read().split()[1]) * 4096
    except OSError:
        return 0


def give_back() -> None:
    """glibc keeps what was freed, such as a queue that was full while Kafka was away; another C library has no such
    call, and is left alone.
    """
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
