"""Random statements over tables: CQL texts that are prepared once, and serialized values for their markers.

Values are bound as bytes, so that they can be what no driver makes: empty, or numbers in other forms than Java's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from cassandra.query import UNSET_VALUE

from cassandra_storage.formats.types.cql_types import type_text
from cassandra_storage.formats.types.marshal import CqlType, ListType, MapType, SetType, UserType
from dev.verify.oracle.type_values import TypeValues
from tests.support.workload.tables import has_vector, quoted

if TYPE_CHECKING:
    import random

    from tests.support.workload.tables import Table

    Parse: TypeAlias = Callable[[str], CqlType]

POOLED = 16  # values of a type, so that keys meet again
FRESH = 0.15
NOW = 1_700_000_000_000_000  # µs
BEYOND_2038 = 20 * 365 * 86_400  # s: the longest TTL
TTLS = (1, 86_400, 200_000_000, BEYOND_2038)

Value: TypeAlias = object  # bytes, None or UNSET_VALUE
Parameter: TypeAlias = Callable[["Draw"], Value]


class Shape(NamedTuple):
    """A statement with markers. `table`: its name; a counter's statement goes into no batch with others."""

    table: str
    cql: str
    parameters: tuple[Parameter, ...]
    is_counter: bool = False


class Draw:
    """Values of one random generator. `id`: the serialized key that statements share while one mutation is made.
    `timestamps`: about how many there are to choose from where a statement has one; the fewer, the more ties. `fresh`:
    how often a pooled value makes room for a new one.
    """

    def __init__(self, rng: random.Random, timestamps: int, fresh: float = FRESH) -> None:
        self.rng = rng
        self.timestamps = timestamps
        self._fresh = fresh
        self.id: bytes | None = None
        self._values = TypeValues(rng, is_plain=False)
        self._plain_values = TypeValues(rng, is_plain=True)
        self._pools: dict[str, list[bytes]] = {}

    def values(self, shape: Shape) -> list[Value]:
        return [parameter(self) for parameter in shape.parameters]

    def fresh(self, type_: CqlType) -> bytes:
        """A vector must not have empty elements, whatever its type allows (VectorType.Serializer.validate). Of a
        list with them 3.11 makes cells without values, which it then cannot write.
        """
        is_plain = has_vector(type_) or (isinstance(type_, ListType) and type_.is_multi_cell)
        return (self._plain_values if is_plain else self._values).value(type_)

    def pooled(self, name: str, type_: CqlType, *, may_be_empty: bool = True) -> bytes:
        pool = self._pools.setdefault(name, [])
        place = self.rng.randrange(POOLED)
        if place < len(pool) and self.rng.random() > self._fresh:
            return pool[place]
        value = self.fresh(type_)
        while not value and not may_be_empty:
            value = self.fresh(type_)
        pool[place : place + 1] = [value]
        return value


def shapes(
    table: Table, parse: Parse, rng: random.Random, *, has_negative_partition_deletions: bool = True
) -> list[Shape]:
    """The statements that write to the table: each kind, and three choices where one is made."""
    maker = _Shapes(table, parse, rng)
    if not has_negative_partition_deletions and not table.is_counter:
        maker.partition_deletion_time = (_plain_timestamp,)
    unique = {shape.cql: shape for _ in range(3) for shape in maker.all()}
    return list(unique.values())


