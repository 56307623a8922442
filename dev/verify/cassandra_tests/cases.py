"""Actions of a test method, as far as known without running Java: statements of one keyspace of its own."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

Kind: TypeAlias = Literal["write", "schema", "read"]

_SCHEMA = frozenset({"create", "alter", "drop"})
_WRITES = frozenset({"insert", "update", "delete", "begin", "truncate"})
_KEYSPACE = re.compile(r"\s*CREATE\s+KEYSPACE\s+(?:IF\s+NOT\s+EXISTS\s+)?(\"[^\"]+\"|\w+)", re.IGNORECASE)
_TABLE = re.compile(r"\s*CREATE\s+(?:TABLE|COLUMNFAMILY)\b(?!.*\bLIKE\b)", re.IGNORECASE | re.DOTALL)
_WITH = re.compile(r"\)\s*WITH\b", re.IGNORECASE)
_LEFT_OUT = (
    (re.compile(r"\s*USE\b", re.IGNORECASE), "USE changes the connection"),
    (re.compile(r"\s*(CREATE|ALTER|DROP)\s+(ROLE|USER)\b", re.IGNORECASE), "roles are of the whole cluster"),
    (re.compile(r"\s*(GRANT|REVOKE|LIST|DESC\w*)\b", re.IGNORECASE), "not a statement of rows or tables"),
)


@dataclass(frozen=True, slots=True)
class Operation:
    """One statement."""

    # The CQL.
    text: str
    # The values that are bound to the markers.
    values: tuple[object, ...] = ()
    # Whether the test says that Cassandra refuses it.
    may_fail: bool = False

    @property
    def verb(self) -> str:
        words = self.text.split(maxsplit=1)
        return words[0].lower().rstrip(";") if words else ""

    @property
    def kind(self) -> Kind | None:
        """None for what is not CQL, or has no effect here."""
        if self.verb in _SCHEMA:
            return "schema"
        return "write" if self.verb in _WRITES else "read" if self.verb == "select" else None

    def left_out(self) -> str:
        """Why it is not sent although it is CQL; nothing if it is."""
        return next((why for pattern, why in _LEFT_OUT if pattern.match(self.text)), "")

    def keyspace(self) -> str:
        """The keyspace that it makes, as Cassandra names it."""
        match = _KEYSPACE.match(self.text)
        if match is None:
            return ""
        return match[1].strip('"') if match[1].startswith('"') else match[1].lower()

    def with_cdc(self) -> str:
        """The text; of CREATE TABLE with `cdc = true`, unless the test itself sets cdc."""
        if not _TABLE.match(self.text) or re.search(r"\bcdc\s*=", self.text, re.IGNORECASE):
            return self.text
        text = self.text.rstrip().rstrip(";")
        return f"{text} AND cdc = true" if _WITH.search(text) else f"{text} WITH cdc = true"


@dataclass(slots=True)
class Case:
    """One test method."""

    # Class.method.
    name: str
    # The statements, in order.
    operations: list[Operation] = field(default_factory=list)
    # The number of parts of the method that have no statement here, by reason.
    skipped: Counter[str] = field(default_factory=Counter)

    @property
    def writes(self) -> int:
        return sum(operation.kind == "write" for operation in self.operations)

    @property
    def has_table(self) -> bool:
        return any(_TABLE.match(operation.text) for operation in self.operations)
