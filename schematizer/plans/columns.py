"""The columns of a warehouse's table, from a schema's elements at the top level."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from schematizer.avro_schemas.elements import row_of

if TYPE_CHECKING:
    from collections.abc import Sequence


class PlanError(ValueError):
    """No plan can be made; the message says why."""


@dataclass(frozen=True, slots=True)
class PlanColumn:
    """A column of a plan."""

    # The field's name.
    name: str
    # The field's Avro type as JSON, without null.
    avro: Any
    # Whether it may be null.
    is_nullable: bool
    # Its documentation.
    doc: str | None = None
    # Its earlier names.
    aliases: tuple[str, ...] = ()
    # The type in the database that the schema describes; None if the schema does not say it.
    sql_type: str | None = None


def columns_of(canonical: str, docs: dict[str, str] | None = None) -> list[PlanColumn]:
    """The columns of a canonical schema, in order; of a change envelope, its row's. `docs`: by field, before its own.

    PlanError for a schema that is no record.
    """
    row = row_of(json.loads(canonical))
    if row is None:
        raise PlanError("the schema is no record")
    return [_column(field, docs or {}) for field in row["fields"]]


def _column(field: dict[str, Any], docs: dict[str, str]) -> PlanColumn:
    avro, is_nullable = field["type"], False
    if isinstance(avro, list) and "null" in avro:
        rest = [branch for branch in avro if branch != "null"]
        avro, is_nullable = rest[0] if len(rest) == 1 else rest, True
    name = field["name"]
    return PlanColumn(
        name,
        avro,
        is_nullable,
        docs.get(name) or field.get("doc"),
        tuple(field.get("aliases", ())),
        field.get("sqlType"),
    )


def require_key(columns: Sequence[PlanColumn], primary_key: Sequence[str]) -> None:
    """Raise PlanError if the key names a column that is not there."""
    unknown = [name for name in primary_key if name not in {column.name for column in columns}]
    if unknown:
        raise PlanError(f"the primary key names {', '.join(unknown)}, which the schema does not have")


def require_same_key(old: Sequence[str], new: Sequence[str]) -> None:
    """Raise PlanError if both keys are known and differ."""
    if old and new and list(old) != list(new):
        raise PlanError(f"the primary key changes from ({', '.join(old)}) to ({', '.join(new)}): make a new table")
