"""Changes of the schema of tables that are being written to, and TRUNCATE.

Of what Cassandra leaves open nothing is made: a column's time of DROP never goes back (whether what it dropped comes
back then depends on compaction), and no table ends with a dropped column that holds newer cells (its rows cannot be
read once they are flushed).
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from dev.verify.model.cql_text import cql
from dev.verify.model.kinds import BLOB, INT, TEXT, frozen, list_of, map_of, native, set_of
from dev.verify.model.shapes import DROPS_USER_TYPE, INNER, PAIR, SHAPE, clustering_kinds, clusterings, key_kinds
from dev.verify.model.statement import Item, Part, SchemaChange, Statement
from dev.verify.model.tables import NUMBER
from dev.verify.model.times import FAR_AHEAD_US, LATE_US
from dev.verify.model.values import integer, timestamp

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Iterator

    from dev.verify.model.kinds import Kind
    from dev.verify.model.tables import Column, Table
    from dev.verify.model.times import Times
    from dev.verify.model.writes import Writes

SPARE_KINDS = (INT, TEXT, set_of(TEXT), map_of(TEXT, INT), list_of(INT), frozen(PAIR), native("decimal"))
WIDER = {"ascii": TEXT, "text": BLOB}  # what a column may be added as after it was dropped
MOST_COLUMNS = 14
MOST_FIELDS = 6
WINDOW = 60  # statements to other tables while a table's cdc is off
WINDOW_WRITES = 4
SHORT_TTL = 4
SHARES = {"columns": 3.0, "recreated": 1.5, "types": 1.0, "cdc": 1.0}
TRUNCATIONS = 0.2  # of all changes, by default
AWAY = 0.4  # of the tables that are made again, those that are away for some time
LEFT_ALONE = (DROPS_USER_TYPE[0],)  # never added again: 3.11 records another type of it


class Dropped:
    """A column that is away. `at`: the time of its DROP by the statement, None where it was the node's clock."""

    def __init__(self, column: Column, *, is_static: bool, at: int | None) -> None:
        self.column = column
        self.is_static = is_static
        self.at = at


