"""The tables of a random workload, declared: one for each shape that a merge can go wrong in.

`steady_tables` keep their schema; `tables_of` adds those that change while they are written to. The types of keys
follow from the seed: ten seeds have every one.
"""

from __future__ import annotations

import random
from dataclasses import replace
from typing import TYPE_CHECKING

from dev.verify.model.kinds import (
    BIGINT,
    BLOB,
    DOUBLE,
    INT,
    TEXT,
    Kind,
    frozen,
    list_of,
    map_of,
    native,
    set_of,
    tuple_of,
    user,
    vector_of,
)
from dev.verify.model.tables import NUMBER, Clustering, Column, Table
from dev.verify.model.values import NATIVES, NUMBERED

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

PAIR = user("pair", x=INT, y=TEXT)
NESTED = user("nested", pairs=frozen(list_of(frozen(PAIR))), d=native("decimal"))
SHAPE = user("shape", a=INT, b=TEXT)  # the type that is altered
INNER = user("inner", i=INT, s=TEXT)  # altered too; of columns only
TYPES = (PAIR, NESTED, SHAPE, INNER)
GC_GRACE_SECONDS = 20
BROAD = (60, 70)  # from 64 columns on a subset is a list

FROZEN_KINDS = (
    frozen(PAIR),
    frozen(NESTED),
    frozen(list_of(INT)),
    frozen(set_of(TEXT)),
    frozen(map_of(INT, TEXT)),
    frozen(tuple_of(INT, TEXT, DOUBLE)),
    frozen(list_of(frozen(tuple_of(native("decimal"), native("inet"))))),
)
VECTOR_KINDS = (vector_of(native("float")), vector_of(INT))

PLAIN = Table("plain", 40, regular=(("a", TEXT), ("b", BIGINT), ("c", DOUBLE), ("d", native("boolean")), ("e", INT)))
WIDE = Table(
    "wide",
    6,
    clustering=(Clustering("c1", INT, "DESC"), Clustering("c2", TEXT), Clustering("c3", DOUBLE, "DESC")),
    static=(("st", TEXT), ("sm", set_of(INT)), ("su", PAIR)),
    regular=(("v", TEXT), ("n", INT)),
    weight=3.0,
)
MANY = Table(
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
    weight=3.0,
)
LIVES = Table(
    "lives",
    8,
    clustering=(Clustering("c", INT),),
    static=(("st", TEXT),),
    regular=(("v", TEXT), ("m", map_of(TEXT, INT)), ("s", frozen(set_of(INT)))),
    default_ttl=7,
)
KEYS = Table(
    "keys",
    4,
    clustering=(Clustering("d", native("decimal")), Clustering("i", native("varint"), "DESC")),
    regular=(("v", native("decimal")), ("w", native("varint"))),
)
ODD = Table(
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
    key=(NUMBER, ("q", TEXT)),
)
HOT = Table(
    "hot", 1, clustering=(Clustering("c", INT, "DESC"), Clustering("d", BLOB)), regular=(("v", TEXT), ("n", INT))
)
BARE = Table("bare", 5, clustering=(Clustering("c", native("timeuuid"), "DESC"), Clustering("d", TEXT)), weight=0.5)
HITS = Table(
    "hits",
    5,
    clustering=(Clustering("c", INT),),
    static=(("total", native("counter")),),
    regular=(("n", native("counter")), ("k", native("counter"))),
    is_counter=True,
    weight=0.5,
)
OFF = Table("off", 5, clustering=(Clustering("c", INT),), regular=(("v", TEXT),), is_cdc=False, weight=0.1)
VECTORS = Table("vectors", 5, regular=(("v", vector_of(native("float"))), ("n", INT)), weight=0.3)
TABLES = (PLAIN, WIDE, MANY, LIVES, KEYS, ODD, HOT, BARE, HITS, OFF)

