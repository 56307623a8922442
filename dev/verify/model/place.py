"""Find the place of a problem: the table and the partition that its line names."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from dev.local_stack.clients.compare import from_driver

if TYPE_CHECKING:
    from collections.abc import Iterable

    from dev.local_stack.clients.compare import Plain
    from dev.local_stack.clients.cql import TableColumns
    from dev.verify.model.tables import Table

PROTOCOL = 4
_FORMER = re.compile(r"\w+\.(\w+)(?:-v\d+)? (?:.*, )?p=(\d+)\b")  # a row of a key that the table has no more


class TablePartition(NamedTuple):
    """The place of a problem."""

    # The name of the table.
    table: str
    # The number of the Cassandra partition.
    partition: int


class Places:
    """Finds the partitions of tables, as they are now, in lines that begin with a table's name and a row's key."""

    def __init__(self, keyspace: str, tables: Iterable[tuple[Table, TableColumns]], partitions: int = 0) -> None:
        """`partitions`: how many of each, where they are more than the table's own."""
        self._starts = {
            f"{keyspace}.{table.name} ({', '.join(map(repr, plain_key(table, columns, number)))}": TablePartition(
                table.name, number
            )
            for table, columns in tables
            for number in range(max(table.partitions, partitions))
        }

    def of(self, problem: str) -> TablePartition | None:
        """None for a problem of no single partition."""
        for start, place in self._starts.items():
            if problem.startswith((f"{start},", f"{start})")):
                return place
        former = _FORMER.match(problem)
        return TablePartition(former[1], int(former[2])) if former else None


def plain_key(table: Table, columns: TableColumns, number: int) -> tuple[Plain, ...]:
    """The partition key of a number, as the comparison has it."""
    values = zip(table.key_names, table.key_values(number), strict=True)
    kinds = [(columns.types[name], value) for name, value in values]
    return tuple(from_driver(kind, kind.from_binary(value.data, PROTOCOL)) for kind, value in kinds)
