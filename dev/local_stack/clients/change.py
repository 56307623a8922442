"""A message of a change topic, as a client has read it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

Record: TypeAlias = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Change:
    """One message of a change topic."""

    # The name of the keyspace.
    keyspace: str
    # The name of the table.
    table: str
    # The number of the topic's partition.
    partition: int
    # The offset in that partition.
    offset: int
    # The decoded key.
    key: Record
    # The decoded value; None for a tombstone.
    value: Record | None
    # The time.time() at which it had arrived.
    seen: float
    # The value by the schema that it was written with, of a `u` whose images are equal by the reader's schema. That
    # schema may lack the column that changed. None for any other message.
    as_written: Record | None = None

    @property
    def name(self) -> str:
        return f"{self.keyspace}.{self.table}"