TIMES = Table(
    "times",
    30,
    clustering=(Clustering("c", INT),),
    static=(("st", INT),),
    regular=(("v", TEXT), ("n", INT), ("s", set_of(INT))),
    times="extreme",
)
LARGE = Table(
    "large",
    4,
    clustering=(Clustering("c", BIGINT),),
    regular=(("s", set_of(INT)), ("m", map_of(TEXT, INT)), ("l", list_of(TEXT)), ("fs", frozen(set_of(BIGINT)))),
    weight=0.3,
)


def _broad(columns: int) -> Table:
    kinds = (INT, TEXT, set_of(INT), BIGINT, native("boolean"))
    return Table(
        f"broad{columns}",
        4,
        clustering=(Clustering("c", INT),),
        static=tuple((f"s{at:02}", (INT, TEXT)[at % 2]) for at in range(columns // 30)),
        regular=tuple((f"v{at:02}", kinds[at % len(kinds)]) for at in range(columns)),
        weight=0.4,
    )


def _viewed(version: str) -> Table:
    beside = [
        (
            "CREATE MATERIALIZED VIEW $k.by_n AS SELECT * FROM $k.viewed WHERE p IS NOT NULL AND c IS NOT NULL"
            " AND n IS NOT NULL PRIMARY KEY (n, p, c)"
        ),
        "CREATE INDEX ON $k.viewed (v)",
        "CREATE INDEX ON $k.viewed (s)",
    ]
    if version.startswith("5.0"):
        beside.append("CREATE INDEX viewed_m ON $k.viewed (m) USING 'sai'")
    regular = (("v", TEXT), ("n", INT), ("s", set_of(TEXT)), ("m", BIGINT))
    return Table(
        "viewed", 5, clustering=(Clustering("c", INT, "DESC"),), regular=regular, beside=tuple(beside), weight=0.6
    )


COMPACT = (
    Table("flat", 12, regular=(("a", TEXT), ("b", INT), ("d", DOUBLE)), is_compact=True, weight=0.5),
    Table(
        "dense",
        4,
        clustering=(Clustering("c", INT, "DESC"), Clustering("d", BIGINT)),
        regular=(("v", TEXT),),
        is_compact=True,
        weight=0.5,
    ),
    Table("thin", 4, clustering=(Clustering("c", native("inet")),), is_compact=True, weight=0.5),
)

COLUMNS = Table(
    "columns",
    5,
    clustering=(Clustering("c", INT),),
    static=(("st", TEXT), ("ss", set_of(INT))),
    regular=(("v", TEXT), ("n", INT), ("m", map_of(INT, TEXT)), ("l", list_of(TEXT)), ("f", frozen(PAIR))),
    evolution="columns",
    weight=2.5,
)
DROPS_USER_TYPE = ("u", PAIR)  # of 3.11 alone: later versions refuse the DROP
RECREATED = Table(
    "again",
    5,
    clustering=(Clustering("c", INT),),
    static=(("st", TEXT),),
    regular=(("v", TEXT), ("s", set_of(TEXT))),
    evolution="recreated",
    times="extreme",
    weight=3.0,
)
TYPED = Table(
    "typed",
    5,
    clustering=(Clustering("c", frozen(SHAPE)), Clustering("d", frozen(list_of(frozen(SHAPE))), "DESC")),
    static=(("st", frozen(INNER)),),
    regular=(("v", TEXT), ("u", INNER), ("m", map_of(INT, frozen(INNER)))),
    evolution="types",
    weight=1.5,
)
SWITCHED = Table(
    "switched",
    5,
    clustering=(Clustering("c", INT),),
    static=(("st", TEXT),),
    regular=(("v", TEXT), ("s", set_of(INT))),
    evolution="cdc",
    weight=1.5,
)
PURGED = Table(
    "purged",
    6,
    clustering=(Clustering("c", INT),),
    static=(("st", TEXT),),
    regular=(("v", TEXT), ("s", set_of(INT))),
    gc_grace=GC_GRACE_SECONDS,
    times="rising",
    weight=1.5,
)


def steady_tables(version: str, seed: int = 0) -> tuple[Table, ...]:
    """Those that keep their schema; what this version of Cassandra can have: vectors since 5.0, compact ones before."""
    is_new = version.startswith("5.0")
    more = (VECTORS,) if is_new else COMPACT
    return (*TABLES, *more, TIMES, LARGE, *map(_broad, BROAD), *_keyed(version, seed))


def tables_of(version: str, seed: int = 0) -> tuple[Table, ...]:
    """All: with views and indexes, soon purged, and those that change while they are written to."""
    return (*steady_tables(version, seed), _viewed(version), PURGED, *changing_tables(version))


def changing_tables(version: str) -> tuple[Table, ...]:
    columns = replace(COLUMNS, regular=(*COLUMNS.regular, DROPS_USER_TYPE)) if version == "3.11" else COLUMNS
    return columns, RECREATED, TYPED, SWITCHED


def key_kinds(version: str) -> list[Kind]:
    """The types with a different value for each number, so that they can be a partition key alone."""
    vectors = VECTOR_KINDS if version.startswith("5.0") else ()
    return [*map(native, NUMBERED), *FROZEN_KINDS, *vectors]


def clustering_kinds(version: str) -> list[Kind]:
    others = [native(name) for name in NATIVES if name not in NUMBERED and name != "duration"]
    return [*key_kinds(version), *others]


def _keyed(version: str, seed: int) -> Iterable[Table]:
    """Two tables with a partition key of one type each, one with several, two with clusterings."""
    pick = random.Random(f"keys {seed}")
    ordered = clustering_kinds(version)
    single, other, third = _turn(key_kinds(version), 3, seed)
    orders = _turn(ordered, 8, seed)
    yield Table("key1", 8, key=(("k", single),), regular=(("v", TEXT), ("n", INT)), weight=0.5)
    yield Table(
        "key2",
        8,
        key=(("k", other),),
        clustering=(Clustering("c", pick.choice(ordered)),),
        static=(("st", TEXT),),
        regular=(("v", other),),
        weight=0.6,
    )
    composite: tuple[Column, ...] = (("b", native("boolean")), NUMBER, ("k", third), ("e", native("blob")))
    yield Table("key3", 8, key=composite, clustering=(Clustering("c", TEXT),), regular=(("v", TEXT),), weight=0.5)
    for name, kinds in (("order1", orders[:4]), ("order2", orders[4:])):
        yield Table(
            name, 4, clustering=clusterings(kinds, pick, version), regular=(("v", TEXT), ("n", INT)), weight=0.8
        )


def _turn(kinds: Sequence[Kind], count: int, seed: int) -> list[Kind]:
    """The next so many of the kinds with each seed."""
    return [kinds[(seed * count + at) % len(kinds)] for at in range(count)]


def clusterings(kinds: Sequence[Kind], pick: random.Random, version: str) -> tuple[Clustering, ...]:
    """Columns c1 and on; 3.11 takes no literal of a user type in descending order."""

    def order(kind: Kind) -> str:
        chosen = pick.choice(("ASC", "DESC"))
        return "ASC" if version == "3.11" and kind.user_type else chosen

    return tuple(Clustering(f"c{at}", kind, order(kind)) for at, kind in enumerate(kinds, 1))


def schema(tables: Iterable[Table], replication: str) -> list[str]:
    """The statements that make a keyspace (`$k`) and these tables in it."""
    types = []
    for one in TYPES:
        fields = ", ".join(f"{name} {part.cql}" for name, part in zip(one.fields, one.parts, strict=True))
        types.append(f"CREATE TYPE $k.{one.user_type} ({fields})")
    return [
        f"CREATE KEYSPACE $k WITH replication = {replication}",
        *types,
        *(text for table in tables for text in (table.create(), *table.beside)),
    ]
