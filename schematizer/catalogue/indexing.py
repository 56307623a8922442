"""Keeps the documents of full-text search in step with the catalogue: in the transaction that changes it."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from sqlalchemy import event, select
from sqlalchemy.orm import Session

from schematizer.catalogue import words
from schematizer.catalogue.schemas import elements_of, newest_value
from schematizer.model.client_tables import DataTargetRow
from schematizer.model.record_tables import About, NoteRow, TagRow
from schematizer.model.search_tables import documents
from schematizer.model.source_tables import ElementRow, FieldRow, NamespaceRow, SourceRow, TopicRow, TopicSchemaRow

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_TOUCHED = "schematizer.catalogue.indexing"
_PII_WORDS = "PII personal"


class Document(NamedTuple):
    """A row of search_tables.documents, without its words. `unseen`: what it is also found by, and is not shown."""

    about: About
    namespace: str
    source: str
    name: str
    text: str
    unseen: str = ""


@dataclass(slots=True)
class _Touched:
    """What a flush has written, by id."""

    namespaces: set[int] = field(default_factory=set)
    sources: set[int] = field(default_factory=set)
    topics: set[int] = field(default_factory=set)
    schemas: set[int] = field(default_factory=set)
    fields: set[int] = field(default_factory=set)
    targets: set[int] = field(default_factory=set)

    def note(self, row: object) -> None:
        match row:
            case NamespaceRow():
                self.namespaces.add(row.id)
            case SourceRow():
                self.sources.add(row.id)
            case FieldRow() | TopicRow():
                self.sources.add(row.source_id)
            case TopicSchemaRow():
                self.topics.add(row.topic_id)
            case ElementRow():
                self.schemas.add(row.schema_id)
            case DataTargetRow():
                self.targets.add(row.id)
            case NoteRow() | TagRow():
                self._of(row.about).add(row.about_id)

    def _of(self, about: About) -> set[int]:
        return {
            About.NAMESPACE: self.namespaces,
            About.SOURCE: self.sources,
            About.FIELD: self.fields,
            About.TOPIC: self.topics,
            About.SCHEMA: self.schemas,
            About.DATA_TARGET: self.targets,
        }[about]

    def all_sources(self, session: Session) -> set[int]:
        found = set(self.sources)
        if self.topics:
            found.update(session.scalars(select(TopicRow.source_id).where(TopicRow.id.in_(self.topics))))
        if self.fields:
            found.update(session.scalars(select(FieldRow.source_id).where(FieldRow.id.in_(self.fields))))
        if self.schemas:
            used = select(TopicRow.source_id).join(TopicSchemaRow).where(TopicSchemaRow.schema_id.in_(self.schemas))
            found.update(session.scalars(used))
        return found


@event.listens_for(Session, "after_flush")
def _note(session: Session, _context: object) -> None:
    touched: _Touched = session.info.setdefault(_TOUCHED, _Touched())
    for row in (*session.new, *session.dirty, *session.deleted):
        touched.note(row)


@event.listens_for(Session, "after_flush_postexec")
def _index(session: Session, _context: object) -> None:
    touched: _Touched | None = session.info.pop(_TOUCHED, None)
    if touched is None:
        return
    with session.no_autoflush:
        for namespace_id in touched.namespaces:
            index_namespace(session, namespace_id)
        for source_id in touched.all_sources(session):
            index_source(session, source_id)
        for target_id in touched.targets:
            index_target(session, target_id)


def index_namespace(session: Session, namespace_id: int) -> None:
    row = session.get_one(NamespaceRow, namespace_id)
    said = _Said(session, [(About.NAMESPACE, row.id)])
    said_of_it = (said.text(About.NAMESPACE, row.id, row.doc), said.unseen(About.NAMESPACE, row.id, row.owner))
    _store(session, row.name, "", [Document(About.NAMESPACE, row.name, "", row.name, *said_of_it)])


def index_source(session: Session, source_id: int) -> None:
    """The source, its topics, and the fields of its newest schema."""
    row = session.get_one(SourceRow, source_id)
    _store(session, row.namespace.name, row.name, list(_documents(session, row)))


def index_target(session: Session, target_id: int) -> None:
    row = session.get_one(DataTargetRow, target_id)
    said = _Said(session, [(About.DATA_TARGET, row.id)])
    text = said.text(About.DATA_TARGET, row.id, row.doc, row.destination)
    unseen = said.unseen(About.DATA_TARGET, row.id, row.owner, row.kind)
    _store_one(session, Document(About.DATA_TARGET, "", "", row.name, text, unseen))


def _documents(session: Session, row: SourceRow) -> Iterator[Document]:
    topics = session.scalars(select(TopicRow).where(TopicRow.source_id == row.id)).all()
    fields = session.scalars(select(FieldRow).where(FieldRow.source_id == row.id)).all()
    used = select(TopicSchemaRow.schema_id).join(TopicRow).where(TopicRow.source_id == row.id).distinct()
    schema_ids = list(session.scalars(used))
    about = [(About.SOURCE, row.id), *((About.TOPIC, topic.id) for topic in topics)]
    about += [(About.FIELD, each.id) for each in fields] + [(About.SCHEMA, each) for each in schema_ids]
    said = _Said(session, about)
    place = (row.namespace.name, row.name)
    text = said.text(About.SOURCE, row.id, row.doc, *(said.text(About.SCHEMA, each) for each in schema_ids))
    tags = (said.unseen(About.SCHEMA, each) for each in schema_ids)
    yield Document(About.SOURCE, *place, row.name, text, said.unseen(About.SOURCE, row.id, row.owner, *tags))
    for topic in topics:
        unseen = said.unseen(About.TOPIC, topic.id, topic.kind.value)
        yield Document(About.TOPIC, *place, topic.name, said.text(About.TOPIC, topic.id), unseen)
    newest = newest_value(session, row)
    for element in elements_of(session, newest.schema_id, newest) if newest is not None else ():
        if element.path:
            pii = _PII_WORDS if element.is_pii else None
            text = said.text(About.FIELD, element.field_id, element.doc)
            unseen = said.unseen(About.FIELD, element.field_id, element.owner, pii, *place)
            yield Document(About.FIELD, *place, element.path, text, unseen)


class _Said:
    """The notes and tags of some things."""

    def __init__(self, session: Session, about: Iterable[tuple[About, int]]) -> None:
        ids: defaultdict[About, list[int]] = defaultdict(list)
        for kind, about_id in about:
            ids[kind].append(about_id)
        self._notes: defaultdict[tuple[About, int], list[str]] = defaultdict(list)
        self._tags: defaultdict[tuple[About, int], list[str]] = defaultdict(list)
        for kind, wanted in ids.items():
            for note in session.execute(
                select(NoteRow.about_id, NoteRow.text)
                .where(NoteRow.about == kind, NoteRow.about_id.in_(wanted))
                .order_by(NoteRow.id)
            ):
                self._notes[kind, note.about_id].append(note.text)
            for tag in session.execute(
                select(TagRow.about_id, TagRow.name)
                .where(TagRow.about == kind, TagRow.about_id.in_(wanted))
                .order_by(TagRow.name)
            ):
                self._tags[kind, tag.about_id].append(tag.name)

    def text(self, about: About, about_id: int | None, *more: str | None) -> str:
        """With its notes; no notes without an id."""
        return _lines(more, self._notes[about, about_id] if about_id is not None else ())

    def unseen(self, about: About, about_id: int | None, *more: str | None) -> str:
        """With its tags, as text."""
        return _lines(more, self._tags[about, about_id] if about_id is not None else ())


def _lines(*texts: Iterable[str | None]) -> str:
    return "\n".join(each for some in texts for each in some if each)


def _store(session: Session, namespace: str, source: str, wanted: list[Document]) -> None:
    """Writes what differs, and removes what is no longer wanted."""
    query = select(documents).where(documents.c.namespace == namespace, documents.c.source == source)
    known: dict[tuple[str, str], Any] = {(row.about, row.name): row for row in session.execute(query)}
    for document in wanted:
        old = known.pop((document.about.value, document.name), None)
        _write(session, document, old)
    for row in known.values():
        session.execute(documents.delete().where(documents.c.id == row.id))


def _store_one(session: Session, document: Document) -> None:
    query = select(documents).where(
        documents.c.about == document.about.value, documents.c.namespace == "", documents.c.name == document.name
    )
    _write(session, document, session.execute(query).first())


def _write(session: Session, document: Document, old: Any) -> None:  # noqa: ANN401 - a row
    text_words = words.text_words(f"{document.text} {document.unseen}")
    if old is not None and (old.text, old.text_words) == (document.text, text_words):
        return
    values = {"text": document.text, "name_words": words.name_words(document.name), "text_words": text_words}
    if old is not None:
        session.execute(documents.update().where(documents.c.id == old.id).values(values))
    else:
        place = {"namespace": document.namespace, "source": document.source, "name": document.name}
        session.execute(documents.insert().values(about=document.about.value, **place, **values))
