"""Pieces of CQL with their values beside them, so that a statement can be written with literals or with markers."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from dev.verify.model.values import Value

if TYPE_CHECKING:
    from collections.abc import Iterable


class KeyPart(NamedTuple):
    """The place of a partition key column's value, which follows from the partition's number."""

    # The position of the column in the partition key.
    position: int


Term: TypeAlias = Value | KeyPart


class Cql(NamedTuple):
    """A piece of CQL."""

    # The text: `?` for each of its values, `$k` for the keyspace.
    text: str
    # The values, in order.
    terms: tuple[Term, ...] = ()

    def with_increments(self, value: Value) -> Cql:
        """The same UPDATE of counters with another value for each increment: these come before the key's."""
        count = self.text.partition(" WHERE ")[0].count("?")
        return self._replace(terms=(*(value for _ in range(count)), *self.terms[count:]))


def cql(template: str, *pieces: Cql | Term | str) -> Cql:
    """The template with a piece for each `{}`."""
    texts: list[str] = []
    terms: list[Term] = []
    for piece in pieces:
        if isinstance(piece, Cql):
            texts.append(piece.text)
            terms += piece.terms
        elif isinstance(piece, str):
            texts.append(piece)
        else:
            texts.append("?")
            terms.append(piece)
    return Cql(template.format(*texts), tuple(terms))


def joined(separator: str, pieces: Iterable[Cql | Term]) -> Cql:
    listed = list(pieces)
    return cql(separator.join("{}" for _ in listed), *listed)
