"""Everything that CQL can write, for one version and seed: the schema, how it changes, and statements without end."""

from __future__ import annotations

import random
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

from cassandra_storage.formats.types.cql_types import parse_type
from dev.verify.oracle.type_values import KEYSPACE
from tests.support.workload.statements import FRESH, Draw, Shape, Value, shapes
from tests.support.workload.tables import EVOLVING, TYPES, Table, create_types, quoted, tables

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cassandra_storage.formats.types.marshal import CqlType

_OF_KEY = "WHERE c IS NOT NULL AND id IS NOT NULL"
_OF_ALL = f"{_OF_KEY} AND v IS NOT NULL"
VIEWS = (
    f"CREATE MATERIALIZED VIEW by_v AS SELECT * FROM viewed {_OF_ALL} PRIMARY KEY (v, id, c)",
    f"CREATE MATERIALIZED VIEW by_c AS SELECT c, id, w FROM viewed {_OF_KEY} PRIMARY KEY (c, id)",
)
_DROPPED = {"gone": "int", "gone_m": "map<int, text>"}
_DROPPED_STATIC = {"gone_s": "text"}
_NEW_FIELDS = (("c", "frozen<list<text>>"), ("d", "bigint"))


class Unit(NamedTuple):
    """Statements that are sent at once: one statement, or a batch. `kind`: single, batch, logged, counter."""

    kind: str
    statements: list[tuple[Shape, list[Value]]]


class Workload:
    """`create`, then any number of `units`, with `evolve` in between, which changes what units there are."""

    def __init__(
        self,
        version: str,
        seed: int,
        *,
        has_negative_partition_deletions: bool = True,
        timestamps: int = 50,
        fresh: float = FRESH,
    ) -> None:
        """5.0 cannot read its SSTables of `oa` and `da` where a partition is deleted at a negative timestamp.
        `timestamps`, `fresh`: see Draw.
        """
        self._has_negative_partition_deletions = has_negative_partition_deletions
        self._rng = random.Random(f"{seed} workload")
        self._draw = Draw(random.Random(f"{seed} values"), timestamps, fresh)
        self._types = dict(TYPES)
        self.tables = {table.name: table for table in tables(version, seed)}
        self._evolution = self._steps()
        self._choose()

    def create(self) -> Iterator[str]:
        yield f"CREATE KEYSPACE {KEYSPACE} WITH replication = {{'class': 'SimpleStrategy', 'replication_factor': 1}}"
        yield f"USE {KEYSPACE}"
        yield from create_types()
        yield from (table.create() for table in self.tables.values())
        yield from VIEWS

    def evolve(self) -> list[str]:
        """The next change of the schema: columns dropped and added again, a type extended, a table recreated."""
        statements = next(self._evolution, [])
        self._choose()
        return statements

    def _steps(self) -> Iterator[list[str]]:
        altered = self.tables["altered"]
        for field, type_ in _NEW_FIELDS:
            drop = [f"ALTER TABLE altered DROP {name}" for name in (*_DROPPED, *_DROPPED_STATIC)]
            self._rename_columns(altered, gone=True)
            yield [*drop, *self._extend(field, type_), "DROP TABLE doomed", self.tables["doomed"].create()]
            add = [f"ALTER TABLE altered ADD {name} {type_}" for name, type_ in _DROPPED.items()]
            add += [f"ALTER TABLE altered ADD {name} {type_} static" for name, type_ in _DROPPED_STATIC.items()]
            self._rename_columns(altered, gone=False)
            yield add

    @staticmethod
    def _rename_columns(table: Table, *, gone: bool) -> None:
        for columns, dropped in ((table.regulars, _DROPPED), (table.statics, _DROPPED_STATIC)):
            for name, type_ in dropped.items():
                if gone:
                    del columns[name]
                else:
                    columns[name] = type_

    def _extend(self, field: str, type_: str) -> list[str]:
        known = self._types[EVOLVING.name]
        self._types[EVOLVING.name] = replace(
            known, field_names=(*known.field_names, field), field_types=(*known.field_types, type_)
        )
        return [f"ALTER TYPE {EVOLVING.name} ADD {quoted(field)} {type_}"]

    def _choose(self) -> None:
        types = dict(self._types)

        @cache
        def parse(text: str) -> CqlType:
            return parse_type(text, KEYSPACE, types)

        of_table = {
            name: shapes(
                table, parse, self._rng, has_negative_partition_deletions=self._has_negative_partition_deletions
            )
            for name, table in self.tables.items()
        }
        self._shapes = [of for name, of in of_table.items() if not self.tables[name].is_counter]
        self._counters = [of for name, of in of_table.items() if self.tables[name].is_counter]
        self._common = [
            of for name, of in of_table.items() if not self.tables[name].is_counter and "id" in self.tables[name].key
        ]

    def units(self, mutations: int) -> Iterator[Unit]:
        """Statements that make about so many mutations: a batch over tables makes one for each partition."""
        made = 0
        while made < mutations:
            choice = self._rng.random()
            if choice < 0.05:
                yield Unit("counter", self._statements(self._counters, self._rng.randint(1, 4)))
            elif choice < 0.4:
                yield Unit("single", self._statements(self._shapes, 1))
            elif choice < 0.7:
                self._draw.id = self._rng.randint(0, 40).to_bytes(4, "big")
                yield Unit("batch", self._statements(self._common, self._rng.randint(2, 6)))
                self._draw.id = None
            else:
                kind = "logged" if choice > 0.98 else "batch"
                wide = Unit(kind, self._statements(self._shapes, self._rng.randint(4, 20)))
                made += len(wide.statements) - 4
                yield wide
            made += 1

    def _statements(self, of_tables: list[list[Shape]], count: int) -> list[tuple[Shape, list[Value]]]:
        chosen = [self._rng.choice(self._rng.choice(of_tables)) for _ in range(count)]
        return [(shape, self._draw.values(shape)) for shape in chosen]

    def conditional(self, count: int) -> Iterator[str]:
        """Lightweight transactions, whose rounds are in the log too."""
        for _ in range(count):
            row = f"id = {self._rng.randint(0, 9)} AND c = {self._rng.randint(0, 3)}"
            v, w = self._rng.randint(0, 3), self._rng.choice("ab")
            id_, c = self._rng.randint(0, 9), self._rng.randint(0, 3)
            yield self._rng.choice(
                (
                    f"INSERT INTO viewed (id, c, v) VALUES ({id_}, {c}, {v}) IF NOT EXISTS",
                    f"UPDATE viewed SET w = '{w}', v = {v} WHERE {row} IF w != '{w}'",
                    f"DELETE FROM viewed WHERE {row} IF EXISTS",
                )
            )
