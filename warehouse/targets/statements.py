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


def create_state(schema: str, dialect: Dialect) -> list[str]:
    """The schema of the states, and their table if there is one for all."""
    made = f"CREATE SCHEMA IF NOT EXISTS {quoted(schema)}"
    return [made] if dialect.state_per_table else [made, create_state_table(f"{quoted(schema)}.state", dialect)]


def create_state_table(where: str, dialect: Dialect) -> str:
    """A table of states. That of a single table has no key: it is locked instead."""
    text, key = dialect.own_type("TEXT"), "" if dialect.state_per_table else ", PRIMARY KEY (table_schema, table_name)"
    names = f"table_schema {text} NOT NULL, table_name {text} NOT NULL"
    return f"CREATE TABLE IF NOT EXISTS {where} ({names}, version BIGINT NOT NULL, state {text} NOT NULL{key})"


def state_table(schema: str, table: TableName, dialect: Dialect) -> str:
    """The table that has the state of a table."""
    return f"{quoted(schema)}.{quoted(str(table)) if dialect.state_per_table else 'state'}"


def lock_state(where: str) -> str:
    return f"LOCK TABLE {where}"


def select_state(where: str) -> str:
    return f"SELECT version, state FROM {where} WHERE table_schema = ? AND table_name = ?"


def insert_state(where: str, dialect: Dialect) -> str:
    known = f"SELECT 1 FROM {where} WHERE table_schema = ? AND table_name = ?"
    return (
        f"INSERT INTO {where} (table_schema, table_name, version, state) SELECT ?, ?, 1, ? WHERE NOT EXISTS ({known})"
        f"{'' if dialect.state_per_table else ' ON CONFLICT DO NOTHING'}"
    )


def claim_state(where: str) -> str:
    return (
        f"UPDATE {where} SET version = version + 1, state = ? WHERE table_schema = ? AND table_name = ? AND version = ?"
    )


def delete_state(where: str) -> str:
    return f"DELETE FROM {where} WHERE table_schema = ? AND table_name = ? AND version = ?"


def create_table(
    table: TableName, columns: Iterable[Column], form: Form, dialect: Dialect, *, is_indexed: bool
) -> list[str]:
    """The statements that make a table and the one of its tombstones. No column of the row is NOT NULL: the key of a
    Cassandra partition that has only static columns has nulls.
    """
    own = [*form.definitions(dialect), *(f"{quoted(column.name)} {column.type}" for column in columns)]
    key = [f"PRIMARY KEY ({', '.join(form.primary_key)})"] if is_indexed else []
    storage = dialect.storage if form.keeps_all else dialect.storage + dialect.updated_storage
    made = [
        f"CREATE SCHEMA IF NOT EXISTS {quoted(table.schema)}",
        f"CREATE TABLE {full_name(table)} ({', '.join([*own, *key])}){storage}",
    ]
    if form.has_tombstones:
        made.append(_create_tombstones(table, dialect, is_indexed=is_indexed))
    if form.keeps_all and form.has_tombstones and is_indexed:
        # Of each key one version is the current one, and loads look for it.
        made.append(f"CREATE UNIQUE INDEX ON {full_name(table)} ({KEY}) WHERE {IS_CURRENT}")
    return made


def _create_tombstones(table: TableName, dialect: Dialect, *, is_indexed: bool) -> str:
    key = f"{KEY} {dialect.own_type('UUID')} {'PRIMARY KEY' if is_indexed else 'NOT NULL'}"
    own = f"{key}, {SEQUENCE} BIGINT NOT NULL, deleted_at {dialect.own_type('TIMESTAMPTZ')} NOT NULL"
    return f"CREATE TABLE {full_name(tombstones(table))} ({own}){dialect.storage}"


def migrate_table(table: TableName, steps: Migration, dialect: Dialect) -> Iterator[str]:
    alter = f"ALTER TABLE {full_name(table)}"
    for before, after in steps.renamed:
        yield f"{alter} RENAME COLUMN {quoted(before)} TO {quoted(after)}"
    for column, before in steps.widened:
        wider = dialect.widenings.get((before, column.type), "").format(quoted(column.name))
        if dialect.alters_types:
            using = f" USING {wider}" if wider else ""
            yield f"{alter} ALTER COLUMN {quoted(column.name)} TYPE {column.type}{using}"
        else:
            yield from _replace_column(table, column, wider or f"CAST({quoted(column.name)} AS {column.type})")
    for column in steps.added:
        yield f"{alter} ADD COLUMN {quoted(column.name)} {column.type}"


