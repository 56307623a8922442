"""Work that has to wait now and then, and does not wait itself.

It is a generator. It yields the longest time (s) that it can wait before it continues, and returns its result. The
publisher's loop runs it, and does the upkeep during each wait. No other module does.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import TypeAlias, TypeVar

T = TypeVar("T")

Waits: TypeAlias = Generator[float, None, T]
