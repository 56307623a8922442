"""Which subjects a registry has: asked one by one or, if many tables are looked up, all at once.

A restart looks up all tables. Asked one by one, each table would cost two requests more.
"""

from __future__ import annotations

from threading import Lock
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from materializer.planning.registry import Registry

_MANY = 20  # questions within the pause
_PAUSE_SECONDS = 15.0
_VALID_SECONDS = 30.0


class KnownSubjects:
    """A list of all subjects answers for a short time. Only this job registers under the prefix: what it has registered
    since then is `added`. Threads may ask. clock: in seconds. CdcError as the registry's.
    """

    def __init__(self, prefix: str, registry: Registry, clock: Callable[[], float]) -> None:
        self._prefix = f"{prefix}."
        self._registry = registry
        self._clock = clock
        self._lock = Lock()
        self._listed: set[str] = set()
        self._valid_until = 0.0
        self._asked = 0
        self._counted_since = 0.0

    def has(self, subject: str) -> bool:
        with self._lock:
            now = self._clock()
            if now >= self._valid_until and self._are_many(now):
                self._listed = self._registry.list_subjects(self._prefix)
                self._valid_until = now + _VALID_SECONDS
            if now < self._valid_until:
                return subject in self._listed
        return self._registry.has(subject)

    def add(self, subject: str) -> None:
        with self._lock:
            self._listed.add(subject)

    def _are_many(self, now: float) -> bool:
        if now - self._counted_since > _PAUSE_SECONDS:
            self._asked, self._counted_since = 0, now
        self._asked += 1
        return self._asked > _MANY
