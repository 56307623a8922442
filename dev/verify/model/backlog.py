"""Statements and schema changes with rising timestamps, each told to a model: what must come out, one for one.

The publisher reads the schema after each change, so that the log names the schema that each write was made under. The
job may be stopped for all of it.
"""

from __future__ import annotations

import random
import time
from typing import TYPE_CHECKING, NamedTuple

from dev.verify.model.backlog_model import (
    CELLS,
    INT,
    LIST,
    MAP,
    RECORD,
    SET,
    SPARE,
    TEXT,
    Column,
    ExpectedTable,
    Key,
    Plain,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from dev.local_stack.clients.cql import CqlClient
    from dev.verify.model.backlog_model import Kind

PARTITIONS = 5
CLUSTERINGS = 4
MOST_COLUMNS = 9
MOST_FIELDS = 6
MOST_RENAMES = 2  # of a key column of a table: each makes another topic
RECENT = 60  # timestamps that a DROP may name
AGAIN = 0.2  # of the writes are sent again with the same values
TRUNCATE_SECONDS = 3.0  # materializer.truncate_seconds
APART_SECONDS = (
    2 * TRUNCATE_SECONDS + 2.0
)  # of two truncations: otherwise the writes between do not come (decision 0035)
WIDE = {
    "v": Column(TEXT),
    "n": Column(INT),
    "s": Column(TEXT, is_static=True),
    "f": Column(RECORD),
    "u": Column(CELLS),
}
PLAIN = {"a": Column(INT), "l": Column(LIST), "m": Column(MAP), "x": Column(SET), "f": Column(RECORD)}
STAYS = ("u",)  # Cassandra drops no column of a non-frozen user type


class Write(NamedTuple):
    """A write of a row, to be sent again."""

    # The key of the row.
    at: Key
    # The values, by the name of the column.
    values: dict[str, Plain]
    # Whether it is an INSERT; otherwise it is an UPDATE.
    is_insert: bool


class Backlog:
    """Writes to the tables `wide` and `plain` of a keyspace that is made here.

    `barrier` returns once the publisher has read all that was written before, and the schema as it is.
    """

    def __init__(
        self, client: CqlClient, keyspace: str, replication: str, seed: int, barrier: Callable[[], None]
    ) -> None:
        self.keyspace = keyspace
        self.tables = [
            ExpectedTable("wide", ("p", "c"), WIDE),
            ExpectedTable("plain", ("p",), PLAIN),
        ]
        self.statements = 0
        self.changes = 0
        self.script: list[str] = []
        self._client = client
        self._barrier = barrier
        self._pick = random.Random(seed)
        self._number = 0
        self._now = 0
        self._recent: list[int] = []
        self._fields = {table.name: ["f1", "f2"] for table in self.tables}
        self._dropped: dict[str, dict[str, Column]] = {table.name: {} for table in self.tables}
        self._last_drop: dict[tuple[str, str], int] = {}
        self._renames = {table.name: 0 for table in self.tables}
        self._last: dict[str, Write] = {}
        self._changed_late: set[str] = set()  # tables whose schema has changed since a publisher stopped
        self._has_stopped = False  # since the publisher was seen to run
        self._truncated: dict[str, float] = {}  # tables, and since when the publisher can have waited for another one
        self._ddl(f"CREATE KEYSPACE {keyspace} WITH replication = {replication}")
        for table in self.tables:
            self._ddl(f"CREATE TYPE {keyspace}.{table.name}_type (f1 int, f2 text)")
            self._ddl(self._create(table))
        self._barrier()

    def write(self, count: int) -> None:
        """Write so many statements."""
        for _ in range(count):
            table = self._pick.choice(self.tables)
            if table.name in self._last and self._pick.random() < AGAIN:
                self._write(table, self._last[table.name])
            else:
                self._write_something(table)

    def begin_stop(self) -> None:
        """A program does not run from now on."""
        self._changed_late.clear()
        self._has_stopped = True

    def change(self, *, is_published: bool = True) -> None:
        """Change the schema of a table once, or several times in a row. Unless `is_published`, the publisher does not
        run: then it changes once at most, and columns and types alone. A publisher that has seen neither the schema
        before a change nor the one after it cannot tell what was written between two changes from the rest.
        """
        tables = [table for table in self.tables if is_published or table.name not in self._changed_late]
        if not tables:
            return
        table = self._pick.choice(tables)
        if is_published:
            self._barrier()
            self._note_publisher_runs()
        else:
            self._changed_late.add(table.name)
        for _ in range(self._pick.choice((1, 1, 2, 3)) if is_published else 1):
            self._change(table, is_published=is_published)
            self.changes += 1
            self._last.pop(table.name, None)
            if is_published:
                self._barrier()

    def finish(self) -> None:
        """Add the columns again whose newer cells are hidden: Cassandra may not read such rows."""
        self._barrier()
        for table in self.tables:
            for name in list(self._dropped[table.name]):
                self._add_again(table, name)
                self._barrier()

    # Writes.

    def _write_something(self, table: ExpectedTable) -> None:
        at = self._key(table)
        statics = [name for name, column in table.columns.items() if column.is_static]
        match self._pick.choices("iudrpse", (34, 30, 8, 6, 2, 10 * bool(statics), 10))[0]:
            case "i":
                self._write(table, Write(at, self._values(table, 0), is_insert=True))
            case "u":
                self._write(table, Write(at, self._values(table, 1), is_insert=False))
            case "d":
                name = self._pick.choice(self._regular(table))
                self._write(table, Write(at, {name: None}, is_insert=False))
            case "r":
                self._send(
                    f"DELETE FROM {self._name(table)} USING TIMESTAMP {self._step()} WHERE {self._where(table, at)}"
                )
                table.delete_row(at)
            case "p":
                self._send(
                    f"DELETE FROM {self._name(table)} USING TIMESTAMP {self._step()} WHERE {table.key[0]} = {at[0]}"
                )
                table.delete_partition(at[0])
            case "s":
                self._write_static(table, at[0], self._pick.choice(statics))
            case _:
                self._write_element(table, at)

    def _write(self, table: ExpectedTable, write: Write) -> None:
        self._last[table.name] = write
        now = self._step()
        texts = {name: self._literal(table, name, value) for name, value in write.values.items()}
        if write.is_insert:
            names = ", ".join((*table.key, *texts))
            key = [str(value) for value in write.at if value is not None]
            values = ", ".join((*key, *texts.values()))
            self._send(f"INSERT INTO {self._name(table)} ({names}) VALUES ({values}) USING TIMESTAMP {now}")
        else:
            sets = ", ".join(f"{name} = {text}" for name, text in texts.items())
            where = self._where(table, write.at)
            self._send(f"UPDATE {self._name(table)} USING TIMESTAMP {now} SET {sets} WHERE {where}")
        table.write(write.at, write.values, now, is_insert=write.is_insert)

    def _write_static(self, table: ExpectedTable, partition: int, name: str) -> None:
        value = None if self._pick.random() < 0.2 else table.columns[name].kind.value(self._pick)
        now, text = self._step(), self._literal(table, name, value)
        where = f"{table.key[0]} = {partition}"
        self._send(f"UPDATE {self._name(table)} USING TIMESTAMP {now} SET {name} = {text} WHERE {where}")
        table.write_static(partition, {name: value}, now)

    def _write_element(self, table: ExpectedTable, at: Key) -> None:
        """Add to a collection, or set one field of a user type."""
        names = [name for name in self._regular(table) if not table.columns[name].kind.is_frozen]
        if not names:
            return
        name = self._pick.choice(names)
        kind = table.columns[name].kind
        old = table.value(at, name)
        now, where = self._step(), self._where(table, at)
        value: Plain
        if kind.shape == "record":
            item = self._pick.choice((1, 2))
            change, value = f"{name}.{self._fields[table.name][0]} = {item}", (item, *(old or ())[1:])
        else:
            added = kind.value(self._pick)
            change, value = f"{name} = {name} + {self._literal(table, name, added)}", _joined(kind, old, added)
        self._send(f"UPDATE {self._name(table)} USING TIMESTAMP {now} SET {change} WHERE {where}")
        table.write(at, {name: value}, now, is_insert=False)

    def _values(self, table: ExpectedTable, least: int) -> dict[str, Plain]:
        regular = self._regular(table)
        names = self._pick.sample(regular, self._pick.randint(least, min(3, len(regular))))
        return {
            name: None if self._pick.random() < 0.15 else table.columns[name].kind.value(self._pick) for name in names
        }

    def _key(self, table: ExpectedTable) -> Key:
        clustering = self._pick.randrange(CLUSTERINGS) if len(table.key) > 1 else None
        return self._pick.randrange(PARTITIONS), clustering

    @staticmethod
    def _regular(table: ExpectedTable) -> list[str]:
        return [name for name, column in table.columns.items() if not column.is_static]

    # Schema changes.

    def _change(self, table: ExpectedTable, *, is_published: bool) -> None:
        away = self._dropped[table.name]
        kinds: list[tuple[Callable[[ExpectedTable], None], float]] = [
            (self._add, 3.0 * (len(table.columns) < MOST_COLUMNS)),
            (self._drop, 5.0 * (len(self._regular(table)) > 2)),
            (self._add_any_again, 4.0 * bool(away)),
            (self._add_field, 1.5 * (len(self._fields[table.name]) < MOST_FIELDS)),
            (self._rename_field, 1.5),
            (self._rename_key, 0.7 * (is_published and self._renames[table.name] < MOST_RENAMES)),
            (self._truncate, 1.0 * is_published),
            (self._recreate, 1.0 * is_published),
            (self._switch_cdc, 1.0 * is_published),
            (self._comment, 0.5),
        ]
        [change] = self._pick.choices(*zip(*kinds, strict=True))
        change(table)

    def _add(self, table: ExpectedTable) -> None:
        self._number += 1
        is_static = len(table.key) > 1 and self._pick.random() < 0.25
        name, column = f"x{self._number}", Column(self._pick.choice(SPARE), is_static)
        self._alter(table, f"ADD {name} {column.kind.cql}{' static' if is_static else ''}")
        table.add_column(name, column)

    def _drop(self, table: ExpectedTable) -> None:
        """Drop a column, sometimes up to an earlier time: its newer cells come back when it is added again."""
        name = self._pick.choice([name for name in table.columns if name not in STAYS])
        before = self._last_drop.get((table.name, name), 0)
        until, using = time.time_ns() // 1000, ""
        is_one_cell = table.columns[name].kind.is_frozen
        if is_one_cell and self._recent and self._recent[0] > before and self._pick.random() < 0.3:
            until = self._pick.choice(self._recent)
            using = f" USING TIMESTAMP {until}"
        self._alter(table, f"DROP {name}{using}")
        self._now = max(self._now, time.time_ns() // 1000)
        self._last_drop[table.name, name] = until if using else self._now
        self._dropped[table.name][name] = self._remembered(table, table.columns[name])
        table.drop_column(name, self._last_drop[table.name, name])

    def _add_any_again(self, table: ExpectedTable) -> None:
        self._add_again(table, self._pick.choice(list(self._dropped[table.name])))

    def _add_again(self, table: ExpectedTable, name: str) -> None:
        column = self._dropped[table.name].pop(name)
        self._alter(table, f"ADD {name} {column.kind.cql}{' static' if column.is_static else ''}")
        table.add_column(name, column)

    def _remembered(self, table: ExpectedTable, column: Column) -> Column:
        """Return a column as Cassandra remembers it once it is dropped: a tuple in place of a user type."""
        if column.kind != RECORD:
            return column
        parts = ", ".join("text" if at == 1 else "int" for at, _ in enumerate(self._fields[table.name]))
        return Column(RECORD._replace(cql=f"frozen<tuple<{parts}>>"), column.is_static)

    def _add_field(self, table: ExpectedTable) -> None:
        self._number += 1
        self._fields[table.name].append(f"g{self._number}")
        self._ddl(f"ALTER TYPE {self._name(table)}_type ADD g{self._number} int")

    def _rename_field(self, table: ExpectedTable) -> None:
        self._number += 1
        fields = self._fields[table.name]
        at = self._pick.randrange(len(fields))
        self._ddl(f"ALTER TYPE {self._name(table)}_type RENAME {fields[at]} TO h{self._number}")
        fields[at] = f"h{self._number}"

    def _rename_key(self, table: ExpectedTable) -> None:
        self._number += 1
        self._renames[table.name] += 1
        name = self._pick.choice(table.key)
        self._alter(table, f"RENAME {name} TO k{self._number}")
        table.rename_key(name, f"k{self._number}")

    def _note_publisher_runs(self) -> None:
        """A publisher that stood still has seen no time pass."""
        if self._has_stopped:
            self._has_stopped = False
            self._truncated = dict.fromkeys(self._truncated, time.monotonic())

    def _truncate(self, table: ExpectedTable) -> None:
        since = time.monotonic() - self._truncated.get(table.name, -APART_SECONDS)
        time.sleep(max(0.0, APART_SECONDS - since))
        self._ddl(f"TRUNCATE {self._name(table)}")
        self._truncated[table.name] = time.monotonic()
        self._now = max(self._now, time.time_ns() // 1000)
        table.delete_all()

    def _recreate(self, table: ExpectedTable) -> None:
        """DROP and CREATE of the same name and key; sometimes some columns are others."""
        self._ddl(f"DROP TABLE {self._name(table)}")
        table.delete_all()
        self._dropped[table.name].clear()
        self._last_drop = {key: at for key, at in self._last_drop.items() if key[0] != table.name}
        if self._pick.random() < 0.5:
            table.columns = dict(WIDE if len(table.key) > 1 else PLAIN)
        self._ddl(self._create(table))

    def _switch_cdc(self, table: ExpectedTable) -> None:
        """Nothing is written while it is off."""
        self._alter(table, "WITH cdc = false")
        if self._pick.random() < 0.5:
            self._barrier()
        self._alter(table, "WITH cdc = true")

    def _comment(self, table: ExpectedTable) -> None:
        self._number += 1
        self._alter(table, f"WITH comment = 'the {self._number}th'")

    # Statements.

    def _create(self, table: ExpectedTable) -> str:
        columns = [f"{name} int" for name in table.key]
        for name, column in table.columns.items():
            columns.append(f"{name} {self._cql(table, column.kind)}{' static' if column.is_static else ''}")
        key = ", ".join(table.key)
        return f"CREATE TABLE {self._name(table)} ({', '.join(columns)}, PRIMARY KEY ({key})) WITH cdc = true"

    def _cql(self, table: ExpectedTable, kind: Kind) -> str:
        return kind.cql.replace("$t", f"{self.keyspace}.{table.name}_type")

    def _literal(self, table: ExpectedTable, name: str, value: Plain) -> str:
        kind = table.columns[name].kind
        text = kind.literal(value, tuple(self._fields[table.name]))
        is_tuple = kind.shape == "record" and "tuple" in kind.cql
        if is_tuple and isinstance(value, tuple):
            items = ("null" if item is None else str(item) if isinstance(item, int) else f"'{item}'" for item in value)
            return f"({', '.join(items)})"
        return text

    def _where(self, table: ExpectedTable, at: Key) -> str:
        return " AND ".join(f"{name} = {value}" for name, value in zip(table.key, at, strict=False))

    def _name(self, table: ExpectedTable) -> str:
        return f"{self.keyspace}.{table.name}"

    def _alter(self, table: ExpectedTable, what: str) -> None:
        self._ddl(f"ALTER TABLE {self._name(table)} {what}")

    def _ddl(self, text: str) -> None:
        self.script.append(text)
        self._client.execute(text)

    def _send(self, text: str) -> None:
        self.statements += 1
        self.script.append(text)
        self._client.execute(text)

    def _step(self) -> int:
        """The clock, as a timestamp that is above all before it."""
        self._now = max(self._now + 1, time.time_ns() // 1000)
        self._recent = [*self._recent[1 - RECENT :], self._now]
        return self._now


def _joined(kind: Kind, old: object, added: object) -> Plain:
    """A collection with what is added to it."""
    before = old if isinstance(old, tuple) else ()
    more = added if isinstance(added, tuple) else ()
    match kind.shape:
        case "list":
            return before + more
        case "map":
            return tuple(sorted({**dict(before), **dict(more)}.items()))
    return tuple(sorted({*before, *more}))