class _Shapes:
    def __init__(self, table: Table, parse: Parse, rng: random.Random) -> None:
        self.table = table
        self.parse = parse
        self.rng = rng
        self.name = quoted(table.name)
        self.where_partition = _equal(table.partition_key)
        self.partition = tuple(_key(table, name, parse(type_)) for name, type_ in table.partition_key.items())
        self.clustering = tuple(_key(table, name, parse(type_)) for name, type_ in table.clustering.items())
        self.using_deletion = "" if table.is_counter else "USING TIMESTAMP ? "
        # Of a partition deletion at a negative timestamp 5.0 makes an SSTable that it cannot read, as views do.
        self.timestamp = _plain_timestamp if table.has_views else _timestamp
        self.deletion_time: tuple[Parameter, ...] = () if table.is_counter else (self.timestamp,)
        self.partition_deletion_time = self.deletion_time

    def all(self) -> Iterator[Shape]:
        table = self.table
        where_row = f"{self.where_partition}{_and(_equal(table.clustering))}"
        row = self.partition + self.clustering
        kinds = [(table.regulars, where_row, row)]
        if table.statics:
            kinds.append((table.statics, self.where_partition, self.partition))
        if table.is_counter:
            for columns, where, key in kinds:
                yield from self._counter(columns, where, key)
        else:
            yield self._insert(table.statics | table.regulars, table.key, row)
            if table.statics:
                yield self._insert(table.statics, table.partition_key, self.partition)
            for columns, where, key in kinds:
                if columns:
                    yield self._set(columns, where, key)
                    yield from self._elements(columns, where, key)
        for columns, where, key in kinds:
            if columns and not (table.is_compact and not table.clustering and table.is_counter):
                chosen = self.rng.sample(list(columns), self.rng.randint(1, min(5, len(columns))))
                yield self._delete(", ".join(map(quoted, chosen)), where, key)
        if table.clustering:
            yield self._delete("", where_row, row)
        yield self._shape(
            f"DELETE FROM {self.name} {self.using_deletion}WHERE {self.where_partition}",
            (*self.partition_deletion_time, *self.partition),
        )
        yield from self._ranges()

    def _shape(self, cql: str, parameters: Sequence[Parameter]) -> Shape:
        return Shape(self.table.name, cql, tuple(parameters), self.table.is_counter)

    def _insert(self, columns: dict[str, str], key: dict[str, str], key_values: tuple[Parameter, ...]) -> Shape:
        names = [*key, *columns]
        values = key_values + tuple(_column(self.parse(type_)) for type_ in columns.values())
        cql = f"INSERT INTO {self.name} ({', '.join(map(quoted, names))}) VALUES ({', '.join('?' for _ in names)})"
        return self._shape(f"{cql} USING TIMESTAMP ? AND TTL ?", (*values, self.timestamp, _ttl))

    def _update(self, sets: str, where: str, parameters: Sequence[Parameter]) -> Shape:
        return self._shape(
            f"UPDATE {self.name} USING TIMESTAMP ? AND TTL ? SET {sets} WHERE {where}",
            (self.timestamp, _ttl, *parameters),
        )

    def _set(self, columns: dict[str, str], where: str, key: tuple[Parameter, ...]) -> Shape:
        sets = ", ".join(f"{quoted(name)} = ?" for name in columns)
        return self._update(sets, where, (*(_column(self.parse(type_)) for type_ in columns.values()), *key))

    def _counter(self, columns: dict[str, str], where: str, key: tuple[Parameter, ...]) -> Iterator[Shape]:
        for count in range(1, len(columns) + 1):
            chosen = self.rng.sample(list(columns), count)
            sets = ", ".join(f"{quoted(name)} = {quoted(name)} + ?" for name in chosen)
            counts = tuple(_filled(self.parse("bigint")) for _ in chosen)
            yield self._shape(f"UPDATE {self.name} SET {sets} WHERE {where}", counts + key)

    def _elements(self, columns: dict[str, str], where: str, key: tuple[Parameter, ...]) -> Iterator[Shape]:
        """Operations on the elements of collections and user types, one on each column at most."""
        multi_cell = {name: type_ for name, text in columns.items() if _is_multi_cell(type_ := self.parse(text))}
        for _ in range(2 if multi_cell else 0):
            chosen = self.rng.sample(list(multi_cell), self.rng.randint(1, min(4, len(multi_cell))))
            operations = [self.rng.choice(_operations(quoted(name), multi_cell[name])) for name in chosen]
            parameters = [parameter for _, parameter in operations]
            yield self._update(", ".join(cql for cql, _ in operations), where, (*parameters, *key))
            removals = [one for name in chosen for one in _removals(quoted(name), multi_cell[name])]
            if removals:
                picked = self.rng.sample(removals, self.rng.randint(1, len(removals)))
                elements = [parameter for _, parameter in picked if parameter is not None]
                yield self._delete(
                    ", ".join(cql for cql, _ in picked), where, (*elements, *key), elements=len(elements)
                )

    def _delete(self, what: str, where: str, parameters: tuple[Parameter, ...], elements: int = 0) -> Shape:
        """The first `elements` parameters stand before FROM."""
        return self._shape(
            f"DELETE {what} FROM {self.name} {self.using_deletion}WHERE {where}",
            (*parameters[:elements], *self.deletion_time, *parameters[elements:]),
        )

    def _ranges(self) -> Iterator[Shape]:
        """Deletions by a prefix of the clustering and by slices of what follows."""
        if self.table.is_compact:
            return
        names = list(self.table.clustering)
        for depth in self.rng.sample(range(len(names)), min(2, len(names))):
            where = self.where_partition + _and(_equal(names[:depth]))
            fixed = self.partition + self.clustering[:depth]
            if depth:
                yield self._delete("", where, fixed)
            bound = self.clustering[depth]
            for operators in (
                (self.rng.choice(("<", "<=", ">", ">=")),),
                (self.rng.choice((">", ">=")), self.rng.choice(("<", "<="))),
            ):
                slices = " AND ".join(f"{quoted(names[depth])} {operator} ?" for operator in operators)
                yield self._delete("", f"{where} AND {slices}", (*fixed, *(bound for _ in operators)))
        if len(names) > 1:
            count = self.rng.randint(2, min(6, len(names)))
            tuple_ = f"({', '.join(map(quoted, names[:count]))})"
            markers = f"({', '.join('?' for _ in range(count))})"
            above, below = self.rng.choice((">", ">=")), self.rng.choice(("<", "<="))
            slices = f"{tuple_} {above} {markers} AND {tuple_} {below} {markers}"
            bounds = self.clustering[:count]
            yield self._delete("", f"{self.where_partition} AND {slices}", (*self.partition, *bounds, *bounds))


