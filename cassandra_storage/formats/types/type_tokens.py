"""The tokens of a text that names a type, read one after another, and what both kinds of such texts have in common."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from cassandra_storage.formats.errors import FormatError
from cassandra_storage.formats.types.marshal import CqlType, ListType, MapType, SetType, UserType

if TYPE_CHECKING:
    import re

DEEPEST = 100  # types within types: readers of values recurse as deep
LARGEST_DIMENSION = 2**31 - 1  # of a vector


class TypeTokens:
    """Reads (kind, content) pairs. `pattern` has a group for each kind; `mark` is that of punctuation.

    problem: how errors begin, such as "no CQL type". FormatError where the text is none or ends.
    """

    def __init__(self, text: str, pattern: re.Pattern[str], problem: str) -> None:
        self.text = text
        self._problem = problem
        self.tokens = list(self._split(pattern))
        self.at = 0

    def expect_end(self) -> None:
        if self.at != len(self.tokens):
            raise self.error()

    def next(self) -> tuple[str, str]:
        if self.at == len(self.tokens):
            raise self.error()
        self.at += 1
        return self.tokens[self.at - 1]

    def next_of(self, kind: str) -> str:
        """The content of the next token, which must be of this kind."""
        found, content = self.next()
        if found != kind:
            raise self.error()
        return content

    def follows(self, mark: str) -> bool:
        return self.at < len(self.tokens) and self.tokens[self.at] == ("mark", mark)

    def expect(self, mark: str) -> None:
        if not self.follows(mark):
            raise self.error()
        self.at += 1

    def error(self) -> FormatError:
        return FormatError(f"{self._problem}: {self.text[:200]!r}")

    def _split(self, pattern: re.Pattern[str]) -> list[tuple[str, str]]:
        found = []
        text = self.text.rstrip()
        position = 0
        while position < len(text):
            match = pattern.match(text, position)
            if match is None or match.lastgroup is None:
                raise FormatError(f"{self._problem}: {text[:200]!r}", position=position)
            found.append((match.lastgroup, match[match.lastgroup]))
            position = match.end()
        return found


def frozen(type_: CqlType) -> CqlType:
    """The type as it is inside another one."""
    if isinstance(type_, ListType | SetType | MapType | UserType):
        return replace(type_, is_multi_cell=False)
    return type_
