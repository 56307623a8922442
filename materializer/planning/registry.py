"""The requests of the planner to a schema registry."""

from __future__ import annotations

from typing import Any, Protocol


class Registry(Protocol):
    """cdc_common.clients.registry.confluent.RegistryClient."""

    def register(self, subject: str, schema: dict[str, Any]) -> int: ...

    def lookup(self, subject: str, schema: dict[str, Any]) -> int | None: ...

    def latest(self, subject: str) -> tuple[int, dict[str, Any]] | None: ...

    def has(self, subject: str) -> bool: ...

    def list_subjects(self, prefix: str) -> set[str]: ...

    def check_reachable(self) -> None: ...
