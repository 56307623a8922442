"""A table of a random workload: what CREATE TABLE says, and the values of its partitions' keys."""

from __future__ import annotations

import struct
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, TypeAlias

from dev.verify.model.cql_text import Cql, KeyPart, cql, joined
from dev.verify.model.kinds import BLOB, INT, Kind
from dev.verify.model.values import Value

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

Column: TypeAlias = tuple[str, Kind]
NUMBER: Column = ("p", INT)
EMPTY_BLOB = Value("0x", b"")

Evolution: TypeAlias = Literal["", "columns", "recreated", "types", "cdc"]
Times: TypeAlias = Literal["", "rising", "extreme"]


@dataclass(frozen=True, slots=True)
class Clustering:
    """A clustering column."""

    # The name.
    name: str
    # The type.
    kind: Kind
    # ASC or DESC.
    order: str = "ASC"


@dataclass(frozen=True, slots=True)
class Table:
    """One table. Its Cassandra partitions are numbered: each number has a partition key of its own."""

    # The name.
    name: str
    # The number of Cassandra partitions that the workload writes to.
    partitions: int
    # The clustering columns.
    clustering: tuple[Clustering, ...] = ()
    # The static columns.
    static: tuple[Column, ...] = ()
    # The regular columns.
    regular: tuple[Column, ...] = ()
    # The columns of the partition key.
    key: tuple[Column, ...] = (NUMBER,)
    # Whether its regular columns are counters.
    is_counter: bool = False
    # Whether CDC is on.
    is_cdc: bool = True
    # Whether it is a compact table.
    is_compact: bool = False
    # The default time to live, in s; 0 for none.
    default_ttl: int = 0
    # The gc_grace_seconds; None for Cassandra's default.
    gc_grace: int | None = None
    # The kind of schema changes while it is written to.
    evolution: Evolution = ""
    # The kind of timestamps that its writes have.
    times: Times = ""
    # Statements after CREATE TABLE, of indexes and views.
    beside: tuple[str, ...] = ()
    # How often the workload takes this table, in proportion to others.
    weight: float = 1.0
    # Whether the workload truncates it.
    is_truncated: bool = True

    @property
    def key_names(self) -> list[str]:
        return [name for name, _ in self.key]

    @property
    def row_names(self) -> list[str]:
        return [*self.key_names, *(one.name for one in self.clustering)]

    @property
    def partition_where(self) -> Cql:
        return joined(" AND ", (cql("{} = {}", name, KeyPart(at)) for at, name in enumerate(self.key_names)))

    @property
    def partition_terms(self) -> list[KeyPart]:
        return [KeyPart(at) for at in range(len(self.key))]

    @property
    def must_have_value(self) -> bool:
        """Whether CQL refuses a row without a value: a compact table of one column beside the clustering."""
        return self.is_compact and bool(self.clustering and self.regular)

    @property
    def is_static_compact(self) -> bool:
        """A compact table without clustering columns: 4.0 and 4.1 refuse a conditional DELETE of its rows."""
        return self.is_compact and not self.clustering

    @property
    def least_columns(self) -> int:
        """Return how many columns an INSERT names at least beside the key's."""
        return int(self.is_compact and bool(self.regular))

    @property
    def has_ranges(self) -> bool:
        """Whether CQL deletes ranges of rows; of compact tables only whole prefixes."""
        return bool(self.clustering) and not self.is_compact

    def key_values(self, number: int) -> list[Value]:
        """Return the key's values. In a key of several columns a blob is sometimes empty; a single column cannot be."""
        can_be_empty = len(self.key) > 1 and number % 4 == 0
        return [EMPTY_BLOB if can_be_empty and kind == BLOB else kind.numbered(number) for _, kind in self.key]

    def partition_key(self, number: int) -> bytes:
        """The serialized partition key (CompositeType where it is of several columns)."""
        parts = [value.bytes for value in self.key_values(number)]
        return parts[0] if len(parts) == 1 else b"".join(struct.pack(">H", len(part)) + part + b"\0" for part in parts)

    def create(self) -> str:
        """CREATE TABLE; `$k` stands for the keyspace."""
        columns = [f"{name} {kind.cql}" for name, kind in self.key]
        columns += [f"{one.name} {one.kind.cql}" for one in self.clustering]
        columns += [f"{name} {kind.cql} static" for name, kind in self.static]
        columns += [f"{name} {kind.cql}" for name, kind in self.regular]
        key = ", ".join((f"({', '.join(self.key_names)})", *(one.name for one in self.clustering)))
        return f"CREATE TABLE $k.{self.name} ({', '.join(columns)}, PRIMARY KEY ({key})) WITH {self._options()}"

    def _options(self) -> str:
        options = ["COMPACT STORAGE"] if self.is_compact else []
        options.append(f"cdc = {str(self.is_cdc).lower()}")
        if self.clustering:
            orders = ", ".join(f"{one.name} {one.order}" for one in self.clustering)
            options.append(f"CLUSTERING ORDER BY ({orders})")
        if self.default_ttl:
            options.append(f"default_time_to_live = {self.default_ttl}")
        if self.gc_grace is not None:
            options.append(f"gc_grace_seconds = {self.gc_grace}")
        return " AND ".join(options)

    def user_types(self) -> set[str]:
        return {name for kind in self.kinds() for name in kind.user_types()}

    def kinds(self) -> Iterable[Kind]:
        yield from (kind for _, kind in (*self.key, *self.static, *self.regular))
        yield from (one.kind for one in self.clustering)

    def with_user_type(self, changed: Kind) -> Table:
        """The table after ALTER TYPE."""

        def columns(of: Sequence[Column]) -> tuple[Column, ...]:
            return tuple((name, kind.with_user_type(changed)) for name, kind in of)

        return replace(
            self,
            key=columns(self.key),
            clustering=tuple(replace(one, kind=one.kind.with_user_type(changed)) for one in self.clustering),
            static=columns(self.static),
            regular=columns(self.regular),
        )
