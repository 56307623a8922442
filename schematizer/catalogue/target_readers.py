"""Decide who may read a data target: its topics lie in the namespaces that its consumer groups read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from schematizer.access import Role

if TYPE_CHECKING:
    from collections.abc import Iterable

    from starlette.requests import Request

    from schematizer.access import Access
    from schematizer.catalogue.targets import DataTargets


class DataTargetReaders:
    """Asks for a reader of every namespace that a data target reads: its topics are never a part of what it reads."""

    def __init__(self, targets: DataTargets, access: Access) -> None:
        self._targets = targets
        self._access = access

    def require(self, request: Request, name: str, *, may_be_empty: bool = False) -> None:
        """`may_be_empty`: a reader of any namespace may ask for the topics of a data target that reads none yet.

        One who reads another of its namespaces learns which one is missing. To all others, what is missing and what is
        forbidden are one answer.
        """
        grants = self._access.identify(request).grants
        reads = self._targets.namespaces(name).get(name)
        if reads is None or (not reads and not may_be_empty):
            self._access.require(request, Role.READER, None)
        elif any(grants.allows(Role.READER, read) for read in reads):
            self.require_all(request, reads)
        elif reads:
            self._access.require(request, Role.READER, None)

    def require_all(self, request: Request, namespaces: Iterable[str]) -> None:
        """Requires the role reader in each namespace that was found: a group may have changed since `require`."""
        for namespace in sorted(set(namespaces)):
            self._access.require(request, Role.READER, namespace)
