"""The parts of a workload: statements, changes of the schema, and programs that stop for a while."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

from dev.verify.model.cql_text import Cql, KeyPart
from dev.verify.model.tables import Table
from dev.verify.model.values import integer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dev.verify.model.values import Value


NO_INCREMENT = integer(0, 8)


class Part(NamedTuple):
    """A statement of one partition of one table, as the table is at that time."""

    # The table as it is at that time.
    table: Table
    # The number of the Cassandra partition.
    partition: int
    # The statement.
    cql: Cql

    def values(self) -> list[Value]:
        key = self.table.key_values(self.partition)
        return [key[term.position] if isinstance(term, KeyPart) else term for term in self.cql.terms]

    def marked(self, keyspace: str) -> str:
        """Return the CQL with a marker for each value."""
        return self.cql.text.replace("$k", keyspace)

    def literal(self, keyspace: str) -> str:
        """Return the CQL with its values."""
        first, *others = self.marked(keyspace).split("?")
        return first + "".join(value.text + text for value, text in zip(self.values(), others, strict=True))


class Statement(NamedTuple):
    """A statement, or a batch of several."""

    # The statements.
    parts: tuple[Part, ...]
    # The word before BATCH; None if it is no batch.
    batch: str | None = None
    # Whether it is conditional.
    is_serial: bool = False
    # Whether it sets an element of a list that may not be there.
    may_be_refused: bool = False
    # Whether it is prepared and its values are bound.
    is_bound: bool = False

    def cql(self, keyspace: str) -> str:
        """Return the CQL with literals. What is bound can be UNSET, which has no literal."""
        return self._render([part.literal(keyspace) for part in self.parts])

    def marked(self, keyspace: str) -> str:
        return self._render([part.marked(keyspace) for part in self.parts])

    def data(self) -> list[object]:
        """Return the values that are bound to the markers."""
        return [value.data for part in self.parts for value in part.values()]

    def script(self, keyspace: str) -> str:
        """Return the statement as a line of a script to read."""
        return f"{self.cql(keyspace)};{' -- prepared, values bound' if self.is_bound else ''}"

    def tables(self) -> frozenset[str]:
        return frozenset(part.table.name for part in self.parts)

    def only(self, table: str, partition: int) -> Statement | None:
        """Return its parts that write to one partition."""
        parts = tuple(part for part in self.parts if (part.table.name, part.partition) == (table, partition))
        return self._replace(parts=parts) if parts else None

    def moved(self, partition: int) -> Statement:
        """The same for another partition."""
        return self._replace(parts=tuple(part._replace(partition=partition) for part in self.parts))

    def is_counter(self) -> bool:
        return all(part.table.is_counter for part in self.parts)

    def without_increments(self) -> Statement:
        """The same increments of counters, each by 0."""
        parts = tuple(part._replace(cql=part.cql.with_increments(NO_INCREMENT)) for part in self.parts)
        return self._replace(parts=parts)

    def _render(self, parts: Sequence[str]) -> str:
        if self.batch is None:
            [text] = parts
            return text
        return f"BEGIN {self.batch} BATCH {'; '.join(parts)}; APPLY BATCH"


class SchemaChange(NamedTuple):
    """A change of tables to which nothing else is being written."""

    # The statements.
    texts: tuple[str, ...]
    # The tables as they are afterwards.
    after: tuple[Table, ...]

    def tables(self) -> frozenset[str]:
        return frozenset(table.name for table in self.after)

    def script(self, keyspace: str) -> str:
        return "\n".join(f"{text.replace('$k', keyspace)};" for text in self.texts)


class Pause(NamedTuple):
    """A program is stopped. Statements go on."""

    # The name of the program.
    program: Literal["publisher", "kafka"]

    def script(self, keyspace: str) -> str:  # noqa: ARG002 - as of the others
        return f"-- SIGSTOP to {self.program}"


class Resume(NamedTuple):
    """A stopped program goes on."""

    # The name of the program.
    program: Literal["publisher", "kafka"]
    # The time for which it was stopped at least, in s.
    seconds: float

    def script(self, keyspace: str) -> str:  # noqa: ARG002 - as of the others
        return f"-- SIGCONT to {self.program}, {self.seconds:.0f} s after its stop"


Item: TypeAlias = Statement | SchemaChange | Pause | Resume
