"""The statements that write to one partition of one table, each kind as often as it has a weight."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dev.verify.model.cql_text import Cql, cql, joined
from dev.verify.model.kinds import set_of, written
from dev.verify.model.statement import Part
from dev.verify.model.values import EMPTY, NULL, Value, integer, timestamp

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Sequence

    from dev.verify.model.kinds import Kind
    from dev.verify.model.tables import Clustering, Column, Table
    from dev.verify.model.times import Times

BOUNDS = (">", ">=", "<", "<=")
MANY_ELEMENTS = (100, 400)


class Writes:
    """Parts with what `pick` chooses; `is_bound` says that their values will be bound, so that they can be unset."""

    def __init__(self, pick: random.Random, times: Times, *, is_negative_partition_deletion_safe: bool = True) -> None:
        self._pick = pick
        self._times = times
        self._can_delete_extremely = is_negative_partition_deletion_safe
        self.is_bound = False

    def part(self, table: Table, partition: int | None = None) -> tuple[Part, bool]:
        """Return a part, and whether it deletes a range or a partition."""
        kind = self._pick.choices(*zip(*self._kinds(table), strict=True))[0]
        number = self._pick.randrange(table.partitions) if partition is None else partition
        return Part(table, number, kind(table)), kind in (self._delete_range, self.delete_partition)

    def _kinds(self, table: Table) -> list[tuple[Callable[[Table], Cql], float]]:
        has_rows, has_static = bool(table.clustering), bool(table.static)
        return [
            (self.insert, 8 if table.regular else 14),
            (self._update, 8 * bool(table.regular)),
            (self._element, 7 * bool(multi_cell(table.regular))),
            (self._many_elements, 5 * (table.name == "large")),
            (self._set_static, 4 * has_static),
            (self._insert_static, 1 * has_static),
            (self._delete_cells, 3 * bool(table.regular)),
            (self._delete_statics, 1 * has_static),
            (self._delete_row, 3),
            (self._delete_range, 2.5 * table.has_ranges),
            (self.delete_partition, 0.6 * has_rows),
        ]

    def insert(self, table: Table, using: Cql | None = None) -> Cql:
        columns = self._some(table, least=table.least_columns)
        if len(table.regular) > 20 and self._pick.random() < 0.3:
            columns = self._pick.sample(table.regular, self._pick.randint(len(table.regular) - 8, len(table.regular)))
        values = [self._filled(table, kind) for _, kind in columns]
        using = self._using(table, can_expire=True) if using is None else using
        names = ", ".join([*table.row_names, *(name for name, _ in columns)])
        return cql("INSERT INTO $k.{} ({}) VALUES ({}){}", table.name, names, self._values(table, values), using)

    def inserted_if_absent(self, table: Table) -> Cql:
        columns = self._some(table, least=table.least_columns)
        values = [kind.value(self._pick) for _, kind in columns]
        names = ", ".join([*table.row_names, *(name for name, _ in columns)])
        ttl = cql(" USING {}", self._times.ttl()) if self._pick.random() < 0.3 else Cql("")
        inserted = cql("INSERT INTO $k.{} ({}) VALUES ({})", table.name, names, self._values(table, values))
        return cql("{} IF NOT EXISTS{}", inserted, ttl)

    def insert_at(self, table: Table, microseconds: int) -> Cql:
        return self.insert(table, cql(" USING TIMESTAMP {}", timestamp(microseconds)))

    def delete_partition_at(self, table: Table, microseconds: int) -> Cql:
        using = cql(" USING TIMESTAMP {}", timestamp(microseconds))
        return cql("DELETE FROM $k.{}{} WHERE {}", table.name, using, table.partition_where)

    def row(self, table: Table) -> Cql:
        return joined(" AND ", (table.partition_where, *(self._equal(table, one) for one in table.clustering)))

    def list_element(self, table: Table) -> Cql:
        """Return a write of a list's element by index, or by value. The node reads before it writes."""
        name, kind = self._pick.choice([one for one in multi_cell(table.regular) if one[1].name == "list"])
        index, value, row = integer(self._pick.randrange(3)), kind.parts[0].value(self._pick), self.row(table)
        using = self._using(table)
        match self._pick.randrange(3):
            case 0:
                return cql("UPDATE $k.{}{} SET {}[{}] = {} WHERE {}", table.name, using, name, index, value, row)
            case 1:
                return cql("DELETE {}[{}] FROM $k.{}{} WHERE {}", name, index, table.name, using, row)
        taken = kind.of([(value,)])
        return cql("UPDATE $k.{}{} SET {} = {} - {} WHERE {}", table.name, using, name, name, taken, row)

    def increment(self, table: Table) -> Part:
        """Increments a static counter, or one or two counters of a row."""
        number = self._pick.randrange(table.partitions)
        by = Value(str(count := self._pick.randint(-3, 9)), count.to_bytes(8, "big", signed=True))
        if self._pick.random() < 0.2:
            where = table.partition_where
            return Part(table, number, cql("UPDATE $k.{} SET total = total + {} WHERE {}", table.name, by, where))
        names = self._pick.sample([name for name, _ in table.regular], self._pick.randint(1, 2))
        sets = joined(", ", (cql("{} = {} + {}", name, name, by) for name in names))
        return Part(table, number, cql("UPDATE $k.{} SET {} WHERE {}", table.name, sets, self.row(table)))

    def _update(self, table: Table) -> Cql:
        sets = [cql("{} = {}", name, self._filled(table, kind)) for name, kind in self._some(table)]
        using = self._using(table, can_expire=True)
        return cql("UPDATE $k.{}{} SET {} WHERE {}", table.name, using, joined(", ", sets), self.row(table))

    def _element(self, table: Table) -> Cql:
        column, row = self._pick.choice(multi_cell(table.regular)), self.row(table)
        if self._pick.random() < 0.15:
            return self._delete_element(table, column, row)
        using = self._using(table, can_expire=True)
        return cql("UPDATE $k.{}{} SET {} WHERE {}", table.name, using, self._change(*column), row)

    def _many_elements(self, table: Table) -> Cql:
        """Hundreds at once, in place of the collection or added to it."""
        name, kind = self._pick.choice(table.regular)
        numbers = self._pick.sample(range(1_000), self._pick.randint(*MANY_ELEMENTS))
        value = kind.of(tuple(part.numbered(number) for part in kind.parts) for number in numbers)
        is_added = kind.is_multi_cell and self._pick.random() < 0.5
        change = cql("{} = {} + {}", name, name, value) if is_added else cql("{} = {}", name, value)
        using = self._using(table, can_expire=True)
        return cql("UPDATE $k.{}{} SET {} WHERE {}", table.name, using, change, self.row(table))

    def _set_static(self, table: Table) -> Cql:
        name, kind = self._pick.choice(table.static)
        change = self._change(name, kind) if kind.is_multi_cell else cql("{} = {}", name, self._written(kind))
        using = self._using(table, can_expire=True)
        return cql("UPDATE $k.{}{} SET {} WHERE {}", table.name, using, change, table.partition_where)

    def _insert_static(self, table: Table) -> Cql:
        """Return an INSERT of a static column. Without clustering it writes the static row alone; with it, both in one
        mutation.
        """
        name, kind = self._pick.choice(table.static)
        value = self._written(kind)
        if self._pick.random() < 0.5:
            names, values = table.key_names, joined(", ", (*table.partition_terms, value))
        else:
            names, values = table.row_names, self._values(table, [value])
        using = self._using(table)
        return cql("INSERT INTO $k.{} ({}) VALUES ({}){}", table.name, ", ".join([*names, name]), values, using)

    def _change(self, name: str, kind: Kind) -> Cql:
        """An assignment to a column of several cells: as a whole, or some of its cells."""
        pick = self._pick
        if pick.random() < 0.3:
            return cql("{} = {}", name, self._written(kind))
        if kind.name == "user":
            field, part = pick.choice(list(zip(kind.fields, kind.parts, strict=True)))
            return cql("{}.{} = {}", name, field, self._written(part))
        some = kind.of([kind.element(pick)])
        match pick.randrange(3):
            case 0 if kind.name == "map":
                value = NULL if pick.random() < 0.2 else self._written(kind.parts[1])
                return cql("{}[{}] = {}", name, kind.parts[0].value(pick), value)
            case 1 if kind.name != "list":
                return cql("{} = {} - {}", name, name, set_of(kind.parts[0]).of([(kind.parts[0].value(pick),)]))
            case 1:
                return cql("{} = {} + {}", name, some, name)
        return cql("{} = {} + {}", name, name, some)

    def _delete_element(self, table: Table, column: Column, row: Cql) -> Cql:
        name, kind = column
        match kind.name:
            case "set" | "map":
                what = cql("{}[{}]", name, kind.parts[0].value(self._pick))
            case "user":
                what = Cql(f"{name}.{self._pick.choice(kind.fields)}")
            case _:
                what = Cql(name)
        return cql("DELETE {} FROM $k.{}{} WHERE {}", what, table.name, self._using(table), row)

    def _delete_cells(self, table: Table) -> Cql:
        names = ", ".join(name for name, _ in self._some(table))
        return cql("DELETE {} FROM $k.{}{} WHERE {}", names, table.name, self._using(table), self.row(table))

    def _delete_statics(self, table: Table) -> Cql:
        names = ", ".join(name for name, _ in _sample(self._pick, table.static))
        return cql("DELETE {} FROM $k.{}{} WHERE {}", names, table.name, self._using(table), table.partition_where)

    def _delete_row(self, table: Table) -> Cql:
        return cql("DELETE FROM $k.{}{} WHERE {}", table.name, self._using(table), self.row(table))

    def delete_partition(self, table: Table) -> Cql:
        using = self._times.using(table, can_be_extreme=self._can_delete_extremely)
        return cql("DELETE FROM $k.{}{} WHERE {}", table.name, using, table.partition_where)

    def _delete_range(self, table: Table) -> Cql:
        """Equal first columns, then a bound or two of the next; or of several columns at once."""
        fixed = self._pick.randrange(len(table.clustering))
        where = [table.partition_where, *(self._equal(table, one) for one in table.clustering[:fixed])]
        where += self._bounds(table, table.clustering[fixed:]) if self._pick.random() < 0.8 else []
        is_whole = len(where) == 1
        using = self._using(table, can_be_extreme=self._can_delete_extremely or not is_whole)
        return cql("DELETE FROM $k.{}{} WHERE {}", table.name, using, joined(" AND ", where))

    def _bounds(self, table: Table, of: Sequence[Clustering]) -> list[Cql]:
        width = self._pick.randint(1, len(of))
        several = width > 1 and self._pick.random() < 0.6
        names = f"({', '.join(one.name for one in of[:width])})" if several else of[0].name

        def value() -> Cql | Value:
            if several:
                return cql("({})", joined(", ", (self._key(table, one) for one in of[:width])))
            return self._key(table, of[0])

        bounds = [BOUNDS] if self._pick.random() < 0.5 else [BOUNDS[:2], BOUNDS[2:]]
        return [cql("{} {} {}", names, self._pick.choice(one), value()) for one in bounds]

    def _equal(self, table: Table, one: Clustering) -> Cql:
        return cql("{} = {}", one.name, self._key(table, one))

    def _key(self, table: Table, one: Clustering) -> Value:
        """One of few, so that rows meet; now and then the empty value, which compact tables refuse."""
        if one.kind.name in EMPTY and not table.is_compact and self._pick.random() < 0.02:
            return EMPTY[one.kind.name]
        value = one.kind.value(self._pick)
        is_taken_for_a_set = one.kind.name == "map" and value.text == "{}"  # in a key Cassandra fails at this literal
        if is_taken_for_a_set or self._pick.random() < 0.2:
            return one.kind.numbered(self._pick.randrange(3))
        return value

    def _values(self, table: Table, more: Sequence[Value]) -> Cql:
        return joined(", ", (*table.partition_terms, *(self._key(table, one) for one in table.clustering), *more))

    def _some(self, table: Table, least: int = 1) -> list[Column]:
        if table.must_have_value:
            return list(table.regular)
        return _sample(self._pick, table.regular, least)

    def _written(self, kind: Kind) -> Value:
        return written(self._pick, kind, can_be_unset=self.is_bound)

    def _filled(self, table: Table, kind: Kind) -> Value:
        """A value that is written; one that is there where CQL wants it."""
        return kind.value(self._pick) if table.must_have_value else self._written(kind)

    def _using(self, table: Table, *, can_expire: bool = False, can_be_extreme: bool = True) -> Cql:
        return self._times.using(table, can_expire=can_expire, can_be_extreme=can_be_extreme, is_bound=self.is_bound)


def _sample(pick: random.Random, columns: Sequence[Column], least: int = 1) -> list[Column]:
    count = pick.randint(least, min(3, len(columns))) if columns else 0
    return pick.sample(list(columns), count)


def multi_cell(columns: Sequence[Column]) -> list[Column]:
    return [(name, kind) for name, kind in columns if kind.is_multi_cell]


def scalars(columns: Sequence[Column]) -> list[Column]:
    """Those that conditions compare in every version."""
    return [(name, kind) for name, kind in columns if not kind.parts and kind.name != "duration"]