def _and(condition: str) -> str:
    return f" AND {condition}" if condition else ""


def _equal(names: Sequence[str] | dict[str, str]) -> str:
    return " AND ".join(f"{quoted(name)} = ?" for name in names)


def _is_multi_cell(type_: CqlType) -> bool:
    return bool(getattr(type_, "is_multi_cell", False))


def _key(table: Table, name: str, type_: CqlType) -> Parameter:
    if name == "id":
        return lambda draw: draw.id if draw.id is not None else draw.pooled("id", type_, may_be_empty=False)
    may_be_empty = not table.is_compact and (name in table.clustering or len(table.partition_key) > 1)
    pool = f"{table.name} {name}"
    return lambda draw: draw.pooled(pool, type_, may_be_empty=may_be_empty)


def _filled(type_: CqlType) -> Parameter:
    pool = f"filled {type_text(type_)}"
    return lambda draw: draw.pooled(pool, type_, may_be_empty=False)


def _column(type_: CqlType) -> Parameter:
    """A value, or null, or no word about the column."""
    text = type_text(type_)

    def value(draw: Draw) -> Value:
        choice = draw.rng.random()
        if choice < 0.4:
            return UNSET_VALUE
        return None if choice < 0.5 else draw.pooled(text, type_)

    return value


def _plain_timestamp(draw: Draw) -> Value:
    """µs: mostly the server's own, and few that clash."""
    if draw.rng.random() < 0.4:
        return UNSET_VALUE
    count = draw.timestamps
    number = draw.rng.choice((draw.rng.randint(1, count), NOW + draw.rng.randint(-20 * count, 20 * count)))
    return number.to_bytes(8, "big", signed=True)


def _timestamp(draw: Draw) -> Value:
    """Now and then a negative one, or one of which the differences overflow."""
    if draw.rng.random() < 0.7:
        return _plain_timestamp(draw)
    number = draw.rng.choice((-draw.rng.randint(1, 5), 2**62, -(2**62), 4_102_444_800_000_000, 2**63 - 1, 1 - 2**63))
    return number.to_bytes(8, "big", signed=True)


def _ttl(draw: Draw) -> Value:
    if draw.rng.random() < 0.7:
        return UNSET_VALUE
    return draw.rng.choice(TTLS).to_bytes(4, "big")


def _operations(name: str, type_: CqlType) -> list[tuple[str, Parameter]]:
    """Return the ways in which SET changes elements."""
    match type_:
        case ListType():
            return [(f"{name} = {name} + ?", _filled(type_)), (f"{name} = ? + {name}", _filled(type_))]
        case SetType():
            return [(f"{name} = {name} {sign} ?", _filled(type_)) for sign in "+-"]
        case MapType(keys, _, _):
            removed = SetType(keys, is_multi_cell=False)
            return [(f"{name} = {name} + ?", _filled(type_)), (f"{name} = {name} - ?", _filled(removed))]
        case UserType():
            fields = zip(type_.field_names, type_.field_types, strict=True)
            return [(f"{name}.{quoted(field)} = ?", _column(of)) for field, of in fields]
    raise AssertionError(type_)


def _removals(name: str, type_: CqlType) -> list[tuple[str, Parameter | None]]:
    """Return the parts that DELETE can take from it: one element, a field, all."""
    match type_:
        case MapType(of, _, _) | SetType(of, _):
            return [(f"{name}[?]", _filled(of))]
        case UserType():
            return [(f"{name}.{quoted(type_.field_names[0])}", None)]
        case _:
            return [(name, None)]
