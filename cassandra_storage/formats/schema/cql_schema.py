"""Tables from CQL: the schema.cql that a snapshot has, or what DESCRIBE prints
(org.apache.cassandra.db.SchemaCQLHelper, cql3.statements.schema).

CREATE TYPE, CREATE TABLE and the ALTER TABLE that follow it (dropped columns and those added again) are read; other
statements, such as CREATE INDEX, are passed over.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple
from uuid import UUID

from cassandra_storage.formats.errors import FormatError
from cassandra_storage.formats.schema.schema_rows import tables_from_rows
from cassandra_storage.formats.types.cql_types import UserTypeDefinition, parse_type, type_text
from cassandra_storage.formats.types.marshal import user_types

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from collections.abc import Set as AbstractSet

    from cassandra_storage.formats.schema.schema_rows import SchemaRow
    from cassandra_storage.formats.schema.tables import TableMetadata
    from cassandra_storage.formats.types.marshal import CqlType

_NO_ID = UUID(int=0)
_TOKEN = re.compile(
    r"""\s+ | --[^\n]* | //[^\n]* | /\*.*?\*/
      | (?P<uuid>[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12})
      | (?P<name>[A-Za-z][A-Za-z0-9_]*)
      | "(?P<quoted>(?:[^"]|"")+)"
      | (?P<text>'(?:[^']|'')*')
      | (?P<other>-?[0-9][0-9.eE+-]*|[^\s])""",
    re.VERBOSE | re.DOTALL,
)


class _Token(NamedTuple):
    """A token of CQL."""

    # in lower case if it is not quoted
    word: str
    # as written
    text: str
    is_quoted: bool = False

    @property
    def name(self) -> str:
        return self.text if self.is_quoted else self.word


def parse_schema(text: str, keyspace: str = "") -> list[TableMetadata]:
    """The tables that the statements make. `keyspace`: of names without one, until a USE. A table without WITH ID has
    the nil UUID for an id.

    FormatError if a CREATE cannot be read, or names a user type that no CREATE TYPE made.
    """
    schema = CqlSchema(keyspace)
    schema.read(text)
    return [schema.table(table) for table in schema.tables]


def _statements(text: str) -> Iterator[list[_Token]]:
    tokens: list[_Token] = []
    position = 0
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            raise FormatError("not CQL", position=position)
        position = match.end()
        kind = match.lastgroup
        if kind is None:
            continue
        content = match[kind]
        if content == ";":
            yield tokens
            tokens = []
        elif kind == "quoted":
            tokens.append(_Token("", content.replace('""', '"'), is_quoted=True))
        else:
            tokens.append(_Token(content.lower(), content))
    yield tokens


class _Statement:
    """The tokens of one statement, read from the front."""

    def __init__(self, tokens: list[_Token]) -> None:
        self._tokens = tokens
        self._at = 0

    @property
    def is_at_end(self) -> bool:
        return self._at == len(self._tokens)

    def next(self) -> _Token:
        if self.is_at_end:
            raise self.error()
        self._at += 1
        return self._tokens[self._at - 1]

    def follows(self, *words: str) -> bool:
        found = self._tokens[self._at : self._at + len(words)]
        return [token.word for token in found] == list(words)

    def skip(self, *words: str) -> bool:
        """Pass over these words if they follow."""
        if not self.follows(*words):
            return False
        self._at += len(words)
        return True

    def expect(self, *words: str) -> None:
        if not self.skip(*words):
            raise self.error()

    def table_name(self, keyspace: str) -> tuple[str, str]:
        name = self.next().name
        return (name, self.next().name) if self.skip(".") else (keyspace, name)

    def until(self, *ends: str) -> str:
        """The text up to one of these words outside parentheses and angle brackets."""
        parts: list[str] = []
        depth = 0
        while depth or not (self.is_at_end or self._tokens[self._at].word in ends):
            token = self.next()
            depth += (token.word in ("<", "(")) - (token.word in (">", ")"))
            quoted = '"' + token.text.replace('"', '""') + '"'
            parts.append(quoted if token.is_quoted else token.text)
        return " ".join(parts)

    def error(self) -> FormatError:
        shown = " ".join(token.text for token in self._tokens)[:200]
        return FormatError(f"cannot be read as CQL: {shown!r}")


class CqlTable(NamedTuple):
    """A table that a schema has."""

    # The name of the keyspace.
    keyspace: str
    # The name of the table.
    name: str
    # The id of the table; the nil UUID if the schema does not say it.
    id: UUID


class _Table:
    """A table as CREATE TABLE and the ALTERs after it define it."""

    def __init__(self, keyspace: str, name: str) -> None:
        self.name = (keyspace, name)
        self.id = _NO_ID
        self.gc_grace_seconds = 864_000
        self.columns: dict[str, tuple[str, bool]] = {}  # type, whether it is static
        self.partition_key: list[str] = []
        self.clustering: list[str] = []
        self.descending: set[str] = set()
        self.dropped: dict[str, tuple[str, bool, int]] = {}
        self.is_compact = False


class CqlSchema:
    """The tables and user types that statements make. Texts that are read one after the other are one schema."""

    def __init__(self, keyspace: str = "") -> None:
        self._keyspace = keyspace
        self._types: dict[tuple[str, str], UserTypeDefinition] = {}
        self._tables: dict[tuple[str, str], _Table] = {}

    def read(self, text: str) -> None:
        """FormatError if a CREATE cannot be read."""
        for tokens in _statements(text):
            statement = _Statement(tokens)
            try:
                self._read(statement)
            except ValueError:  # of a number or an id
                raise statement.error() from None

    @property
    def tables(self) -> list[CqlTable]:
        return [CqlTable(*name, table.id) for name, table in self._tables.items()]

    @property
    def has_types(self) -> bool:
        return bool(self._types)

    def table(self, of: CqlTable) -> TableMetadata:
        """FormatError if it has a user type that no CREATE TYPE made."""
        return self._made(of, self._types, _column_rows(self._tables[of.keyspace, of.name]))

    def completed(self, of: CqlTable, written: AbstractSet[bytes], written_types: Iterable[CqlType]) -> TableMetadata:
        """The table with the user types of what was written of it, where no CREATE TYPE made them. A column is left
        out if its type is not known and it is not one of the columns that were `written`.

        FormatError if it still has a user type that is not known.
        """
        types = {**_user_types(written_types), **self._types}
        rows = _column_rows(self._tables[of.keyspace, of.name])
        return self._made(of, types, [row for row in rows if _is_needed(row, written) or _is_known(row, types)])

    def _made(
        self, of: CqlTable, types: Mapping[tuple[str, str], UserTypeDefinition], columns: list[SchemaRow]
    ) -> TableMetadata:
        table = self._tables[of.keyspace, of.name]
        type_rows: list[SchemaRow] = [
            {
                "keyspace_name": type_.keyspace,
                "type_name": type_.name,
                "field_names": type_.field_names,
                "field_types": type_.field_types,
            }
            for type_ in types.values()
        ]
        (made,) = tables_from_rows([_table_row(table)], columns, type_rows, _dropped_rows(table)).values()
        return made

    def _read(self, statement: _Statement) -> None:
        if statement.skip("use"):
            self._keyspace = statement.next().name
        elif statement.skip("create", "type"):
            self._create_type(statement)
        elif statement.skip("create", "table") or statement.skip("create", "columnfamily"):
            self._create_table(statement)
        elif statement.skip("alter", "table"):
            self._alter_table(statement)

    def _create_type(self, statement: _Statement) -> None:
        statement.skip("if", "not", "exists")
        name = statement.table_name(self._keyspace)
        statement.expect("(")
        names, types = [], []
        while not statement.skip(")"):
            names.append(statement.next().name)
            types.append(statement.until(",", ")"))
            statement.skip(",")
        self._types[name] = UserTypeDefinition(*name, tuple(names), tuple(types))

    def _create_table(self, statement: _Statement) -> None:
        statement.skip("if", "not", "exists")
        table = _Table(*statement.table_name(self._keyspace))
        statement.expect("(")
        while not statement.skip(")"):
            if statement.skip("primary", "key"):
                _primary_key(statement, table)
            else:
                _column(statement, table)
            statement.skip(",")
        if not table.partition_key:
            raise statement.error()
        if statement.skip("with"):
            _options(statement, table)
        self._tables[table.name] = table

    def _alter_table(self, statement: _Statement) -> None:
        statement.skip("if", "exists")
        table = self._tables.get(statement.table_name(self._keyspace))
        if table is None:
            return
        if statement.skip("drop"):
            name = statement.next().name
            statement.expect("using", "timestamp")
            type_, is_static = table.columns.pop(name, ("blob", False))
            table.dropped[name] = type_, is_static, int(statement.next().text)
        elif statement.skip("add"):
            _column(statement, table)


def _user_types(types: Iterable[CqlType]) -> dict[tuple[str, str], UserTypeDefinition]:
    """The user types that the types are made of. ALTER TYPE adds fields: the one with most is the newest."""
    found: dict[tuple[str, str], UserTypeDefinition] = {}
    for type_ in (one for of in types for one in user_types(of)):
        fields = tuple(map(type_text, type_.field_types))
        known = found.get((type_.keyspace, type_.name))
        if known is None or len(known.field_names) < len(fields):
            definition = UserTypeDefinition(type_.keyspace, type_.name, type_.field_names, fields)
            found[type_.keyspace, type_.name] = definition
    return found


def _is_needed(row: SchemaRow, written: AbstractSet[bytes]) -> bool:
    """Return whether the column belongs to the key, or was written."""
    return row["kind"] in ("partition_key", "clustering") or row["column_name"].encode() in written


def _is_known(row: SchemaRow, types: Mapping[tuple[str, str], UserTypeDefinition]) -> bool:
    of_keyspace = {name: type_ for (keyspace, name), type_ in types.items() if keyspace == row["keyspace_name"]}
    try:
        parse_type(row["type"], row["keyspace_name"], of_keyspace)
    except FormatError:
        return False
    return True


def _column(statement: _Statement, table: _Table) -> None:
    name = statement.next().name
    type_ = statement.until(",", ")", "static", "primary", "masked")
    is_static = statement.skip("static")
    if statement.skip("masked", "with"):
        statement.until(",", ")", "primary")
    if statement.skip("primary", "key"):
        table.partition_key = [name]
    table.columns[name] = type_, is_static


def _primary_key(statement: _Statement, table: _Table) -> None:
    statement.expect("(")
    if statement.skip("("):
        while not statement.skip(")"):
            table.partition_key.append(statement.next().name)
            statement.skip(",")
    else:
        table.partition_key.append(statement.next().name)
    statement.skip(",")
    while not statement.skip(")"):
        table.clustering.append(statement.next().name)
        statement.skip(",")


def _options(statement: _Statement, table: _Table) -> None:
    while not statement.is_at_end:
        if statement.skip("compact", "storage"):
            table.is_compact = True
        elif statement.skip("clustering", "order", "by", "("):
            while not statement.skip(")"):
                name = statement.next().name
                if statement.skip("desc"):
                    table.descending.add(name)
                statement.skip("asc")
                statement.skip(",")
        elif statement.skip("id", "="):
            table.id = UUID(statement.next().text)
        elif statement.skip("gc_grace_seconds", "="):
            table.gc_grace_seconds = int(statement.next().text)
        else:
            statement.until("and")
        statement.skip("and")


def _table_row(table: _Table) -> SchemaRow:
    return {
        "keyspace_name": table.name[0],
        "table_name": table.name[1],
        "id": table.id,
        "flags": _flags(table),
        "gc_grace_seconds": table.gc_grace_seconds,
    }


def _flags(table: _Table) -> set[str]:
    """CreateTableStatement.Raw.prepare: TableMetadata.Flag in lower case."""
    flags = {"counter"} if any(type_ == "counter" for type_, _ in table.columns.values()) else set()
    if not table.is_compact or len(table.clustering) > 1:
        flags.add("compound")
    if table.is_compact and table.clustering:
        flags.add("dense")
    return flags


def _column_rows(table: _Table) -> list[SchemaRow]:
    """Return the rows of the table's columns, with those that a compact table has and CQL does not show
    (compact_tables).
    """
    rows: list[SchemaRow] = []
    is_static_compact = table.is_compact and not table.clustering
    for name, (type_, is_static) in table.columns.items():
        if name in table.partition_key:
            rows.append(_row(table, name, type_, "partition_key", table.partition_key.index(name)))
        elif name in table.clustering:
            rows.append(_row(table, name, type_, "clustering", table.clustering.index(name)))
        else:
            rows.append(_row(table, name, type_, "static" if is_static or is_static_compact else "regular"))
    if is_static_compact:
        is_counter = "counter" in _flags(table)
        rows.append(_row(table, "column1", "text", "clustering", 0))
        rows.append(_row(table, "value", "counter" if is_counter else "blob", "regular"))
    elif table.is_compact and len(rows) == len(table.partition_key) + len(table.clustering):
        rows.append(_row(table, "value", "'org.apache.cassandra.db.marshal.EmptyType'", "regular"))
    return rows


def _row(table: _Table, name: str, type_: str, kind: str, position: int = -1) -> dict[str, Any]:
    return {
        "keyspace_name": table.name[0],
        "table_name": table.name[1],
        "column_name": name,
        "type": type_,
        "kind": kind,
        "position": position,
        "clustering_order": "desc" if name in table.descending else "asc" if kind == "clustering" else "none",
    }


def _dropped_rows(table: _Table) -> list[SchemaRow]:
    """system_schema has milliseconds, USING TIMESTAMP microseconds."""
    return [
        {
            **_row(table, name, type_, "static" if is_static else "regular"),
            "dropped_time": -(-time // 1000),
        }
        for name, (type_, is_static, time) in table.dropped.items()
    ]
