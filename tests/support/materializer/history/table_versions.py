"""A table's schemas one after the other, as statements change them, and its change topics."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING
from uuid import UUID

from cassandra_storage.formats.schema.schema_rows import in_order
from cassandra_storage.formats.schema.tables import ColumnKind, ColumnMetadata, DroppedColumn, TableMetadata
from cassandra_storage.formats.types.marshal import CqlType, ListType, MapType, NativeType, SetType, TupleType, UserType
from cdc_common.messages.tables import canonical
from materializer.rows.catalog import TableCatalog
from tests.support.materializer.history.plain_table import list_order
from tests.support.materializer.raw_builder import INT, TEXT, TableWriter

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tests.support.materializer.history.plain_table import PathOrder

GC_GRACE_SECONDS = 3
COUNTER = NativeType("counter")
FIELDS = ("x", "y")
LIST_PATHS = tuple(
    UUID(fields=(time_low, time_mid, 0x1000, 0x80, 0, 0)).bytes
    # By time the last one is the first: its high bits are the lowest.
    for time_low, time_mid in ((1, 2), (2, 2), (0xFFFFFFFF, 1))
)


def user_type(*, is_multi_cell: bool) -> UserType:
    return UserType("shop", "point", FIELDS, (TEXT, TEXT), is_multi_cell)


REGULAR = ColumnKind.REGULAR
_WIDE = (
    ColumnMetadata("a", TEXT, REGULAR),
    ColumnMetadata("b", TEXT, REGULAR),
    ColumnMetadata("f", user_type(is_multi_cell=False), REGULAR),
    ColumnMetadata("l", ListType(TEXT, is_multi_cell=True), REGULAR),
    ColumnMetadata("m", MapType(INT, TEXT, is_multi_cell=True), REGULAR),
    ColumnMetadata("s", SetType(TEXT, is_multi_cell=True), REGULAR),
    ColumnMetadata("u", user_type(is_multi_cell=True), REGULAR),
)
_OTHER = (
    ColumnMetadata("a", TEXT, REGULAR),
    ColumnMetadata("b", MapType(INT, TEXT, is_multi_cell=True), REGULAR),
    ColumnMetadata("s", TEXT, REGULAR),
)
_STATIC = (
    ColumnMetadata("st", TEXT, ColumnKind.STATIC),
    ColumnMetadata("ss", SetType(TEXT, is_multi_cell=True), ColumnKind.STATIC),
)
_COUNTERS = (ColumnMetadata("n", COUNTER, REGULAR), ColumnMetadata("o", COUNTER, REGULAR))
_STATIC_COUNTERS = (ColumnMetadata("sn", COUNTER, ColumnKind.STATIC),)
_ADDED = (ColumnMetadata("d", TEXT, REGULAR), ColumnMetadata("z", TEXT, ColumnKind.STATIC))
_ADDED_COUNTERS = (ColumnMetadata("p", COUNTER, REGULAR),)


def _shape(
    regular: tuple[ColumnMetadata, ...], static: tuple[ColumnMetadata, ...], clustering: str | None
) -> TableMetadata:
    by = ColumnMetadata("c", INT, ColumnKind.CLUSTERING, 0, clustering == "desc")
    is_counter = regular[0].type == COUNTER
    return TableMetadata(
        keyspace="shop",
        name="orders",
        id=UUID(int=1),
        partition_key=(ColumnMetadata("k", INT, ColumnKind.PARTITION_KEY, 0),),
        clustering=(by,) if clustering else (),
        static_columns=in_order(static),
        regular_columns=in_order(regular),
        flags=frozenset({"compound", "counter"} if is_counter else {"compound"}),
        gc_grace_seconds=GC_GRACE_SECONDS,
    )


SHAPES = (
    _shape(_WIDE, _STATIC, "asc"),
    _shape(_OTHER, (), "desc"),
    _shape(_WIDE[:4], (), None),
    _shape(_COUNTERS, _STATIC_COUNTERS, "asc"),
)


def path_order(type_: CqlType) -> PathOrder:
    """The order of a column's elements; None for a simple column."""
    match type_:
        case ListType(_, True):
            return list_order
        case MapType(_, _, True) | UserType(_, _, _, _, True):
            return lambda path: int.from_bytes(path, "big", signed=True)
        case SetType(_, True):
            return lambda path: path
    return None


