"""The statements of an audit: the fold of what is staged of a topic, in the form of the table, and what differs.

A topic is compacted, so `changes` and `history` have rows whose messages are gone. Such a row is expected as it is, if
compaction can have removed its message: a newer message of its key is in the topic, or its key has ended.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from warehouse.names import quoted
from warehouse.records import Column, TableName
from warehouse.tables.forms import (
    CHANGED_AT,
    CHANGES,
    DELETED_AT,
    IS_CURRENT,
    KEY,
    OFFSET,
    OP,
    SEQUENCE,
    VALID_FROM,
    VALID_TO,
    Form,
)
from warehouse.tables.types import Dialect
from warehouse.targets.statements import STAGE, full_name, staged_value, tombstones

FOLD = "_cdc_fold"
DIFFERENT = "_cdc_different"
KEPT = "_cdc_kept"
BEFORE = "_cdc_before"
SCHEMA, IS_THERE = "_schema", "_is_there"
TABLES = (STAGE, FOLD, DIFFERENT, KEPT, BEFORE)
"""The temporary tables of an audit."""


class Audited(NamedTuple):
    """A table that is audited."""

    # Its name.
    table: TableName
    # Its columns.
    columns: Sequence[Column]
    # Its form.
    form: Form
    # The types of the warehouse.
    dialect: Dialect
    # Whether its primary key keeps rows from being there twice.
    is_indexed: bool
    # Whether the keys of deleted rows are removed after some time.
    forgets_keys: bool

    @property
    def names(self) -> list[str]:
        """The columns of the rows, quoted."""
        return [quoted(column.name) for column in self.columns]

    @property
    def values(self) -> list[str]:
        """The columns of what is staged, with the types that they have in the table."""
        return [f"{staged_value(column, self.dialect)} AS {quoted(column.name)}" for column in self.columns]

    @property
    def compared(self) -> list[str]:
        """The warehouse's own columns that are compared: those that do not say which row it is."""
        return [name for name in self.form.own_names if name not in self.form.primary_key]


def compare_statements(audited: Audited) -> list[str]:
    """Make the fold, and the rows that differ from it: which row, key, kind, and a flag for each column."""
    made = _fold_kept(audited) if audited.form.keeps_all else [_fold_newest(audited)]
    return [*made, _differences(audited)]


def _fold_newest(audited: Audited) -> str:
    """The newest version of each row."""
    own, living = SEQUENCE, f" AND {OP} <> 'd'"
    if audited.form.marks_deleted:
        own, living = f"{SEQUENCE}, CASE WHEN {OP} = 'd' THEN {CHANGED_AT} END AS {DELETED_AT}", ""
    placed = f"SELECT s.*, ROW_NUMBER() OVER (PARTITION BY {KEY} ORDER BY {SEQUENCE} DESC) AS _place FROM {STAGE} AS s"
    shown = ", ".join([KEY, own, *audited.values])
    return f"CREATE TEMPORARY TABLE {FOLD} AS SELECT {shown} FROM ({placed}) AS s WHERE _place = 1{living}"


def _fold_kept(audited: Audited) -> list[str]:
    """Every version: those of the topic, and those of the table whose messages compaction has removed."""
    is_changes = audited.form is CHANGES
    own = (
        f"SELECT {', '.join([*audited.form.own_names, *audited.values])} FROM {STAGE} "
        f"UNION ALL SELECT {', '.join([*audited.form.own_names, *audited.names])} FROM {KEPT}"
    )
    same = " AND ".join(f"s.{name} = t.{name}" for name in audited.form.primary_key)
    return [
        (
            f"CREATE TEMPORARY TABLE {KEPT} AS SELECT t.* FROM {full_name(audited.table)} AS t "
            f"WHERE NOT EXISTS (SELECT 1 FROM {STAGE} AS s WHERE {same})"
        ),
        f"DELETE FROM {KEPT} AS k WHERE NOT ({_is_compacted(audited)})",
        f"CREATE TEMPORARY TABLE {FOLD} AS {own if is_changes else _versions(audited)}",
    ]


