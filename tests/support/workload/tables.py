"""Tables of every kind that CQL can make, as data: the same for a version and a seed, whatever runs over them."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from cassandra_storage.formats.types.cql_types import UserTypeDefinition, type_text
from cassandra_storage.formats.types.marshal import CqlType, TupleType, UserType, VectorType
from dev.verify.oracle.type_values import COMPARABLE, KEYSPACE, NATIVES, USER_TYPES, TypeValues

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

COMMON_KEY = {"id": "int"}  # one partition key for most tables, so that one mutation can be of several
VECTORS = ("vector<float, 3>", "vector<text, 2>", "vector<frozen<list<int>>, 2>")
DEEP = 35  # clustering columns: their header is one for each 32
BROAD = 70  # columns: from 64 on a subset is a list
RANDOM_TABLES = 4
COMPACT = "COMPACT STORAGE"

EVOLVING = UserTypeDefinition(KEYSPACE, "evolving", ("a", "b"), ("int", "text"))
TYPES = {**USER_TYPES, EVOLVING.name: EVOLVING}


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def create_types() -> Iterator[str]:
    for type_ in TYPES.values():
        fields = zip(map(quoted, type_.field_names), type_.field_types, strict=True)
        yield f"CREATE TYPE {quoted(type_.name)} ({', '.join(map(' '.join, fields))})"


@dataclass(slots=True)
class Table:
    """Columns by name with their CQL types, in the order of the key; `descending` are clustering columns."""

    name: str
    partition_key: dict[str, str] = field(default_factory=lambda: dict(COMMON_KEY))
    clustering: dict[str, str] = field(default_factory=dict)
    statics: dict[str, str] = field(default_factory=dict)
    regulars: dict[str, str] = field(default_factory=dict)
    descending: frozenset[str] = frozenset()
    options: str = ""
    cdc: bool = True
    has_views: bool = False

    @property
    def is_compact(self) -> bool:
        return COMPACT in self.options

    @property
    def is_counter(self) -> bool:
        return "counter" in {*self.regulars.values(), *self.statics.values()}

    @property
    def key(self) -> dict[str, str]:
        return self.partition_key | self.clustering

    def create(self) -> str:
        columns = [f"{quoted(name)} {type_}" for name, type_ in self.key.items()]
        columns += [f"{quoted(name)} {type_} static" for name, type_ in self.statics.items()]
        columns += [f"{quoted(name)} {type_}" for name, type_ in self.regulars.items()]
        partition = ", ".join(map(quoted, self.partition_key))
        primary = ", ".join([f"({partition})", *map(quoted, self.clustering)])
        options = [self.options] if self.options else []
        if self.descending:
            order = ", ".join(f"{quoted(name)} {self._order(name)}" for name in self.clustering)
            options.append(f"CLUSTERING ORDER BY ({order})")
        options += ["cdc = true"] if self.cdc else []
        with_ = f" WITH {' AND '.join(options)}" if options else ""
        return f"CREATE TABLE {quoted(self.name)} ({', '.join(columns)}, PRIMARY KEY ({primary})){with_}"

    def _order(self, name: str) -> str:
        return "DESC" if name in self.descending else "ASC"


def tables(version: str, seed: int) -> list[Table]:
    """`version`: a line of dev.local_stack.servers.cassandra_versions."""
    has_vectors = version.startswith("5.0")
    natives = {f"v_{one}": one for one in NATIVES} | (
        {f"v{i}": one for i, one in enumerate(VECTORS)} if has_vectors else {}
    )
    keys = {f"k_{one}": one for one in COMPARABLE}
    return [
        Table(
            "natives",
            clustering={"c": "int"},
            statics={f"s_{name}": one for name, one in natives.items()},
            regulars=natives,
        ),
        Table("ordered", clustering=keys, regulars={"v": "text"}, descending=frozenset(list(keys)[::2])),
        Table("keys", {f"p_{one}": one for one in COMPARABLE}, {"c": "int"}, {"s": "int"}, {"v": "int"}),
        Table(
            "deep",
            clustering={f"c{i:02}": ("int", "text", "boolean")[i % 3] for i in range(DEEP)},
            regulars={"v": "int"},
            descending=frozenset(f"c{i:02}" for i in range(0, DEEP, 5)),
        ),
        Table(
            "broad",
            clustering={"c": "int"},
            statics={f"s{i:02}": "int" for i in range(BROAD)},
            regulars={f"v{i:02}": ("int", "text", "set<int>")[i % 31 % 3] for i in range(BROAD)},
        ),
        Table("collections", clustering={"c": "text"}, statics=_collections("s"), regulars=_collections("v")),
        *_random_tables(seed, has_vectors=has_vectors),
        Table("only_keys", clustering={"c": "int"}),
        Table("no_clustering", regulars={"v": "text", "m": "map<text, int>"}),
        Table("without_cdc", clustering={"c": "int"}, statics={"s": "int"}, regulars={"v": "blob"}, cdc=False),
        Table("Quoted", clustering={"C c": "int"}, regulars={"ä€": "int", 'q"q': "text", "Z": "int"}),
        Table(
            "counters", clustering={"c": "text"}, statics={"s": "counter"}, regulars={"n": "counter", "o": "counter"}
        ),
        Table("viewed", clustering={"c": "int"}, regulars={"v": "int", "w": "text", "x": "int"}, has_views=True),
        Table(
            "altered",
            clustering={"c": "int"},
            statics={"s": "int", "gone_s": "text"},
            regulars={
                "gone": "int",
                "gone_m": "map<int, text>",
                "kept": "text",
                "u": "evolving",
                "us": "set<frozen<evolving>>",
            },
        ),
        Table(
            "made",
            clustering={"c": "text"},
            statics={"s": "int", "sm": "set<int>"},
            regulars={"v": "int", "w": "text", "b": "blob", "m": "set<int>"},
        ),
        Table("doomed", clustering={"c": "int"}, regulars={"v": "int"}),
        Table("compact", clustering={"c": "int", "d": "text"}, regulars={"v": "text"}, options=COMPACT),
        Table("compact_static", regulars={"v": "text", "w": "int"}, options=COMPACT),
        Table("compact_keys", clustering={"c": "int"}, options=COMPACT),
        Table("compact_counters", clustering={"c": "int"}, regulars={"n": "counter"}, options=COMPACT),
    ]


def _collections(prefix: str) -> dict[str, str]:
    types = {
        "l": "list<text>",
        "s": "set<varint>",
        "m": "map<text, bigint>",
        "mm": "map<uuid, frozen<map<text, int>>>",
        "u": "point",
        "fl": "frozen<list<int>>",
        "fs": "frozen<set<text>>",
        "fm": "frozen<map<inet, text>>",
        "fu": 'frozen<"Odd name">',
        "t": "frozen<tuple<int, text, frozen<list<int>>>>",
        "plain": "int",
    }
    return {f"{prefix}_{name}": type_ for name, type_ in types.items()}


def _random_tables(seed: int, *, has_vectors: bool) -> Iterator[Table]:
    """Keys and columns of random types."""
    for number in range(RANDOM_TABLES):
        rng = random.Random(f"{seed} table {number}")
        values = TypeValues(rng, is_plain=False)

        def frozen(count: int, prefix: str, natives: Iterable[str], values: TypeValues = values) -> dict[str, str]:
            types = (_drawn(values, tuple(natives), has_vectors=has_vectors) for _ in range(count))
            return {f"{prefix}{i}": type_text(one) for i, one in enumerate(types)}

        clustering = frozen(rng.randint(1, 3), "c", COMPARABLE)
        regulars = frozen(rng.randint(1, 4), "v", NATIVES)
        for i in range(2):
            regulars[f"m{i}"] = type_text(_drawn(values, NATIVES, has_vectors=has_vectors, is_multi_cell=True))
        yield Table(
            f"random{number}",
            frozen(rng.randint(1, 2), "p", COMPARABLE),
            clustering,
            frozen(rng.randint(0, 2), "s", NATIVES),
            regulars,
            frozenset(name for name in clustering if rng.random() < 0.5),
        )


def _drawn(values: TypeValues, natives: tuple[str, ...], *, has_vectors: bool, is_multi_cell: bool = False) -> CqlType:
    while True:
        type_ = values.multi_cell_type(natives) if is_multi_cell else values.type(natives)
        if has_vectors or not has_vector(type_):
            return type_


def has_vector(type_: CqlType) -> bool:
    inner = [getattr(type_, name, None) for name in ("elements", "keys", "values")]
    if isinstance(type_, TupleType):
        inner += type_.types
    if isinstance(type_, UserType):
        inner += type_.field_types
    return isinstance(type_, VectorType) or any(has_vector(one) for one in inner if one is not None)
