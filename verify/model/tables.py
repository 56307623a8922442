"""The tables of a random workload, declared: one for each shape that a merge can go wrong in."""

from __future__ import annotations

import struct
from dataclasses import dataclass

from verify.model.kinds import Kind, frozen, list_of, map_of, native, set_of, tuple_of, user, vector_of

INT, TEXT, BLOB, DOUBLE = native("int"), native("text"), native("blob"), native("double")
PAIR = user("pair", x=INT, y=TEXT)
NESTED = user("nested", pairs=frozen(list_of(frozen(PAIR))), d=native("decimal"))
TYPES = (PAIR, NESTED)
SECOND_KEY = "k"  # value of the second partition key column where there is one

Column = tuple[str, Kind]


@dataclass(frozen=True, slots=True)
class Clustering:
    name: str
    kind: Kind
    order: str = "ASC"


@dataclass(frozen=True, slots=True)
class Table:
    """Partitions are numbered: `p int` is the partition key, with `q text` after it if `is_composite`.

    `partitions` is how many the workload writes to, `weight` how often it takes this table.
    """

    name: str
    partitions: int
    clustering: tuple[Clustering, ...] = ()
    static: tuple[Column, ...] = ()
    regular: tuple[Column, ...] = ()
    is_composite: bool = False
    is_counter: bool = False
    is_cdc: bool = True
    default_ttl: int = 0
    weight: float = 1.0

    @property
    def key_names(self) -> str:
        return ", ".join(("p", *("q" for _ in range(self.is_composite)), *(one.name for one in self.clustering)))

    @property
    def partition_where(self) -> str:
        """`$p` stands for the partition's number."""
        return f"p = $p AND q = '{SECOND_KEY}'" if self.is_composite else "p = $p"

    @property
    def partition_values(self) -> str:
        return f"$p, '{SECOND_KEY}'" if self.is_composite else "$p"

    def partition_key(self, number: int) -> bytes:
        """The serialized partition key (org.apache.cassandra.db.marshal.CompositeType where it is of two columns)."""
        key = struct.pack(">i", number)
        if not self.is_composite:
            return key
        parts = (key, SECOND_KEY.encode())
        return b"".join(struct.pack(">H", len(part)) + part + b"\0" for part in parts)

    def create(self) -> str:
        """CREATE TABLE; `$k` stands for the keyspace."""
        columns = ["p int", *(["q text"] if self.is_composite else [])]
        columns += [f"{one.name} {one.kind.cql}" for one in self.clustering]
        columns += [f"{name} {kind.cql} static" for name, kind in self.static]
        columns += [f"{name} {kind.cql}" for name, kind in self.regular]
        key = "(p, q)" if self.is_composite else "p"
        key = ", ".join((key, *(one.name for one in self.clustering)))
        return f"CREATE TABLE $k.{self.name} ({', '.join(columns)}, PRIMARY KEY ({key})) WITH {self._options()}"

    def _options(self) -> str:
        options = [f"cdc = {str(self.is_cdc).lower()}"]
        if self.clustering:
            orders = ", ".join(f"{one.name} {one.order}" for one in self.clustering)
            options.append(f"CLUSTERING ORDER BY ({orders})")
        if self.default_ttl:
            options.append(f"default_time_to_live = {self.default_ttl}")
        return " AND ".join(options)


TABLES = (
    Table(
        "plain",
        40,
        regular=(("a", TEXT), ("b", native("bigint")), ("c", DOUBLE), ("d", native("boolean")), ("e", INT)),
    ),
    Table(
        "wide",
        6,
        clustering=(Clustering("c1", INT, "DESC"), Clustering("c2", TEXT), Clustering("c3", DOUBLE, "DESC")),
        static=(("st", TEXT), ("sm", set_of(INT)), ("su", PAIR)),
        regular=(("v", TEXT), ("n", INT)),
        weight=2.0,
    ),
    Table(
        "many",
        8,
        clustering=(Clustering("c", INT),),
        regular=(
            ("s", set_of(TEXT)),
            ("m", map_of(INT, TEXT)),
            ("l", list_of(INT)),
            ("u", PAIR),
            ("mu", map_of(TEXT, frozen(PAIR))),
            ("fs", frozen(set_of(INT))),
            ("fu", frozen(NESTED)),
        ),
        weight=2.0,
    ),
    Table(
        "lives",
        8,
        clustering=(Clustering("c", INT),),
        static=(("st", TEXT),),
        regular=(("v", TEXT), ("m", map_of(TEXT, INT)), ("s", frozen(set_of(INT)))),
        default_ttl=7,
    ),
    Table(
        "keys",
        4,
        clustering=(Clustering("d", native("decimal")), Clustering("i", native("varint"), "DESC")),
        regular=(("v", native("decimal")), ("w", native("varint"))),
    ),
    Table(
        "odd",
        6,
        clustering=(Clustering("b", BLOB), Clustering("t", TEXT, "DESC")),
        regular=(
            ("tu", tuple_of(INT, TEXT, frozen(tuple_of(DOUBLE, BLOB)))),
            ("du", native("duration")),
            ("bl", BLOB),
            ("fm", frozen(map_of(TEXT, frozen(list_of(frozen(PAIR)))))),
            ("inet", native("inet")),
            ("day", native("date")),
            ("at", native("time")),
            ("ts", native("timestamp")),
            ("id", native("uuid")),
            ("tid", native("timeuuid")),
            ("ti", native("tinyint")),
            ("si", native("smallint")),
            ("fl", native("float")),
            ("asci", native("ascii")),
            ("bo", native("boolean")),
        ),
        is_composite=True,
    ),
    Table(
        "hot", 1, clustering=(Clustering("c", INT, "DESC"), Clustering("d", BLOB)), regular=(("v", TEXT), ("n", INT))
    ),
    Table("bare", 5, clustering=(Clustering("c", native("timeuuid"), "DESC"), Clustering("d", TEXT)), weight=0.5),
    Table(
        "hits",
        5,
        clustering=(Clustering("c", INT),),
        static=(("total", native("counter")),),
        regular=(("n", native("counter")), ("k", native("counter"))),
        is_counter=True,
        weight=0.5,
    ),
    Table("off", 5, clustering=(Clustering("c", INT),), regular=(("v", TEXT),), is_cdc=False, weight=0.1),
)
VECTORS = Table("vectors", 5, regular=(("v", vector_of(native("float"))), ("n", INT)), weight=0.3)


def tables_of(version: str) -> tuple[Table, ...]:
    """What this version of Cassandra can have: vectors since 5.0."""
    return (*TABLES, VECTORS) if version == "5.0" else TABLES


def schema(tables: tuple[Table, ...], replication: str) -> list[str]:
    """The statements that make a keyspace (`$k`) and these tables in it."""
    types = []
    for one in TYPES:
        fields = ", ".join(f"{name} {part.cql}" for name, part in zip(one.fields, one.parts, strict=True))
        types.append(f"CREATE TYPE $k.{one.user_type} ({fields})")
    return [
        f"CREATE KEYSPACE $k WITH replication = {replication}",
        *types,
        *(table.create() for table in tables),
    ]
