"""Random statements over the declared tables: every kind of write, at times that tie, come late or lie far ahead.

The same seed gives the same statements; `start_us` is added to their timestamps.
"""

from __future__ import annotations

import random
from collections import deque
from typing import TYPE_CHECKING, NamedTuple

from verify.model.kinds import written

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from verify.model.kinds import Kind
    from verify.model.tables import Clustering, Column, Table

TTLS = (1, 4, 10, 86_400, 0)  # seconds; what does not expire within a run does not at all
LONGEST_TTL = 10
STEP_US = 2_000  # between statements: about the pace at which they are executed
FAR_AHEAD_US = 3_600_000_000
LATE_US = 2_000_000
RECENT = 40  # timestamps to tie with
BOUNDS = (">", ">=", "<", "<=")


class Part(NamedTuple):
    """A statement of one partition of one table; `$k` and `$p` stand for keyspace and partition."""

    table: str
    partition: int
    text: str

    def cql(self, keyspace: str, partition: int | None = None) -> str:
        number = self.partition if partition is None else partition
        return self.text.replace("$k", keyspace).replace("$p", str(number))


class Statement(NamedTuple):
    """One part, or a batch of several (`batch`: the word before BATCH, None where it is none).

    `is_serial`: a conditional one; `may_be_refused`: it sets an element of a list, which may not be there.
    """

    parts: tuple[Part, ...]
    batch: str | None = None
    is_serial: bool = False
    may_be_refused: bool = False

    def cql(self, keyspace: str) -> str:
        return self.render([part.cql(keyspace) for part in self.parts])

    def render(self, parts: Sequence[str]) -> str:
        if self.batch is None:
            [text] = parts
            return text
        return f"BEGIN {self.batch} BATCH {'; '.join(parts)}; APPLY BATCH"

    def only(self, table: str, partition: int) -> Statement | None:
        """What of it writes to one partition."""
        parts = tuple(part for part in self.parts if (part.table, part.partition) == (table, partition))
        return self._replace(parts=parts) if parts else None