class Evolution:
    """Changes the schema of each table, by its `evolution`; `tables` are all, as they are now."""

    def __init__(
        self,
        pick: random.Random,
        times: Times,
        writes: Writes,
        tables: dict[str, Table],
        version: str,
        truncations: float = TRUNCATIONS,
    ) -> None:
        self.closed: set[str] = set()  # tables that must not be written to now
        self._pick = pick
        self._times = times
        self._writes = writes
        self._tables = tables
        self._version = version
        self._truncations = truncations
        self._dropped: dict[str, list[Dropped]] = {name: [] for name in tables}
        self._last_drop: dict[tuple[str, str], int | None] = {}  # of each column, as Dropped.at
        self._number = 0
        self._waiting: list[tuple[int, Item]] = []
        self._scheduled: list[tuple[int, SchemaChange]] = []
        self._changing = [name for name, table in tables.items() if table.evolution]

    @property
    def is_possible(self) -> bool:
        return bool(set(self._changing) - self.closed)

    def can_read(self, table: Table) -> bool:
        """Whether a statement may read before it writes: not while a dropped column may hold newer cells."""
        return not self._dropped[table.name]

    def change(self) -> Iterator[Item]:
        if self._pick.random() < self._truncations:
            yield self._truncate()
            return
        tables = [self._tables[name] for name in self._changing if name not in self.closed]
        table = self._pick.choices(tables, [SHARES[table.evolution] for table in tables])[0]
        kinds: dict[str, Callable[[Table], Iterator[Item]]] = {
            "columns": self._change_columns,
            "recreated": self._recreate,
            "types": self._change_type,
            "cdc": self._switch_cdc,
        }
        yield from kinds[table.evolution](table)

    def schedule(self, change: SchemaChange, after: int) -> None:
        """Make it `due` after so many statements; not in another thread than that of `due`."""
        self._scheduled.append((after, change))

    def due(self) -> Iterator[Item]:
        """Yield the steps that are due: each follows some statements after the one that began it."""
        self._waiting = [(left - 1, item) for left, item in self._waiting]
        while self._waiting and self._waiting[0][0] <= 0:
            _, item = self._waiting.pop(0)
            yield self._given(item)
        self._scheduled = [(left - 1, change) for left, change in self._scheduled]
        while self._scheduled and self._scheduled[0][0] <= 0:
            _, change = self._scheduled.pop(0)
            yield self._given(change)

    def last(self) -> Iterator[Item]:
        """Ends what was begun, so that all tables can be read."""
        for _, item in [*self._waiting, *self._scheduled]:
            yield self._given(item)
        self._waiting.clear()
        self._scheduled.clear()
        for name, dropped in self._dropped.items():
            for one in [candidate for candidate in dropped if candidate.column[0] not in LEFT_ALONE]:
                yield self._add_again(self._tables[name], one)

    def _given(self, item: Item) -> Item:
        if isinstance(item, SchemaChange):
            for table in item.after:
                self._tables[table.name] = table
                if table.is_cdc:
                    self.closed.discard(table.name)
        return item

    def _changed(self, table: Table, *texts: str) -> SchemaChange:
        self._tables[table.name] = table
        return SchemaChange(texts, (table,))

    def _truncate(self) -> SchemaChange:
        """Truncates a table without counters: nothing of counters is deleted while they are written to."""
        open_tables = [
            table
            for name, table in self._tables.items()
            if name not in self.closed and table.is_cdc and table.is_truncated and not table.is_counter
        ]
        table = self._pick.choice(open_tables)
        return SchemaChange((f"TRUNCATE $k.{table.name}",), (table,))

    # Columns that come and go.

    def _change_columns(self, table: Table) -> Iterator[Item]:
        away = [one for one in self._dropped[table.name] if one.column[0] not in LEFT_ALONE]
        chance = self._pick.random()
        if away and chance < 0.45:
            yield self._add_again(table, self._pick.choice(away))
        elif chance < 0.6 and len(table.regular) < MOST_COLUMNS:
            yield self._add_column(table)
        else:
            yield from self._drop_column(table)

    def _add_column(self, table: Table) -> SchemaChange:
        self._number += 1
        column = (f"x{self._number}", self._pick.choice(SPARE_KINDS))
        if self._pick.random() < 0.25:
            after = replace(table, static=(*table.static, column))
            return self._changed(after, f"ALTER TABLE $k.{table.name} ADD {column[0]} {column[1].cql} static")
        after = replace(table, regular=(*table.regular, column))
        return self._changed(after, f"ALTER TABLE $k.{table.name} ADD {column[0]} {column[1].cql}")

    def _drop_column(self, table: Table) -> Iterator[Item]:
        """One of several, at most times by the node's clock."""
        static = table.static if len(table.static) > 1 else ()
        regular = table.regular if len(table.regular) > 1 else ()
        columns = [*static, *regular]
        if not columns:
            return
        column = self._pick.choice(columns)
        at = self._drop_time(table.name, column[0])
        self._dropped[table.name].append(Dropped(column, is_static=column in static, at=at))
        self._last_drop[table.name, column[0]] = at
        using = "" if at is None else f" USING TIMESTAMP {at}"
        after = replace(
            table,
            static=tuple(name for name in table.static if name != column),
            regular=tuple(name for name in table.regular if name != column),
        )
        yield self._changed(after, f"ALTER TABLE $k.{table.name} DROP {column[0]}{using}")

    def _drop_time(self, table: str, name: str) -> int | None:
        if name in LEFT_ALONE:
            return self._times.now + 2 * FAR_AHEAD_US  # of its cells none may be newer
        chance, key = self._pick.random(), (table, name)
        before = self._last_drop.get(key)
        if chance < 0.25 or (before is not None and before > self._times.now):
            return max(self._times.now, before or 0) + FAR_AHEAD_US
        if key not in self._last_drop and chance < 0.5:
            return self._times.now - self._pick.randrange(LATE_US)
        return None

    def _add_again(self, table: Table, dropped: Dropped) -> SchemaChange:
        self._dropped[table.name].remove(dropped)
        name, kind = dropped.column[0], dropped.column[1].without_user_types()
        if kind.name in WIDER and self._pick.random() < 0.1:
            kind = WIDER[kind.name]
        text = f"ALTER TABLE $k.{table.name} ADD {name} {kind.cql}"
        if dropped.is_static:
            return self._changed(replace(table, static=(*table.static, (name, kind))), f"{text} static")
        return self._changed(replace(table, regular=(*table.regular, (name, kind))), text)

    # Tables that are made again.

    def _recreate(self, table: Table) -> Iterator[Item]:
        """Recreate the table, most times just after a row that will expire; at once, or after statements to other
        tables.
        """
        if self._pick.random() < 0.6:
            self._writes.is_bound = False
            using = cql(" USING TIMESTAMP {} AND TTL {}", timestamp(self._times.next()), integer(SHORT_TTL))
            insert = self._writes.insert(table, using)
            yield Statement((Part(table, self._pick.randrange(table.partitions), insert),))
        after = self._other_shape(table)
        if self._pick.random() < AWAY:
            self.closed.add(table.name)
            yield SchemaChange((f"DROP TABLE $k.{table.name}",), (table,))
            self._waiting.append((WINDOW, SchemaChange((after.create(),), (after,))))
            return
        yield self._changed(after, f"DROP TABLE $k.{table.name}", after.create())

    def _other_shape(self, table: Table) -> Table:
        """The same; other columns; other clusterings; another key."""
        pick = self._pick
        match pick.randrange(5):
            case 0 | 1:
                return table
            case 2:
                self._number += 1
                added = (f"y{self._number}", pick.choice(SPARE_KINDS))
                return replace(
                    table, regular=(pick.choice(table.regular), added), static=pick.choice(((), (("st", TEXT),)))
                )
            case 3:
                kinds = pick.sample(clustering_kinds(self._version), pick.randint(1, 2))
                return replace(table, clustering=clusterings(kinds, pick, self._version))
        alone = (("k", pick.choice(key_kinds(self._version))),)
        return replace(table, key=pick.choice((alone, (*alone, NUMBER), (NUMBER,))))

    # User types.

    def _change_type(self, table: Table) -> Iterator[Item]:
        used = self._pick.choice((SHAPE, INNER))
        current = next(kind for kind in _all_kinds(table) if kind.user_type == used.user_type)
        self._number += 1
        if self._pick.random() < 0.6 and len(current.fields) < MOST_FIELDS:
            kind = self._pick.choice((INT, TEXT))
            name = f"f{self._number}"
            changed = replace(current, fields=(*current.fields, name), parts=(*current.parts, kind), is_frozen=False)
            text = f"ALTER TYPE $k.{used.user_type} ADD {name} {kind.cql}"
        else:
            at = self._pick.randrange(len(current.fields))
            name = f"r{self._number}"
            fields = (*current.fields[:at], name, *current.fields[at + 1 :])
            changed = replace(current, fields=fields, is_frozen=False)
            text = f"ALTER TYPE $k.{used.user_type} RENAME {current.fields[at]} TO {name}"
        yield self._changed(table.with_user_type(changed), text)

    # Change data capture off and on.

    def _switch_cdc(self, table: Table) -> Iterator[Item]:
        """Writes while it is off are not in the log: nothing, or rows of a partition that is deleted later."""
        partition = self._pick.randrange(table.partitions)
        before = [self._write(table, partition) for _ in range(WINDOW_WRITES)]
        yield from before
        after = replace(table, is_cdc=False)
        yield self._changed(after, f"ALTER TABLE $k.{table.name} WITH cdc = false")
        self.closed.add(table.name)
        on = SchemaChange((f"ALTER TABLE $k.{table.name} WITH cdc = true",), (table,))
        if self._pick.random() < 0.5:
            writes = [self._write(table, partition) for _ in range(WINDOW_WRITES)]
            deletion = self._writes.delete_partition_at(table, self._times.next())
            self._waiting += [(WINDOW // 2, write) for write in writes]
            self._waiting += [(WINDOW, on), (WINDOW, Statement((Part(table, partition, deletion),)))]
        else:
            self._waiting.append((WINDOW, on))

    def _write(self, table: Table, partition: int) -> Statement:
        self._writes.is_bound = False
        insert = self._writes.insert_at(table, self._times.next())
        return Statement((Part(table, partition, insert),))


def _all_kinds(table: Table) -> Iterator[Kind]:
    for kind in table.kinds():
        yield from _inner(kind)


def _inner(kind: Kind) -> Iterator[Kind]:
    yield kind
    for part in kind.parts:
        yield from _inner(part)