def _replace_column(table: TableName, column: Column, wider: str) -> list[str]:
    """Give a column another type, in a warehouse that cannot alter types. Rights, views and columns of others stay."""
    alter, made = f"ALTER TABLE {full_name(table)}", quoted("_cdc_wider")
    return [
        f"{alter} ADD COLUMN {made} {column.type}",
        f"UPDATE {full_name(table)} SET {made} = {wider}",
        f"{alter} DROP COLUMN {quoted(column.name)}",
        f"{alter} RENAME COLUMN {made} TO {quoted(column.name)}",
    ]


def comment_on(table: TableName, column: str, text: str) -> str:
    doubled = text.replace("'", "''")
    return f"COMMENT ON COLUMN {full_name(table)}.{quoted(column)} IS '{doubled}'"


def create_stage(
    own: Iterable[tuple[str, str]], columns: Iterable[Column], dialect: Dialect, table: str = STAGE
) -> str:
    """own: the names and types of the warehouse's own columns."""
    staged = [
        *((name, dialect.own_type(kind)) for name, kind in own),
        *((quoted(column.name), staged_type(column.type, dialect)) for column in columns),
    ]
    return f"CREATE TEMPORARY TABLE {table} ({', '.join(f'{name} {kind}' for name, kind in staged)})"


def merge(table: TableName, columns: Sequence[Column], form: Form, dialect: Dialect) -> list[str]:
    """Give the table what is staged."""
    names = "".join(f", {quoted(column.name)}" for column in columns)
    values = "".join(f", {staged_value(column, dialect)}" for column in columns)
    if form is CURRENT:
        return _merge_current(table, names, values, _update_older(table, columns, dialect), dialect.now)
    if form is MARKED:
        deleted = f"{DELETED_AT} = {_marked_at()}"
        return _merge_marked(table, names, values, _update_older(table, columns, dialect, deleted))
    return _merge_history(table, names, values) if form is HISTORY else _merge_changes(table, names, values)


def _update_older(table: TableName, columns: Iterable[Column], dialect: Dialect, own: str = "") -> str:
    """The statement that gives older rows the values that are staged; empty if they are deleted instead. own: what is
    set, too. Columns that others have added keep their values.
    """
    if not dialect.updated_storage:
        return ""
    name = full_name(table)
    values = (f"{quoted(column.name)} = {staged_value(column, dialect, 's.')}" for column in columns)
    given = ", ".join([f"{SEQUENCE} = s.{SEQUENCE}", *filter(None, [own]), *values])
    return f"UPDATE {name} AS o SET {given} FROM {STAGE} AS s WHERE o.{KEY} = s.{KEY} AND o.{SEQUENCE} < s.{SEQUENCE}"


def _marked_at() -> str:
    return f"CASE WHEN s.{OP} = 'd' THEN s.{CHANGED_AT} END"


def _merge_current(table: TableName, names: str, values: str, update: str, now: str) -> list[str]:
    """Give the table the staged rows that are newer than what it has. The staging has a key once. update: what makes
    older rows those that are staged; empty to delete and insert them.

    A tombstone keeps the sequence of a deleted row, so that an older version of it never comes back.
    """
    name, gone = full_name(table), full_name(tombstones(table))
    in_table, in_gone = _has_key(name), _has_key(gone)
    replaced = [f"{update} AND s.{OP} <> 'd'", f"{_delete_older(table)} AND s.{OP} = 'd'"]
    return [
        *(replaced if update else [_delete_older(table)]),
        _delete_older(tombstones(table)),
        (
            f"INSERT INTO {name} ({KEY}, {SEQUENCE}{names}) SELECT {KEY}, {SEQUENCE}{values} FROM {STAGE} AS s "
            f"WHERE s.{OP} <> 'd' AND NOT {in_table} AND NOT {in_gone}"
        ),
        (
            f"INSERT INTO {gone} ({KEY}, {SEQUENCE}, deleted_at) SELECT {KEY}, {SEQUENCE}, {now} FROM {STAGE} AS s "
            f"WHERE s.{OP} = 'd' AND NOT {in_table} AND NOT {in_gone}"
        ),
    ]


