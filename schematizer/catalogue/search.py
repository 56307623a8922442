"""Full-text search over names, docs, owners, notes and tags: SQLite's FTS5, or PostgreSQL's tsvector."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlalchemy import func, select, text

from schematizer.catalogue import indexing, words
from schematizer.errors import invalid
from schematizer.model.client_tables import DataTargetRow
from schematizer.model.record_tables import About
from schematizer.model.search_tables import POSTGRESQL_VECTOR, SQLITE_INDEX, documents
from schematizer.model.source_tables import NamespaceRow, SourceRow
from schematizer.views import Found

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from sqlalchemy import TextClause
    from sqlalchemy.orm import Session

    from schematizer.model.database import Database

    Sees = Callable[[str | None, str], bool]

_MAX_WORDS = 8
_LOOKED_AT = 500
"""How many documents are read, at most, for those that the asker may see."""
_BEFORE = 40
_SNIPPET = 180
_COLUMNS = "d.about, d.namespace, d.source, d.name, d.text"
_WEIGHT = "CASE d.about WHEN 'topic' THEN 0.5 ELSE 1.0 END"
"""A source stands before its topics."""
# A word in the name counts ten times, and what has the query as its name comes first.
_SQLITE = text(
    f"SELECT {_COLUMNS} FROM {SQLITE_INDEX} i JOIN search_documents d ON d.id = i.rowid "  # noqa: S608 - our names
    f"WHERE {SQLITE_INDEX} MATCH :query "
    f"ORDER BY lower(d.name) <> :name, bm25({SQLITE_INDEX}, 10.0, 1.0) * {_WEIGHT}, d.name, d.id LIMIT :limit"
)
_POSTGRESQL = text(
    f"SELECT {_COLUMNS} FROM search_documents d, to_tsquery('simple'::regconfig, :query) q "  # noqa: S608 - our names
    f"WHERE {POSTGRESQL_VECTOR} @@ q "
    f"ORDER BY lower(d.name) <> :name, ts_rank({POSTGRESQL_VECTOR}, q) * {_WEIGHT} DESC, d.name, d.id LIMIT :limit"
)


class Search:
    def __init__(self, database: Database) -> None:
        self._database = database

    def find(self, query: str, limit: int = 20, may_see: Sees = lambda *_: True) -> list[Found]:
        """What has all words of the query, or words that they begin; the best first. `may_see` says it of a namespace
        and a name; the namespace is None for data targets. INVALID in a database without full-text search.
        """
        wanted = words.words(query)[:_MAX_WORDS]
        if not wanted:
            return []

        def transaction(session: Session) -> Sequence[Any]:
            statement, asked = _statement(session, wanted)
            return session.execute(
                statement, {"query": asked, "name": query.strip().lower(), "limit": _LOOKED_AT}
            ).fetchall()

        rows = self._database.read_session(transaction)
        seen = [row for row in rows if may_see(row.namespace or None, row.name)]
        return [
            Found(
                about=About(row.about),
                namespace=row.namespace or None,
                source=row.source or None,
                name=row.name,
                snippet=_snippet(row.text, wanted),
            )
            for row in seen[:limit]
        ]

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


def _statement(session: Session, wanted: list[str]) -> tuple[TextClause, str]:
    """The words are letters and digits: they need no escape."""
    match session.get_bind().dialect.name:
        case "sqlite":
            return _SQLITE, " ".join(f'"{word}"*' for word in wanted)
        case "postgresql":
            return _POSTGRESQL, " & ".join(f"'{word}':*" for word in wanted)
        case name:
            raise invalid(f"The database {name} has no full-text search here.", "Use SQLite or PostgreSQL.")


def _snippet(text_: str, wanted: list[str]) -> str:
    """One line around the first match."""
    plain = " ".join(text_.split())
    start = max(0, words.first_match(plain, wanted) - _BEFORE)
    if start:
        start = plain.find(" ", start) + 1 or start
    cut = plain[start : start + _SNIPPET]
    return ("…" if start else "") + cut + ("…" if start + _SNIPPET < len(plain) else "")