@dataclass
class TableVersions:
    """All schemas under one name, the newest last. Each statement has its time in µs and adds one, if it can."""

    tables: list[TableMetadata] = field(default_factory=list)
    topics: dict[bytes, str] = field(default_factory=dict)
    never_added: set[str] = field(default_factory=set)
    assigned: int = 0
    _ids: int = 0

    @property
    def newest(self) -> TableMetadata:
        return self.tables[-1]

    @property
    def newest_topic(self) -> str:
        """The change topic of the newest schema."""
        return f"{topic_name(self.newest)}-{self.assigned}"

    def assign(self) -> str:
        """The registry assigns another topic, or one that the table has had."""
        self.assigned = (self.assigned + 1) % 3
        return f"the topic is {self.newest_topic}"

    def columns(self) -> Mapping[str, PathOrder]:
        table = self.newest
        return {column.name: path_order(column.type) for column in table.static_columns + table.regular_columns}

    def dropped(self) -> Mapping[str, int]:
        return {name: dropped.dropped_time for name, dropped in self.newest.dropped_columns.items()}

    def before(self, versions: int) -> TableMetadata:
        """The schema of a node that has not heard of the last so many statements."""
        return self.tables[max(0, len(self.tables) - 1 - versions)]

    def create(self, shape: int, at: int) -> str:
        self._ids += 1
        self.never_added = set()
        self._add(replace(SHAPES[shape % len(SHAPES)], id=UUID(int=self._ids)), at)
        return f"CREATE TABLE orders (shape {shape % len(SHAPES)})"

    def drop(self, index: int, dropped_time: int, at: int, *, is_type_known: bool) -> str | None:
        """ALTER TABLE DROP; of a user type system_schema has the fields alone, unless the publisher knew the type."""
        table = self.newest
        present = [*table.regular_columns, *table.static_columns]
        column = present[index % len(present)]
        if column.kind is REGULAR and len(table.regular_columns) == 1:
            return None
        former = table.dropped_columns.get(column.name)
        # What an earlier time would bring back depends on Cassandra's compactions.
        time = dropped_time if former is None else max(former.dropped_time, dropped_time)
        if table.is_counter or (isinstance(column.type, UserType) and column.type.is_multi_cell):
            self.never_added.add(column.name)  # Cassandra refuses to add it again
        type_ = column.type
        if isinstance(type_, UserType) and not is_type_known:
            type_ = TupleType(type_.field_types)
        self._add(
            replace(
                table,
                regular_columns=tuple(kept for kept in table.regular_columns if kept != column),
                static_columns=tuple(kept for kept in table.static_columns if kept != column),
                dropped_columns={
                    **table.dropped_columns,
                    column.name: DroppedColumn(replace(column, type=type_), time),
                },
            ),
            at,
        )
        return f"ALTER TABLE DROP {column.name} USING TIMESTAMP {time} (as {type_})"

    def add(self, index: int, at: int) -> str | None:
        """ALTER TABLE ADD of a column that was dropped, or of a new one."""
        table = self.newest
        present = {column.name for column in table.columns}
        shape = next(shape for shape in SHAPES if shape.is_counter == table.is_counter)
        known = {known_column.name: known_column for known_column in (*shape.static_columns, *shape.regular_columns)}
        known |= {added.name: added for added in (_ADDED_COUNTERS if table.is_counter else _ADDED)}
        known |= {
            column.name: column
            for version in self.tables
            if version.id == table.id
            for column in (*version.static_columns, *version.regular_columns)
        }
        missing = [
            column
            for name, column in known.items()
            if name not in present and name not in self.never_added and (column.kind is REGULAR or table.clustering)
        ]
        if not missing:
            return None
        column = missing[index % len(missing)]
        fits = [column for column in table.columns for of in (column.type,) if isinstance(of, UserType)]
        if isinstance(column.type, UserType) and fits:  # ALTER TYPE has changed it in the meantime
            assert isinstance(fits[0].type, UserType)
            column = replace(column, type=replace(fits[0].type, is_multi_cell=column.type.is_multi_cell))
        if column.kind is ColumnKind.STATIC:
            table = replace(table, static_columns=in_order([*table.static_columns, column]))
        else:
            table = replace(table, regular_columns=in_order([*table.regular_columns, column]))
        self._add(table, at)
        return f"ALTER TABLE ADD {column.name} {column.type}"

    def add_field(self, at: int) -> str | None:
        return self._alter_type(
            lambda of: (
                replace(of, field_names=(*of.field_names, "z"), field_types=(*of.field_types, TEXT))
                if len(of.field_names) == len(FIELDS)
                else of
            ),
            "ALTER TYPE point ADD z",
            at,
        )

    def rename_field(self, at: int) -> str | None:
        return self._alter_type(
            lambda of: replace(of, field_names=("w" if of.field_names[0] == "x" else "x", *of.field_names[1:])),
            "ALTER TYPE point RENAME x TO w, or back",
            at,
        )

    def rename_key(self, at: int) -> str | None:
        table = self.newest
        if not table.clustering:
            return None
        (column,) = table.clustering
        renamed = replace(column, name="c" if column.name != "c" else "cc")
        self._add(replace(table, clustering=(renamed,)), at)
        return f"ALTER TABLE RENAME {column.name} TO {renamed.name}"

    def catalog(self) -> TableCatalog:
        """Return the catalog that materializer.planning.plan makes of the tables topic: a schema that comes back is the
        newest again.
        """
        schemas: dict[tuple[bytes, bytes], TableMetadata] = {}
        for table in self.tables:
            key = table.id.bytes, writer_of(table).digest
            schemas.pop(key, None)
            schemas[key] = table
            self.topics.setdefault(key[1], topic_name(table))
        newest = {table.id.bytes: writer_of(table).digest for table in self.tables}
        self.topics[writer_of(self.newest).digest] = self.newest_topic
        return TableCatalog(schemas, newest, dict(self.topics))

    def _alter_type(self, alter: Callable[[UserType], UserType], statement: str, at: int) -> str | None:
        table = self.newest
        columns = tuple(
            replace(column, type=alter(column.type)) if isinstance(column.type, UserType) else column
            for column in table.regular_columns
        )
        if columns == table.regular_columns:
            return None
        self._add(replace(table, regular_columns=columns), at)
        return statement

    def _add(self, table: TableMetadata, at: int) -> None:
        self.tables.append(replace(table, altered_at=at))


def topic_name(table: TableMetadata) -> str:
    """The change topic of a schema: one for each key schema, and for values that readers take for each other's."""
    has_statics = bool(table.static_columns) or any(
        dropped.column.kind is ColumnKind.STATIC for dropped in table.dropped_columns.values()
    )
    key = "-".join(column.name for column in table.clustering)
    is_other = any(column.is_reversed for column in table.clustering)
    return f"{key}-{has_statics}-{is_other}-{table.is_counter}"


_WRITERS: dict[bytes, TableWriter] = {}


def writer_of(table: TableMetadata) -> TableWriter:
    """Making one takes longer than most of what is made with it."""
    key = canonical(table)
    if key not in _WRITERS:
        _WRITERS[key] = TableWriter(table)
    return _WRITERS[key]
