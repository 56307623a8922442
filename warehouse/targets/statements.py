"""The statements of a load, which are the same for DuckDB and PostgreSQL."""

from __future__ import annotations

from typing import TYPE_CHECKING

from warehouse.names import quoted
from warehouse.tables.forms import (
    CHANGED_AT,
    CURRENT,
    DELETED_AT,
    HISTORY,
    IS_CURRENT,
    KEY,
    MARKED,
    OFFSET,
    OP,
    PARTITION,
    SEQUENCE,
    VALID_FROM,
    VALID_TO,
)
from warehouse.tables.types import staged_type

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from warehouse.records import Column, TableName
    from warehouse.tables.columns import Migration
    from warehouse.tables.forms import Form
    from warehouse.tables.types import Dialect

STAGE = "_cdc_stage"
_VERSIONS = "_cdc_versions"
_TOMBSTONES = "__deleted"


def full_name(table: TableName) -> str:
    return f"{quoted(table.schema)}.{quoted(table.table)}"


def tombstones(table: TableName) -> TableName:
    """The table of the keys that were deleted, with their sequences."""
    return table._replace(table=table.table + _TOMBSTONES)


def create_state(schema: str) -> list[str]:
    """The table of the positions."""
    return [
        f"CREATE SCHEMA IF NOT EXISTS {quoted(schema)}",
        (
            f"CREATE TABLE IF NOT EXISTS {quoted(schema)}.state (table_schema TEXT NOT NULL, table_name TEXT NOT NULL, "
            "version BIGINT NOT NULL, state TEXT NOT NULL, PRIMARY KEY (table_schema, table_name))"
        ),
    ]


def select_state(schema: str) -> str:
    return f"SELECT version, state FROM {quoted(schema)}.state WHERE table_schema = ? AND table_name = ?"


def insert_state(schema: str) -> str:
    return (
        f"INSERT INTO {quoted(schema)}.state (table_schema, table_name, version, state) VALUES (?, ?, 1, ?) "
        "ON CONFLICT DO NOTHING RETURNING version"
    )


def claim_state(schema: str) -> str:
    return (
        f"UPDATE {quoted(schema)}.state SET version = version + 1, state = ? "
        "WHERE table_schema = ? AND table_name = ? AND version = ? RETURNING version"
    )


def delete_state(schema: str) -> str:
    return (
        f"DELETE FROM {quoted(schema)}.state WHERE table_schema = ? AND table_name = ? AND version = ? "
        "RETURNING version"
    )


def create_table(table: TableName, columns: Iterable[Column], form: Form, *, is_indexed: bool) -> list[str]:
    """The statements that make a table and the one of its tombstones. No column of the row is NOT NULL: the key of a
    Cassandra partition that has only static columns has nulls.
    """
    own = [f"{quoted(column.name)} {column.type}" for column in columns]
    key = [f"PRIMARY KEY ({', '.join(form.primary_key)})"] if is_indexed else []
    made = [
        f"CREATE SCHEMA IF NOT EXISTS {quoted(table.schema)}",
        f"CREATE TABLE {full_name(table)} ({', '.join([*form.own, *own, *key])})",
    ]
    if form.has_tombstones:
        gone = f"{KEY} UUID {'PRIMARY KEY' if is_indexed else 'NOT NULL'}, {SEQUENCE} BIGINT NOT NULL"
        made.append(f"CREATE TABLE {full_name(tombstones(table))} ({gone}, deleted_at TIMESTAMPTZ NOT NULL)")
    if form.keeps_all and form.has_tombstones and is_indexed:
        # Of each key one version is the current one, and loads look for it.
        made.append(f"CREATE UNIQUE INDEX ON {full_name(table)} ({KEY}) WHERE {IS_CURRENT}")
    return made


