"""Conditional statements: of rows, of statics, and batches of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dev.verify.model.cql_text import Cql, cql
from dev.verify.model.kinds import written
from dev.verify.model.statement import Part, Statement
from dev.verify.model.writes import scalars

if TYPE_CHECKING:
    import random

    from dev.verify.model.kinds import Kind
    from dev.verify.model.tables import Column, Table
    from dev.verify.model.times import Times
    from dev.verify.model.writes import Writes


class Conditions:
    """Statements whose time is Paxos's; a part of them has a TTL."""

    def __init__(self, pick: random.Random, times: Times, writes: Writes) -> None:
        self._pick = pick
        self._times = times
        self._writes = writes

    def statement(self, table: Table) -> Statement:
        partition = self._pick.randrange(table.partitions)
        if table.clustering and self._pick.random() < 0.4:
            return self._batch(table, partition)
        is_bound = self._writes.is_bound
        return Statement((Part(table, partition, self._single(table)),), is_serial=True, is_bound=is_bound)

    def _single(self, table: Table) -> Cql:
        statics = [self._update(table, column, table.partition_where) for column in scalars(table.static)[:1]]
        return self._pick.choice([*self._of_row(table), *statics])

    def _of_row(self, table: Table) -> list[Cql]:
        choices = [self._writes.inserted_if_absent(table)]
        if not table.must_have_value and not table.is_static_compact:
            choices.append(cql("DELETE FROM $k.{} WHERE {} IF EXISTS", table.name, self._writes.row(table)))
        return choices + [self._update(table, column, self._writes.row(table)) for column in scalars(table.regular)[:1]]

    def _update(self, table: Table, column: Column, where: Cql) -> Cql:
        name, kind = column
        ttl = cql(" USING {}", self._times.ttl()) if self._pick.random() < 0.3 else Cql("")
        condition = "EXISTS" if self._pick.random() < 0.5 else self._differs(name, kind)
        value = kind.value(self._pick) if table.must_have_value else written(self._pick, kind)
        return cql("UPDATE $k.{}{} SET {} = {} WHERE {} IF {}", table.name, ttl, name, value, where, condition)

    def _differs(self, name: str, kind: Kind) -> Cql:
        return cql("{} != {}", name, kind.value(self._pick))

    def _batch(self, table: Table, partition: int) -> Statement:
        """A condition or two, of a static where there is one, and more writes to the partition."""
        conditional = [self._pick.choice(self._of_row(table))]
        statics = scalars(table.static)
        if statics:
            name, kind = statics[0]
            value, where = kind.value(self._pick), table.partition_where
            static = cql(
                "UPDATE $k.{} SET {} = {} WHERE {} IF {}", table.name, name, value, where, self._differs(name, kind)
            )
            conditional = [static] if self._pick.random() < 0.7 else [static, *conditional]
        others = [self._writes.insert(table, Cql("")) for _ in range(self._pick.randint(1, 3))]
        others.append(cql("DELETE FROM $k.{} WHERE {}", table.name, self._writes.row(table)))
        parts = tuple(Part(table, partition, statement) for statement in (*conditional, *others))
        batch = self._pick.choice(("", "UNLOGGED"))
        return Statement(parts, batch=batch, is_serial=True, is_bound=self._writes.is_bound)
