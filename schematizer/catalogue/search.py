"""Full-text search over names, types, docs, owners, notes and tags: SQLite's FTS5, or PostgreSQL's tsvector."""

from __future__ import annotations

from itertools import islice, product
from typing import TYPE_CHECKING, Any, NamedTuple

from sqlalchemy import Float, Integer, and_, case, column, func, literal, literal_column, or_, select, table

from cdc_common.clients.registry.kinds import About
from cdc_common.clients.registry.views import Found
from schematizer.access import EVERYTHING
from schematizer.catalogue import indexing, near_words, words
from schematizer.catalogue.readable import is_readable_namespace, is_readable_target
from schematizer.errors import invalid
from schematizer.model.client_tables import DataTargetRow
from schematizer.model.search_tables import POSTGRESQL_VECTOR, SQLITE_INDEX, documents
from schematizer.model.source_tables import NamespaceRow, SourceRow

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sqlalchemy import ColumnElement, Select
    from sqlalchemy.orm import Session

    from schematizer.access import Grants
    from schematizer.model.database import Database

_MAX_WORDS = 8
_MOST_TRIES = 9
_MOST_DOCUMENTS = 2_000
_WORDS = (documents.c.name_words, documents.c.text_words)
_BEFORE = 40
_SNIPPET = 180
_COLUMNS = (documents.c.about, documents.c.namespace, documents.c.source, documents.c.name, documents.c.text)
_WEIGHT: ColumnElement[float] = literal_column("CASE search_documents.about WHEN 'topic' THEN 0.5 ELSE 1.0 END", Float)
"""A source stands before its topics."""


class Near(NamedTuple):
    """Hits of words that are nearly those that were asked for."""

    # The words that it has.
    words: str
    # The hits, the best first.
    found: list[Found]


class Search:
    def __init__(self, database: Database) -> None:
        self._database = database

    def find(self, query: str, limit: int = 20, grants: Grants = EVERYTHING) -> list[Found]:
        """Find what has all words of the query, or words that they begin, of what the grants may read; the best first.
        A data target is shown to readers of every namespace that it reads. INVALID in a database without full-text
        search.
        """
        wanted = words.words(query)[:_MAX_WORDS]
        if not wanted:
            return []

        def transaction(session: Session) -> Sequence[Any]:
            matching = _matching(session, wanted, query.strip().lower())
            return session.execute(matching.where(_is_readable(grants)).limit(limit)).fetchall()

        return [
            Found(
                about=About(row.about),
                namespace=row.namespace or None,
                source=row.source or None,
                name=row.name,
                snippet=_snippet(row.text, wanted),
            )
            for row in self._database.read_session(transaction)
        ]

    def find_near(self, query: str, limit: int = 20, grants: Grants = EVERYTHING) -> Near | None:
        """Find what has words that are nearly those of the query; None if nothing has. Only what the grants may read
        says which words there are.
        """
        wanted = words.words(query)[:_MAX_WORDS]
        choices = [self._near(word, grants) for word in wanted]
        for chosen in islice(product(*choices), _MOST_TRIES):
            text = " ".join(chosen)
            if text != " ".join(wanted) and (found := self.find(text, limit, grants)):
                return Near(text, found)
        return None

    def _near(self, word: str, grants: Grants) -> list[str]:
        """The word itself if something has it, otherwise those that are near."""
        if self.find(word, 1, grants) or not near_words.edits(word):
            return [word]
        has = [place.contains(piece) for piece in near_words.pieces(word) for place in _WORDS]
        count = sum((case((one, 1), else_=0) for one in has), literal(0))
        query = select(*_WORDS).where(or_(*has), _is_readable(grants)).order_by(count.desc()).limit(_MOST_DOCUMENTS)
        rows = self._database.read_session(lambda session: session.execute(query).fetchall())
        return near_words.nearest(word, (known for row in rows for text in row for known in text.split()))

    def build(self) -> None:
        """Makes the documents of a catalogue that has none: one from before full-text search, or from a backup."""

        def is_missing(session: Session) -> bool:
            return (
                session.execute(select(func.count()).select_from(documents)).scalar_one() == 0
                and session.scalar(select(NamespaceRow.id).limit(1)) is not None
            )

        if self._database.read_session(is_missing):
            self._database.write_session(_build)


def _build(session: Session) -> None:
    for namespace in session.scalars(select(NamespaceRow)).all():
        indexing.index_namespace(session, namespace)
    for source in session.scalars(select(SourceRow)).all():
        indexing.index_source(session, source)
    for target in session.scalars(select(DataTargetRow)).all():
        indexing.index_target(session, target)


def _is_readable(grants: Grants) -> ColumnElement[bool]:
    """The condition that a document is readable with these grants."""
    is_target = documents.c.about == About.DATA_TARGET.value
    targets = select(DataTargetRow.name).where(is_readable_target(grants))
    return or_(
        and_(is_target, documents.c.name.in_(targets)),
        and_(~is_target, is_readable_namespace(documents.c.namespace, grants)),
    )


def _matching(session: Session, wanted: list[str], name: str) -> Select[*tuple[Any, ...]]:
    """Documents with all the words, the best first: a word in the name counts ten times, and what has the query as its
    name comes first. The words are letters and digits: they need no escape.
    """
    match session.get_bind().dialect.name:
        case "sqlite":
            index = table(SQLITE_INDEX, column("rowid", Integer))
            rank = literal_column(f"bm25({SQLITE_INDEX}, 10.0, 1.0)", Float) * _WEIGHT
            found = index.join(documents, documents.c.id == index.c.rowid)
            is_match = literal_column(SQLITE_INDEX).match(" ".join(f'"{word}"*' for word in wanted))
            query = select(*_COLUMNS).select_from(found).where(is_match)
        case "postgresql":
            asked = func.to_tsquery(literal_column("'simple'::regconfig"), " & ".join(f"'{word}':*" for word in wanted))
            vector: ColumnElement[Any] = literal_column(POSTGRESQL_VECTOR)
            rank = (func.ts_rank(vector, asked, type_=Float) * _WEIGHT).desc()
            query = select(*_COLUMNS).where(vector.bool_op("@@")(asked))
        case name_:
            raise invalid(f"The database {name_} has no full-text search here.", "Use SQLite or PostgreSQL.")
    return query.order_by(func.lower(documents.c.name) != name, rank, documents.c.name, documents.c.id)


def _snippet(text_: str, wanted: list[str]) -> str:
    """One line around the first match."""
    plain = " ".join(text_[: words.MAX_LENGTH].split())
    start = max(0, words.first_match(plain, wanted) - _BEFORE)
    if start:
        start = plain.find(" ", start) + 1 or start
    cut = plain[start : start + _SNIPPET]
    return ("…" if start else "") + cut + ("…" if start + _SNIPPET < len(plain) else "")