def migrate_table(table: TableName, steps: Migration) -> Iterator[str]:
    alter = f"ALTER TABLE {full_name(table)}"
    for before, after in steps.renamed:
        yield f"{alter} RENAME COLUMN {quoted(before)} TO {quoted(after)}"
    for column in steps.widened:
        yield f"{alter} ALTER COLUMN {quoted(column.name)} TYPE {column.type}"
    for column in steps.added:
        yield f"{alter} ADD COLUMN {quoted(column.name)} {column.type}"


def create_stage(
    own: Iterable[tuple[str, str]], columns: Iterable[Column], dialect: Dialect, table: str = STAGE
) -> str:
    """own: the names and types of the warehouse's own columns."""
    staged = [(quoted(column.name), staged_type(column.type, dialect)) for column in columns]
    return f"CREATE TEMPORARY TABLE {table} ({', '.join(f'{name} {kind}' for name, kind in [*own, *staged])})"


def merge(table: TableName, columns: Sequence[Column], form: Form, dialect: Dialect) -> list[str]:
    """Give the table what is staged."""
    names = "".join(f", {quoted(column.name)}" for column in columns)
    values = "".join(f", {staged_value(column, dialect)}" for column in columns)
    if form is CURRENT:
        return _merge_current(table, names, values)
    if form is MARKED:
        return _merge_marked(table, names, values)
    return _merge_history(table, names, values) if form is HISTORY else _merge_changes(table, names, values)


def _merge_current(table: TableName, names: str, values: str) -> list[str]:
    """Give the table the staged rows that are newer than what it has. The staging has a key once.

    A tombstone keeps the sequence of a deleted row, so that an older version of it never comes back.
    """
    name, gone = full_name(table), full_name(tombstones(table))
    in_table, in_gone = _has_key(name), _has_key(gone)
    older = f"USING {STAGE} AS s WHERE o.{KEY} = s.{KEY} AND o.{SEQUENCE} < s.{SEQUENCE}"
    return [
        f"DELETE FROM {name} AS o {older}",
        f"DELETE FROM {gone} AS o {older}",
        (
            f"INSERT INTO {name} ({KEY}, {SEQUENCE}{names}) SELECT {KEY}, {SEQUENCE}{values} FROM {STAGE} AS s "
            f"WHERE s.{OP} <> 'd' AND NOT {in_table} AND NOT {in_gone}"
        ),
        (
            f"INSERT INTO {gone} ({KEY}, {SEQUENCE}, deleted_at) SELECT {KEY}, {SEQUENCE}, now() FROM {STAGE} AS s "
            f"WHERE s.{OP} = 'd' AND NOT {in_table} AND NOT {in_gone}"
        ),
    ]


def _merge_marked(table: TableName, names: str, values: str) -> list[str]:
    """As _merge_current. A deleted row stays, as it was before, and keeps its sequence itself."""
    name = full_name(table)
    deleted_at = f"CASE WHEN {OP} = 'd' THEN {CHANGED_AT} END"
    return [
        f"DELETE FROM {name} AS o USING {STAGE} AS s WHERE o.{KEY} = s.{KEY} AND o.{SEQUENCE} < s.{SEQUENCE}",
        (
            f"INSERT INTO {name} ({KEY}, {SEQUENCE}, {DELETED_AT}{names}) "
            f"SELECT {KEY}, {SEQUENCE}, {deleted_at}{values} FROM {STAGE} AS s WHERE NOT {_has_key(name)}"
        ),
    ]


def purge_tombstones(table: TableName, days: float) -> str:
    """Forget keys that were deleted so many days ago."""
    age = f"INTERVAL '{days * 86_400:.0f} seconds'"
    return f"DELETE FROM {full_name(tombstones(table))} WHERE deleted_at < now() - {age}"


def swap_tables(table: TableName, other: TableName, form: Form) -> list[str]:
    """Give the place of a table to another one of its schema."""
    made = [*drop_tables(table), f"ALTER TABLE {full_name(other)} RENAME TO {quoted(table.table)}"]
    if form.has_tombstones:
        made.append(f"ALTER TABLE {full_name(tombstones(other))} RENAME TO {quoted(tombstones(table).table)}")
    return made


