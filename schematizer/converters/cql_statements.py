"""CREATE TABLE and CREATE TYPE as Cassandra's grammar has them (src/antlr/Parser.g, Lexer.g)."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import NamedTuple

from schematizer.converters.converted import ConversionError

_TOKEN = re.compile(
    r"""(?P<space>\s+|--[^\n]*|//[^\n]*|/\*.*?\*/)
      | (?P<word>[A-Za-z][A-Za-z0-9_]*)
      | "(?P<quoted>(?:[^"]|"")+)"
      | '(?P<string>(?:[^']|'')*)'
      | \$\$(?P<raw>.*?)\$\$
      | (?P<number>-?[0-9][0-9A-Za-z.+-]*)
      | (?P<mark>[(){}\[\]<>,.;:=])""",
    re.VERBOSE | re.DOTALL,
)
_AFTER_TYPE = ("static", "primary", "masked")


class Token(NamedTuple):
    """A token of CQL."""

    # The kind of token.
    kind: str
    # The text as written.
    text: str
    # A name without quotes (a plain one in lower case), a string without quotes.
    content: str


@dataclass(slots=True)
class TypeStatement:
    """A CREATE TYPE statement."""

    # The keyspace, if it is named.
    keyspace: str | None
    # The type's name.
    name: str
    # The text of each field's type, by the field's name.
    fields: dict[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class TableStatement:
    """A CREATE TABLE statement."""

    # The keyspace, if it is named.
    keyspace: str | None
    # The table's name.
    name: str
    # The text of each column's type, in the statement's order.
    columns: dict[str, str] = field(default_factory=dict)
    # The names of the static columns.
    statics: set[str] = field(default_factory=set)
    # The names of the partition key's columns, in order.
    partition_key: list[str] = field(default_factory=list)
    # The names of the clustering columns, in order.
    clustering: list[str] = field(default_factory=list)
    # The table's comment.
    comment: str = ""

    def places(self) -> dict[str, tuple[str, int]]:
        """Return the kind and the position of each column, as in system_schema.columns."""
        found = {name: ("static" if name in self.statics else "regular", -1) for name in self.columns}
        for kind, key in (("clustering", self.clustering), ("partition_key", self.partition_key)):
            found |= {name: (kind, index) for index, name in reversed(tuple(enumerate(key)))}
        return found


def read_statements(text: str) -> list[TableStatement | TypeStatement]:
    """Read CREATE TABLE and CREATE TYPE. ConversionError for any other statement, and for COMPACT STORAGE."""
    reader = _Reader(text)
    found: list[TableStatement | TypeStatement] = []
    while reader.skip_semicolons():
        found.append(reader.statement())
    return found


class _Reader:
    def __init__(self, text: str) -> None:
        self._tokens = list(_tokens(text))
        self._at = 0

    def skip_semicolons(self) -> bool:
        """Whether a statement follows."""
        while self._is_mark(";"):
            self._at += 1
        return self._at < len(self._tokens)

    def statement(self) -> TableStatement | TypeStatement:
        self._expect_words("create")
        kind = self._next().content
        if kind not in ("table", "columnfamily", "type"):
            raise self._error("a CREATE TABLE or CREATE TYPE")
        if self._follows("if"):
            self._expect_words("if", "not", "exists")
        keyspace, name = self._qualified_name()
        self._expect("(")
        if kind == "type":
            return self._type(TypeStatement(keyspace, name))
        return self._table(TableStatement(keyspace, name))

    def _type(self, statement: TypeStatement) -> TypeStatement:
        while not self._is_mark(")"):
            name = self._name()
            statement.fields[name] = self._type_text()
            if not self._is_mark(")"):
                self._expect(",")
        self._expect(")")
        self._expect_end()
        return statement

    def _table(self, statement: TableStatement) -> TableStatement:
        while not self._is_mark(")"):
            if self._follows("primary") and self._follows("key", 1):
                self._primary_key(statement)
            else:
                self._column(statement)
            if not self._is_mark(")"):
                self._expect(",")
        self._expect(")")
        if self._follows("with"):
            self._at += 1
            self._property(statement)
            while self._follows("and"):
                self._at += 1
                self._property(statement)
        self._expect_end()
        unknown = [name for name in statement.partition_key + statement.clustering if name not in statement.columns]
        if unknown or not statement.partition_key:
            raise ConversionError(f"the table {statement.name} has a primary key of {', '.join(unknown) or 'nothing'}")
        return statement

    def _column(self, statement: TableStatement) -> None:
        name = self._name()
        if name in statement.columns:
            raise ConversionError(f"the column {name} of {statement.name} stands twice")
        statement.columns[name] = self._type_text()
        if self._follows("static"):
            self._at += 1
            statement.statics.add(name)
        if self._follows("masked"):
            self._skip_mask()
        if self._follows("primary"):
            self._expect_words("primary", "key")
            statement.partition_key.append(name)

    def _primary_key(self, statement: TableStatement) -> None:
        self._expect_words("primary", "key")
        self._expect("(")
        if self._is_mark("("):
            self._at += 1
            statement.partition_key += self._names()
            self._expect(")")
        else:
            statement.partition_key.append(self._name())
        while self._is_mark(","):
            self._at += 1
            statement.clustering.append(self._name())
        self._expect(")")

    def _property(self, statement: TableStatement) -> None:
        if self._follows("compact"):
            raise ConversionError(f"{statement.name} has COMPACT STORAGE, whose columns the statement does not show")
        if self._follows("clustering"):
            self._expect_words("clustering", "order", "by")
            self._skip_brackets()
            return
        name = self._next().content
        self._expect("=")
        value = self._tokens[self._at] if self._at < len(self._tokens) else None
        if self._is_mark("{"):
            self._skip_brackets()
            return
        self._at += 1
        if name == "comment" and value is not None:
            statement.comment = value.content

    def _names(self) -> list[str]:
        names = [self._name()]
        while self._is_mark(","):
            self._at += 1
            names.append(self._name())
        return names

    def _qualified_name(self) -> tuple[str | None, str]:
        name = self._name()
        if not self._is_mark("."):
            return None, name
        self._at += 1
        return name, self._name()

    def _name(self) -> str:
        token = self._next()
        if token.kind not in ("word", "quoted"):
            self._at -= 1
            raise self._error("a name")
        return token.content

    def _type_text(self) -> str:
        """Read a type as it is written, up to what follows it."""
        start, depth = self._at, 0
        while self._at < len(self._tokens):
            token = self._tokens[self._at]
            ends = token.text in (",", ")") or (token.kind == "word" and token.content in _AFTER_TYPE)
            if depth == 0 and ends:
                break
            depth += {"<": 1, ">": -1}.get(token.text, 0)
            self._at += 1
        if start == self._at:
            raise self._error("a type")
        return " ".join(token.text for token in self._tokens[start : self._at])

    def _skip_mask(self) -> None:
        """MASKED WITH f(…), of 5.0."""
        self._expect_words("masked", "with")
        self._qualified_name()
        if self._is_mark("("):
            self._skip_brackets()

    def _skip_brackets(self) -> None:
        depth = 0
        while True:
            text = self._next().text
            depth += (text in "({[") - (text in ")}]")
            if depth == 0:
                return

    def _expect_end(self) -> None:
        if self._at < len(self._tokens):
            self._expect(";")

    def _expect_words(self, *words: str) -> None:
        for word in words:
            if not self._follows(word):
                raise self._error(word.upper())
            self._at += 1

    def _expect(self, mark: str) -> None:
        if not self._is_mark(mark):
            raise self._error(repr(mark))
        self._at += 1

    def _is_mark(self, mark: str) -> bool:
        return self._at < len(self._tokens) and self._tokens[self._at][:2] == ("mark", mark)

    def _follows(self, word: str, ahead: int = 0) -> bool:
        at = self._at + ahead
        return at < len(self._tokens) and self._tokens[at].kind == "word" and self._tokens[at].content == word

    def _next(self) -> Token:
        if self._at == len(self._tokens):
            raise self._error("more")
        self._at += 1
        return self._tokens[self._at - 1]

    def _error(self, wanted: str) -> ConversionError:
        there = self._tokens[self._at].text if self._at < len(self._tokens) else "the end"
        return ConversionError(f"{wanted} is expected, and {there} stands there")


def _tokens(text: str) -> list[Token]:
    found, at = [], 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            raise ConversionError(f"{text[at : at + 20]!r} is not CQL")
        at = match.end()
        kind, content = str(match.lastgroup), match[str(match.lastgroup)]
        if kind == "space":
            continue
        if kind == "word":
            content = content.lower()
        elif kind in ("quoted", "string"):
            content = content.replace('""', '"') if kind == "quoted" else content.replace("''", "'")
        found.append(Token(kind, match[0], content))
    return found