def _is_compacted(audited: Audited) -> str:
    """Whether compaction can have removed the message of a row `k` that only the table has."""
    of_key = f"SELECT 1 FROM {STAGE} AS s WHERE s.{KEY} = k.{KEY}"
    newer = f"EXISTS ({of_key} AND s.{SEQUENCE} > k.{SEQUENCE})"
    if audited.form is CHANGES:
        placed = f"SELECT {KEY}, {OP}, ROW_NUMBER() OVER (PARTITION BY {KEY} ORDER BY {SEQUENCE} DESC) AS _place"
        ended = f"k.{KEY} IN (SELECT {KEY} FROM ({placed} FROM {KEPT}) AS n WHERE _place = 1 AND {OP} = 'd')"
        return (
            f"NOT EXISTS ({of_key} AND s.{SEQUENCE} = k.{SEQUENCE}) AND ({newer} OR NOT EXISTS ({of_key}) AND {ended})"
        )
    if audited.forgets_keys:
        ended = f"k.{KEY} NOT IN (SELECT {KEY} FROM {KEPT} WHERE {IS_CURRENT})"
    else:
        gone = full_name(tombstones(audited.table))
        ended = f"EXISTS (SELECT 1 FROM {gone} AS g WHERE g.{KEY} = k.{KEY} AND g.{SEQUENCE} > k.{SEQUENCE})"
    return f"NOT k.{IS_CURRENT} AND ({newer} OR NOT EXISTS ({of_key}) AND {ended})"


def _versions(audited: Audited) -> str:
    """The rows of `history`. A version whose message is gone ends where the table says, if that is possible."""
    is_possible = "_is_kept AND _to >= _begins AND (_ends IS NULL OR _to <= _ends)"
    ends = f"CASE WHEN {is_possible} THEN _to ELSE _ends END"
    own = f"{KEY}, {SEQUENCE}, _begins AS {VALID_FROM}, {ends} AS {VALID_TO}, {ends} IS NULL AS {IS_CURRENT}"
    return f"SELECT {', '.join([own, *audited.names])} FROM ({lives(audited)}) AS v WHERE {OP} <> 'd'"


def lives(audited: Audited) -> str:
    """Each version and each deletion, with where it begins and where the next one does."""
    of_key = f"PARTITION BY {KEY} ORDER BY {SEQUENCE}"
    once = f"SELECT DISTINCT ON ({KEY}, {SEQUENCE}) * FROM {STAGE} ORDER BY {KEY}, {SEQUENCE}, {OFFSET} DESC"
    own = f"{KEY}, {SEQUENCE}, {OP}, {CHANGED_AT} AS _from, {CHANGED_AT} AS _reach, CAST(NULL AS TIMESTAMPTZ) AS _to"
    kept = f"{KEY}, {SEQUENCE}, 'u', {VALID_FROM}, GREATEST({VALID_FROM}, {VALID_TO}), {VALID_TO}"
    both = (
        f"SELECT {', '.join([own, 'FALSE AS _is_kept', *audited.values])} FROM ({once}) AS s "
        f"UNION ALL SELECT {', '.join([kept, 'TRUE', *audited.names])} FROM {KEPT}"
    )
    reached = f"MAX(_reach) OVER ({of_key} ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)"
    begun = (
        f"SELECT b.*, CASE WHEN _is_kept THEN _from ELSE GREATEST(_from, {reached}) END AS _begins FROM ({both}) AS b"
    )
    return f"SELECT e.*, LEAD(_begins) OVER ({of_key}) AS _ends FROM ({begun}) AS e"


