"""The plans for Redshift, PostgreSQL and Snowflake, and the place for others."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.metadata import entry_points
from typing import TYPE_CHECKING, Protocol

from schematizer.plans import types
from schematizer.plans.columns import PlanColumn, PlanError, require_key
from schematizer.plans.types import Types, sql_type

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

GROUP = "cassandra_schematizer.planners"
_SUFFIX = "__new"


class Planner(Protocol):
    """The plans of one kind of warehouse. Others than the ones here are found by the entry point group
    `cassandra_schematizer.planners`: a name, and an object with these methods. PlanError where there is no plan.
    """

    def create_table(self, table: str, columns: Sequence[PlanColumn], primary_key: Sequence[str]) -> list[str]:
        """The statements that make the table."""
        ...

    def steps(self, table: str, old: Sequence[PlanColumn], new: Sequence[PlanColumn]) -> list[str]:
        """The statements that lead the table from the old columns to the new ones, in order."""
        ...


@dataclass(frozen=True, slots=True)
class SqlPlanner:
    """`retypes_in_place`: whether the warehouse changes a column's type, or only fills a new column from the old one.
    `changes_nullability`: whether it can. `using`: whether a change of type says how values convert. `escapes`: whether
    a backslash in a text escapes what follows.
    """

    # The warehouse's names of types.
    types: Types
    # Whether the warehouse changes a column's type, or only fills a new column from the old one.
    retypes_in_place: bool
    # Whether the warehouse can change that a column may be null.
    changes_nullability: bool
    # Whether a change of type says how values convert.
    using: bool = False
    # Whether a backslash in a text escapes the next character.
    escapes: bool = True

    def create_table(self, table: str, columns: Sequence[PlanColumn], primary_key: Sequence[str]) -> list[str]:
        require_key(columns, primary_key)
        lines = [
            self._definition(column, is_nullable=column.is_nullable and column.name not in primary_key)
            for column in columns
        ]
        if primary_key:
            lines.append(f"PRIMARY KEY ({', '.join(map(quoted, primary_key))})")
        body = ",\n    ".join(lines)
        create = f"CREATE TABLE {table_name(table)} (\n    {body}\n)"
        return [create, *(self._comment(table, column) for column in columns if column.doc)]

    def steps(self, table: str, old: Sequence[PlanColumn], new: Sequence[PlanColumn]) -> list[str]:
        """Renames by aliases first, then drops, additions, types, nullability and comments."""
        renamed = dict(_renames(old, new))
        before = {renamed.get(column.name, column.name): column for column in old}
        after = {column.name: column for column in new}
        alter = f"ALTER TABLE {table_name(table)}"
        found = [f"{alter} RENAME COLUMN {quoted(a)} TO {quoted(b)}" for a, b in renamed.items()]
        found += [f"{alter} DROP COLUMN {quoted(name)}" for name in before if name not in after]
        for name, column in after.items():
            if name not in before:
                found += self._added(table, column)
            else:
                found += self._changed(table, before[name], column)
        return found

    def _definition(self, column: PlanColumn, *, is_nullable: bool) -> str:
        return f"{quoted(column.name)} {sql_type(column.avro, self.types)}" + ("" if is_nullable else " NOT NULL")

    def _added(self, table: str, column: PlanColumn) -> Iterator[str]:
        """Rows that are there already have no value: a new column is nullable, whatever the schema says."""
        yield f"ALTER TABLE {table_name(table)} ADD COLUMN {self._definition(column, is_nullable=True)}"
        if column.doc:
            yield self._comment(table, column)

    def _changed(self, table: str, old: PlanColumn, new: PlanColumn) -> Iterator[str]:
        before, after = sql_type(old.avro, self.types), sql_type(new.avro, self.types)
        alter = f"ALTER TABLE {table_name(table)}"
        if before != after:
            yield from self._retyped(alter, table, new, after)
        if old.is_nullable != new.is_nullable and self.changes_nullability:
            verb = "DROP" if new.is_nullable else "SET"
            yield f"{alter} ALTER COLUMN {quoted(new.name)} {verb} NOT NULL"
        if old.doc != new.doc:
            yield self._comment(table, new)

    def _retyped(self, alter: str, table: str, column: PlanColumn, wanted: str) -> Iterator[str]:
        name = quoted(column.name)
        if self.retypes_in_place:
            using = f" USING {name}::text::{wanted}" if self.using else ""
            yield f"{alter} ALTER COLUMN {name} TYPE {wanted}{using}"
            return
        made = quoted(column.name + _SUFFIX)
        yield f"{alter} ADD COLUMN {made} {wanted}"
        yield f"UPDATE {table_name(table)} SET {made} = CAST({name} AS {wanted})"  # noqa: S608 - names are quoted
        yield f"{alter} DROP COLUMN {name}"
        yield f"{alter} RENAME COLUMN {made} TO {name}"

    def _comment(self, table: str, column: PlanColumn) -> str:
        doc = (column.doc or "").replace("'", "''")
        text = "NULL" if column.doc is None else "'" + (doc.replace("\\", "\\\\") if self.escapes else doc) + "'"
        return f"COMMENT ON COLUMN {table_name(table)}.{quoted(column.name)} IS {text}"


def all_planners() -> Mapping[str, Planner]:
    """Return the planners by the warehouse's name. A package adds one by an entry point."""
    found: dict[str, Planner] = {
        "postgresql": SqlPlanner(
            types.POSTGRESQL, retypes_in_place=True, changes_nullability=True, using=True, escapes=False
        ),
        # Redshift changes only the length of a VARCHAR in place, and never whether a column takes null.
        "redshift": SqlPlanner(types.REDSHIFT, retypes_in_place=False, changes_nullability=False),
        # Snowflake changes lengths and precisions in place, but no type into another.
        "snowflake": SqlPlanner(types.SNOWFLAKE, retypes_in_place=False, changes_nullability=True),
    }
    return found | {point.name: point.load() for point in entry_points(group=GROUP)}


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def table_name(table: str) -> str:
    """The name `schema.table` or `table` with each part quoted; PlanError for an empty part."""
    parts = table.split(".")
    if not all(parts):
        raise PlanError(f"{table!r} is not the name of a table")
    return ".".join(map(quoted, parts))


def _renames(old: Sequence[PlanColumn], new: Sequence[PlanColumn]) -> Iterator[tuple[str, str]]:
    """(old name, new name) of each new column that names an old one as its alias."""
    before, after = {column.name for column in old}, {column.name for column in new}
    for column in new:
        if column.name not in before:
            earlier = next((name for name in column.aliases if name in before and name not in after), None)
            if earlier is not None:
                before.discard(earlier)
                yield earlier, column.name