def _merge_marked(table: TableName, names: str, values: str, update: str) -> list[str]:
    """As _merge_current. A deleted row stays, as it was before, and keeps its sequence itself."""
    name = full_name(table)
    return [
        update or _delete_older(table),
        (
            f"INSERT INTO {name} ({KEY}, {SEQUENCE}, {DELETED_AT}{names}) "
            f"SELECT {KEY}, {SEQUENCE}, {_marked_at()}{values} FROM {STAGE} AS s WHERE NOT {_has_key(name)}"
        ),
    ]


def _delete_older(table: TableName) -> str:
    """Delete the rows that are older than what is staged. A table of several parts has no alias in Redshift."""
    own = quoted(table.table)
    return (
        f"DELETE FROM {full_name(table)} USING {STAGE} AS s "
        f"WHERE {own}.{KEY} = s.{KEY} AND {own}.{SEQUENCE} < s.{SEQUENCE}"
    )


def purge_tombstones(table: TableName, days: float, dialect: Dialect) -> str:
    """Forget keys that were deleted so many days ago."""
    age = f"INTERVAL '{days * 86_400:.0f} seconds'"
    return f"DELETE FROM {full_name(tombstones(table))} WHERE deleted_at < {dialect.now} - {age}"


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
    begun = f"SELECT s.*, MAX({CHANGED_AT}) OVER ({of_key} ROWS UNBOUNDED PRECEDING) AS _begins FROM ({once()}) AS s"
    placed = f"SELECT s.*, LEAD(_begins) OVER ({of_key}) AS _ends, ROW_NUMBER() OVER ({of_key}) AS _place"
    own = f"{KEY}, {SEQUENCE}, {VALID_FROM}, {VALID_TO}, {IS_CURRENT}"
    later = f"UPDATE {STAGE} AS s SET {CHANGED_AT}"
    return [
        _delete_known(name, f" AND o.{IS_CURRENT}"),
        _delete_known(gone),
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
        f"DELETE FROM {gone} USING {_VERSIONS} AS s WHERE {quoted(tombstones(table).table)}.{KEY} = s.{KEY}",
        (
            f"INSERT INTO {gone} ({KEY}, {SEQUENCE}, deleted_at) SELECT {KEY}, {SEQUENCE}, _begins FROM {_VERSIONS} "
            f"WHERE _ends IS NULL AND {OP} = 'd'"
        ),
        f"DROP TABLE {_VERSIONS}",
    ]


def _delete_known(name: str, which: str = "") -> str:
    """Take out of the staging what is not newer than what a table has."""
    same = f"o.{KEY} = {STAGE}.{KEY} AND o.{SEQUENCE} >= {STAGE}.{SEQUENCE}"
    return f"DELETE FROM {STAGE} USING {name} AS o WHERE {same}{which}"


def once() -> str:
    """What is staged, with the last message of each version. DuckDB's DISTINCT ON makes 0.0 of a REAL of -0.0."""
    last = f"ROW_NUMBER() OVER (PARTITION BY {KEY}, {SEQUENCE} ORDER BY {OFFSET} DESC) AS _copy"
    return f"SELECT * FROM (SELECT s.*, {last} FROM {STAGE} AS s) AS s WHERE _copy = 1"


def _has_key(name: str) -> str:
    return f"EXISTS (SELECT 1 FROM {name} AS o WHERE o.{KEY} = s.{KEY})"


def staged_value(column: Column, dialect: Dialect, of: str = "") -> str:
    """A column of the staging, with the type that it has in the table. of: the staging's name and a dot, if it is not
    the only table.
    """
    name = of + quoted(column.name)
    return name if staged_type(column.type, dialect) == column.type else f"CAST({name} AS {column.type})"


def drop_stage() -> str:
    return f"DROP TABLE {STAGE}"