def drop_tables(table: TableName) -> list[str]:
    """Drop a table and its tombstones, if they are there."""
    return [f"DROP TABLE IF EXISTS {full_name(name)}" for name in (table, tombstones(table))]


def _merge_changes(table: TableName, names: str, values: str) -> list[str]:
    own = f"{KEY}, {SEQUENCE}, {OP}, {PARTITION}, {OFFSET}, {CHANGED_AT}"
    return [f"INSERT INTO {full_name(table)} ({own}{names}) SELECT {own}{values} FROM {STAGE}"]


def _merge_history(table: TableName, names: str, values: str) -> list[str]:
    """Close the versions that were current, and add the newer ones. A version is valid until the next one begins, and
    none begins before the one before it, whatever the times of the writes are.
    """
    name, gone = full_name(table), full_name(tombstones(table))
    of_key = f"PARTITION BY {KEY} ORDER BY {SEQUENCE}"
    current, deleted = f"o.{KEY} = s.{KEY} AND o.{IS_CURRENT}", f"o.{KEY} = s.{KEY}"
    once = f"SELECT DISTINCT ON ({KEY}, {SEQUENCE}) * FROM {STAGE} ORDER BY {KEY}, {SEQUENCE}, {OFFSET} DESC"
    begun = f"SELECT s.*, MAX({CHANGED_AT}) OVER ({of_key} ROWS UNBOUNDED PRECEDING) AS _begins FROM ({once}) AS s"
    placed = f"SELECT s.*, LEAD(_begins) OVER ({of_key}) AS _ends, ROW_NUMBER() OVER ({of_key}) AS _place"
    own = f"{KEY}, {SEQUENCE}, {VALID_FROM}, {VALID_TO}, {IS_CURRENT}"
    later = f"UPDATE {STAGE} AS s SET {CHANGED_AT}"
    return [
        f"DELETE FROM {STAGE} AS s USING {name} AS o WHERE {current} AND o.{SEQUENCE} >= s.{SEQUENCE}",
        f"DELETE FROM {STAGE} AS s USING {gone} AS o WHERE {deleted} AND o.{SEQUENCE} >= s.{SEQUENCE}",
        f"{later} = o.{VALID_FROM} FROM {name} AS o WHERE {current} AND o.{VALID_FROM} > s.{CHANGED_AT}",
        f"{later} = o.deleted_at FROM {gone} AS o WHERE {deleted} AND o.deleted_at > s.{CHANGED_AT}",
        f"CREATE TEMPORARY TABLE {_VERSIONS} AS {placed} FROM ({begun}) AS s",
        (
            f"UPDATE {name} AS o SET {VALID_TO} = s._begins, {IS_CURRENT} = FALSE FROM {_VERSIONS} AS s "
            f"WHERE s._place = 1 AND {current}"
        ),
        (
            f"INSERT INTO {name} ({own}{names}) SELECT {KEY}, {SEQUENCE}, _begins, _ends, _ends IS NULL{values} "
            f"FROM {_VERSIONS} WHERE {OP} <> 'd'"
        ),
        f"DELETE FROM {gone} AS o USING {_VERSIONS} AS s WHERE {deleted}",
        (
            f"INSERT INTO {gone} ({KEY}, {SEQUENCE}, deleted_at) SELECT {KEY}, {SEQUENCE}, _begins FROM {_VERSIONS} "
            f"WHERE _ends IS NULL AND {OP} = 'd'"
        ),
        f"DROP TABLE {_VERSIONS}",
    ]


def _has_key(name: str) -> str:
    return f"EXISTS (SELECT 1 FROM {name} AS o WHERE o.{KEY} = s.{KEY})"


def staged_value(column: Column, dialect: Dialect) -> str:
    """A column of the staging, with the type that it has in the table."""
    name = quoted(column.name)
    return name if staged_type(column.type, dialect) == column.type else f"CAST({name} AS {column.type})"


def drop_stage() -> str:
    return f"DROP TABLE {STAGE}"
