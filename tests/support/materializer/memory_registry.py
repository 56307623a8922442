"""A schema registry in memory, as far as the driver asks one."""

from __future__ import annotations

import json
from typing import Any

from cdc_common.clients.registry.errors import IncompatibleSchemaError


class MemoryRegistry:
    """Remembers what is registered; in `strict` subjects nothing may follow."""

    def __init__(self, *strict: str) -> None:
        self.schemas: dict[tuple[str, str], int] = {}
        self._strict = strict

    def check_reachable(self) -> None: ...

    @property
    def subjects(self) -> list[str]:
        return [subject for subject, _ in self.schemas]

    def register(self, subject: str, schema: dict[str, Any]) -> int:
        if subject in self._strict and self.has(subject) and self.lookup(subject, schema) is None:
            raise IncompatibleSchemaError("It does not follow.", "None.", status=409, word="409")
        return self.schemas.setdefault((subject, json.dumps(schema)), len(self.schemas) + 1)

    def lookup(self, subject: str, schema: dict[str, Any]) -> int | None:
        return self.schemas.get((subject, json.dumps(schema)))

    def latest(self, subject: str) -> tuple[int, dict[str, Any]] | None:
        found = [(schema_id, json.loads(text)) for (of, text), schema_id in self.schemas.items() if of == subject]
        return found[-1] if found else None

    def get(self, schema_id: int) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(
            next(text for (_, text), known_id in self.schemas.items() if known_id == schema_id)
        )
        return found

    def has(self, subject: str) -> bool:
        return subject in self.subjects

    def list_subjects(self, prefix: str) -> set[str]:
        return {subject for subject in self.subjects if subject.startswith(prefix)}