def _differences(audited: Audited) -> str:
    key = audited.form.primary_key
    flags = [f"t.{name} IS DISTINCT FROM f.{name}" for name in audited.compared]
    for column in audited.columns:
        name = quoted(column.name) + ("::TEXT" if column.type == "JSON" else "")  # PostgreSQL does not compare JSON
        flags.append(f"t.{name} IS DISTINCT FROM f.{name}")
    both = f"t.{KEY} IS NOT NULL AND f.{KEY} IS NOT NULL"
    shown = ", ".join(f"({both} AND {flag}) AS d{number}" for number, flag in enumerate(flags))
    kind = f"CASE WHEN t.{KEY} IS NULL THEN 'missing' WHEN f.{KEY} IS NULL THEN 'surplus' ELSE 'different' END AS kind"
    row = ", ".join(f"COALESCE(t.{name}, f.{name}) AS {name}" for name in dict.fromkeys((KEY, *key)))
    table, fold, same = f"{full_name(audited.table)} AS t", f"{FOLD} AS f", [*key]
    if not audited.is_indexed:  # a row may be there twice
        copy = f"ROW_NUMBER() OVER (PARTITION BY {', '.join(key)}) AS _copy"
        table = f"(SELECT *, {copy} FROM {full_name(audited.table)}) AS t"
        fold, same = f"(SELECT *, 1 AS _copy FROM {FOLD}) AS f", [*key, "_copy"]
    return (
        f"CREATE TEMPORARY TABLE {DIFFERENT} AS SELECT {row}, {kind}, {shown} "
        f"FROM {table} FULL JOIN {fold} ON {' AND '.join(f't.{name} = f.{name}' for name in same)} "
        f"WHERE t.{KEY} IS NULL OR f.{KEY} IS NULL OR {' OR '.join(flags)}"
    )


def repair_statements(audited: Audited) -> list[str]:
    """Make the rows that differ those of the fold."""
    name, key = full_name(audited.table), audited.form.primary_key
    names = ", ".join([*audited.form.own_names, *audited.names])
    of_different = f"SELECT 1 FROM {DIFFERENT} AS d WHERE {' AND '.join(f'd.{one} = o.{one}' for one in key)}"
    made = [
        f"DELETE FROM {name} AS o WHERE EXISTS ({of_different})",
        f"INSERT INTO {name} ({names}) SELECT {names} FROM {FOLD} AS o WHERE EXISTS ({of_different})",
    ]
    if not audited.form.has_tombstones:
        return made
    gone, of_key = full_name(tombstones(audited.table)), f"{KEY} IN (SELECT {KEY} FROM {DIFFERENT})"
    if not audited.form.keeps_all:
        return [*made, f"DELETE FROM {gone} WHERE {KEY} IN (SELECT {KEY} FROM {FOLD}) AND {of_key}"]
    return [
        *made,
        f"DELETE FROM {gone} WHERE {KEY} IN (SELECT {KEY} FROM {STAGE}) AND {of_key}",
        (
            f"INSERT INTO {gone} ({KEY}, {SEQUENCE}, deleted_at) SELECT {KEY}, {SEQUENCE}, _begins "
            f"FROM ({lives(audited)}) AS v WHERE _ends IS NULL AND {OP} = 'd' AND {of_key}"
        ),
    ]


def broken_statement(schema_id: int, columns: Sequence[Column]) -> str:
    """The changes of a schema whose `before` is not the version before them: the key, and a flag for each column.

    columns: those that the schema has. A version is the one before if its sequence is, so a version whose message is
    gone breaks nothing.
    """
    flags = []
    for column in columns:
        kind = "TEXT" if column.type == "JSON" else column.type
        name = quoted(column.name)
        flags.append(f"(b.{IS_THERE} AND CAST(b.{name} AS {kind}) IS DISTINCT FROM CAST(p.{name} AS {kind}))")
    wrong = [f"(p.{OP} = 'd') = b.{IS_THERE}", *flags]
    return (
        f"SELECT b.{KEY}, {', '.join(wrong)} FROM {BEFORE} AS b JOIN {STAGE} AS p "
        f"ON p.{KEY} = b.{KEY} AND p.{SEQUENCE} = b.{SEQUENCE} - 1 "
        f"WHERE b.{SCHEMA} = {schema_id} AND ({' OR '.join(wrong)})"
    )