class Generator:
    """Statements of one seed; with `has_ties`, several may have one timestamp."""

    def __init__(self, seed: int, tables: Sequence[Table], start_us: int, *, has_ties: bool = True) -> None:
        self._has_ties = has_ties
        self._pick = random.Random(seed)
        self._tables = [table for table in tables if not table.is_counter]
        self._counters = [table for table in tables if table.is_counter]
        self._all = list(tables)
        self._time = start_us
        self._recent: deque[int] = deque([start_us], maxlen=RECENT)
        self._deleted: deque[tuple[Table, int, int]] = deque(maxlen=RECENT)  # rows of a partition, at a time

    def statements(self, count: int) -> Iterator[Statement]:
        for _ in range(count):
            self._time += STEP_US
            table = self._pick.choices(self._all, [table.weight for table in self._all])[0]
            yield self._counter(table) if table.is_counter else self._statement(table)

    def late_statements(self) -> Iterator[Statement]:
        """Older than deletions that came before: to be sent when these are in the materializer's state, for what comes
        with them in one batch is put in order.
        """
        for deletion in self._deleted:
            yield self._insert_before(*deletion)

    def last_statements(self) -> Iterator[Statement]:
        """Deletions of counters: no increment may follow one, since Cassandra itself keeps no order there."""
        for table in self._counters:
            for partition in range(table.partitions):
                match partition % 4:
                    case 0:
                        text = f"DELETE FROM $k.{table.name} WHERE p = $p AND c = {self._key(table.clustering[0])}"
                    case 1:
                        text = f"DELETE n FROM $k.{table.name} WHERE p = $p AND c = {self._key(table.clustering[0])}"
                    case 2:
                        text = f"DELETE FROM $k.{table.name} WHERE p = $p"
                    case _:
                        continue
                yield Statement((Part(table.name, partition, text),))

    def _statement(self, table: Table) -> Statement:
        chance = self._pick.random()
        if chance < 0.06:
            return self._batch()
        if chance < 0.075:
            return self._conditional(table)
        if chance < 0.09 and any(kind.name == "list" for _, kind in _multi_cell(table.regular)):
            return self._list_element(table)
        if chance < 0.13 and self._deleted:
            return self._insert_before(*self._pick.choice(self._deleted))
        return Statement((self._part(table),))

    def _part(self, table: Table) -> Part:
        kind = self._pick.choices(*zip(*self._kinds(table), strict=True))[0]
        text, partition = kind(table), self._pick.randrange(table.partitions)
        if kind in (self._delete_range, self._delete_partition):
            self._deleted.append((table, partition, self._time))
        return Part(table.name, partition, text)

    def _insert_before(self, table: Table, partition: int, deleted: int) -> Statement:
        """Of a row that was deleted, most times, by what came before."""
        ago = self._time - deleted
        self._time += 1
        using = f" USING TIMESTAMP {self._time - (ago // STEP_US + 1) * STEP_US}"
        return Statement((Part(table.name, partition, self._insert(table, using)),))

    def _kinds(self, table: Table) -> list[tuple[Callable[[Table], str], float]]:
        has_rows, has_static = bool(table.clustering), bool(table.static)
        return [
            (self._insert, 8 if table.regular else 14),
            (self._update, 8 * bool(table.regular)),
            (self._element, 7 * bool(_multi_cell(table.regular))),
            (self._set_static, 4 * has_static),
            (self._insert_static, 1 * has_static),
            (self._delete_cells, 3 * bool(table.regular)),
            (self._delete_statics, 1 * has_static),
            (self._delete_row, 3),
            (self._delete_range, 2.5 * has_rows),
            (self._delete_partition, 0.6 * has_rows),
        ]

    def _batch(self) -> Statement:
        """Over some tables and partitions; or of many writes to one partition, which make one mutation."""
        if self._pick.random() < 0.5:
            parts = [self._part(self._pick.choice(self._tables)) for _ in range(self._pick.randint(2, 5))]
        else:
            first = self._part(self._pick.choice(self._tables))
            table = next(table for table in self._tables if table.name == first.table)
            others = (self._part(table) for _ in range(self._pick.randint(2, 8)))
            parts = [first, *(part._replace(partition=first.partition) for part in others)]
        return Statement(tuple(parts), batch=self._pick.choice(["", "UNLOGGED"]))

    def _conditional(self, table: Table) -> Statement:
        column = table.regular[0] if table.regular else None
        row = self._row(table)
        texts = [
            f"INSERT INTO $k.{table.name} ({self._names(table, ())}) VALUES ({self._row_values(table)}) IF NOT EXISTS",
            f"DELETE FROM $k.{table.name} WHERE {row} IF EXISTS",
        ]
        if column is not None:
            name, kind = column
            value, other = written(self._pick, kind), kind.literal(self._pick)
            texts += [
                f"UPDATE $k.{table.name} SET {name} = {value} WHERE {row} IF EXISTS",
                f"UPDATE $k.{table.name} SET {name} = {other} WHERE {row} IF {name} != {other}",
            ]
        part = Part(table.name, self._pick.randrange(table.partitions), self._pick.choice(texts))
        return Statement((part,), is_serial=True)

    def _list_element(self, table: Table) -> Statement:
        name, kind = self._pick.choice([one for one in _multi_cell(table.regular) if one[1].name == "list"])
        index, row = self._pick.randrange(3), self._row(table)
        value = kind.parts[0].literal(self._pick)
        text = self._pick.choice(
            [
                f"UPDATE $k.{table.name}{self._using()} SET {name}[{index}] = {value} WHERE {row}",
                f"DELETE {name}[{index}] FROM $k.{table.name}{self._using()} WHERE {row}",
                f"UPDATE $k.{table.name}{self._using()} SET {name} = {name} - [{value}] WHERE {row}",
            ]
        )
        return Statement((Part(table.name, self._pick.randrange(table.partitions), text),), may_be_refused=True)

    def _counter(self, table: Table) -> Statement:
        count = self._pick.choice([1, 1, 1, 3])
        parts = tuple(self._increment(table) for _ in range(count))
        return Statement(parts, batch=None if count == 1 else "COUNTER")

    def _increment(self, table: Table) -> Part:
        """Of counters of different tables' statics, of one column or two."""
        partition, by = self._pick.randrange(table.partitions), self._pick.randint(-3, 9)
        if self._pick.random() < 0.2:
            text = f"UPDATE $k.{table.name} SET total = total + {by} WHERE p = $p"
        else:
            names = self._pick.sample([name for name, _ in table.regular], self._pick.randint(1, 2))
            sets = ", ".join(f"{name} = {name} + {by}" for name in names)
            text = f"UPDATE $k.{table.name} SET {sets} WHERE {self._row(table)}"
        return Part(table.name, partition, text)

    def _insert(self, table: Table, using: str | None = None) -> str:
        columns = self._some(table.regular, least=0)
        more = "".join(f", {written(self._pick, kind)}" for _, kind in columns)
        values = f"({self._row_values(table)}{more})"
        using = self._using(table) if using is None else using
        return f"INSERT INTO $k.{table.name} ({self._names(table, columns)}) VALUES {values}{using}"

    def _update(self, table: Table) -> str:
        sets = ", ".join(f"{name} = {written(self._pick, kind)}" for name, kind in self._some(table.regular))
        return f"UPDATE $k.{table.name}{self._using(table)} SET {sets} WHERE {self._row(table)}"

    def _element(self, table: Table) -> str:
        column = self._pick.choice(_multi_cell(table.regular))
        if self._pick.random() < 0.15:
            return self._delete_element(table, column, self._row(table))
        return f"UPDATE $k.{table.name}{self._using(table)} SET {self._change(*column)} WHERE {self._row(table)}"

    def _set_static(self, table: Table) -> str:
        name, kind = self._pick.choice(table.static)
        change = self._change(name, kind) if kind.is_multi_cell else f"{name} = {written(self._pick, kind)}"
        return f"UPDATE $k.{table.name}{self._using(table)} SET {change} WHERE {table.partition_where}"

    def _insert_static(self, table: Table) -> str:
        """Without clustering: the static row alone; with it: both in one mutation."""
        name, kind = self._pick.choice(table.static)
        value = written(self._pick, kind)
        if self._pick.random() < 0.5:
            names, values = "p, q" if table.is_composite else "p", table.partition_values
        else:
            names, values = self._names(table, ()), self._row_values(table)
        return f"INSERT INTO $k.{table.name} ({names}, {name}) VALUES ({values}, {value}){self._using(table)}"

    def _change(self, name: str, kind: Kind) -> str:
        """An assignment to a column of several cells: as a whole, or some of its cells."""
        pick = self._pick
        if pick.random() < 0.3:
            return f"{name} = {written(pick, kind)}"
        if kind.name == "user":
            field, part = pick.choice(list(zip(kind.fields, kind.parts, strict=True)))
            return f"{name}.{field} = {written(pick, part)}"
        some = kind.of([kind.element(pick)])
        if kind.name == "map":
            key, value = (part.literal(pick) for part in kind.parts)
            value = "null" if pick.random() < 0.2 else value
            changes = [f"{name}[{key}] = {value}", f"{name} = {name} + {some}", f"{name} = {name} - {{{key}}}"]
            return pick.choice(changes)
        if kind.name == "list":
            return pick.choice([f"{name} = {name} + {some}", f"{name} = {some} + {name}"])
        return pick.choice([f"{name} = {name} + {some}", f"{name} = {name} - {some}"])

    def _delete_element(self, table: Table, column: Column, row: str) -> str:
        name, kind = column
        match kind.name:
            case "set" | "map":
                what = f"{name}[{kind.parts[0].literal(self._pick)}]"
            case "user":
                what = f"{name}.{self._pick.choice(kind.fields)}"
            case _:
                what = name
        return f"DELETE {what} FROM $k.{table.name}{self._using()} WHERE {row}"

    def _delete_cells(self, table: Table) -> str:
        names = ", ".join(name for name, _ in self._some(table.regular))
        return f"DELETE {names} FROM $k.{table.name}{self._using()} WHERE {self._row(table)}"

    def _delete_statics(self, table: Table) -> str:
        names = ", ".join(name for name, _ in self._some(table.static))
        return f"DELETE {names} FROM $k.{table.name}{self._using()} WHERE {table.partition_where}"

    def _delete_row(self, table: Table) -> str:
        return f"DELETE FROM $k.{table.name}{self._using()} WHERE {self._row(table)}"

    def _delete_partition(self, table: Table) -> str:
        return f"DELETE FROM $k.{table.name}{self._using()} WHERE {table.partition_where}"

    def _delete_range(self, table: Table) -> str:
        """Equal first columns, then a bound or two of the next; or of several columns at once."""
        fixed = self._pick.randrange(len(table.clustering))
        where = [table.partition_where, *(self._equal(one) for one in table.clustering[:fixed])]
        where += self._bounds(table.clustering[fixed:]) if self._pick.random() < 0.8 else []
        return f"DELETE FROM $k.{table.name}{self._using()} WHERE {' AND '.join(where)}"

    def _bounds(self, of: Sequence[Clustering]) -> list[str]:
        width = self._pick.randint(1, len(of))
        several = width > 1 and self._pick.random() < 0.6
        names = f"({', '.join(one.name for one in of[:width])})" if several else of[0].name

        def value() -> str:
            return f"({', '.join(self._key(one) for one in of[:width])})" if several else self._key(of[0])

        bounds = [BOUNDS] if self._pick.random() < 0.5 else [BOUNDS[:2], BOUNDS[2:]]
        return [f"{names} {self._pick.choice(one)} {value()}" for one in bounds]

    def _row(self, table: Table) -> str:
        return " AND ".join((table.partition_where, *(self._equal(one) for one in table.clustering)))

    def _equal(self, one: Clustering) -> str:
        return f"{one.name} = {self._key(one)}"

    def _key(self, one: Clustering) -> str:
        return one.kind.literal(self._pick)

    def _names(self, table: Table, columns: Sequence[Column]) -> str:
        return ", ".join((table.key_names, *(name for name, _ in columns)))

    def _row_values(self, table: Table) -> str:
        return ", ".join((table.partition_values, *(self._key(one) for one in table.clustering)))

    def _some(self, columns: Sequence[Column], least: int = 1) -> list[Column]:
        count = self._pick.randint(least, min(3, len(columns))) if columns else 0
        return self._pick.sample(list(columns), count)

    def _using(self, table: Table | None = None) -> str:
        """A timestamp, most times; with a table, sometimes how long it lives."""
        said = [f"TIMESTAMP {self._timestamp()}"] if self._pick.random() < 0.96 else []
        if table is not None and self._pick.random() < 0.25:
            said.append(f"TTL {self._pick.choice(TTLS)}")
        return f" USING {' AND '.join(said)}" if said else ""

    def _timestamp(self) -> int:
        chance = self._pick.random()
        if not self._has_ties:
            self._time += 1
            late = self._pick.randrange(LATE_US) // STEP_US * STEP_US if chance < 0.3 else 0
            return self._time - late
        if chance < 0.15:
            return self._pick.choice(self._recent)
        if chance < 0.30:
            return self._time - self._pick.randrange(LATE_US)
        if chance < 0.302:
            return self._time + FAR_AHEAD_US
        self._recent.append(self._time)
        return self._time


def _multi_cell(columns: Sequence[Column]) -> list[Column]:
    return [(name, kind) for name, kind in columns if kind.is_multi_cell]
