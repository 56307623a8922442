"""Keeps the documents of full-text search in step with the catalogue: in the transaction that changes it."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any, NamedTuple

from sqlalchemy import Select, and_, bindparam, event, or_, select
from sqlalchemy.orm import Session

from cdc_common.clients.registry.kinds import About
from schematizer.catalogue import words
from schematizer.catalogue.schemas import newest_value
from schematizer.model.client_tables import DataTargetRow
from schematizer.model.record_tables import NoteRow, TagRow
from schematizer.model.search_tables import documents
from schematizer.model.source_tables import ElementRow, FieldRow, NamespaceRow, SourceRow, TopicRow, TopicSchemaRow

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from sqlalchemy.orm import InstrumentedAttribute

_TOUCHED = "schematizer.catalogue.indexing"
_PII_WORDS = "PII personal"
_OF_SOURCES = [About.SOURCE.value, About.TOPIC.value, About.FIELD.value]


class Document(NamedTuple):
    """A row of search_tables.documents, without its words."""

    # The kind of thing.
    about: About
    # The name of its namespace.
    namespace: str
    # The name of its source.
    source: str
    # Its name.
    name: str
    # The text that a search shows.
    text: str
    # Text that finds it as well, and is not shown.
    unseen: str = ""


@event.listens_for(Session, "after_flush")
def _note(session: Session, _context: object) -> None:
    """A row whose lists alone have changed is not written, and says nothing new."""
    changed = (row for row in session.dirty if session.is_modified(row, include_collections=False))
    session.info.setdefault(_TOUCHED, []).extend((*session.new, *changed, *session.deleted))


@event.listens_for(Session, "before_commit")
def _index(session: Session) -> None:
    """Index once what the transaction has changed."""
    session.flush()
    touched = _Touched(session)
    for row in session.info.pop(_TOUCHED, ()):
        touched.note(row)
    for namespace in touched.namespaces:
        index_namespace(session, namespace)
    for source in touched.sources:
        index_source(session, source)
    for target in touched.targets:
        index_target(session, target)


class _Touched:
    """The rows that have to be indexed because of rows that were written."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self.namespaces: set[NamespaceRow] = set()
        self.sources: set[SourceRow] = set()
        self.targets: set[DataTargetRow] = set()

    def note(self, row: object) -> None:
        match row:
            case NamespaceRow():
                self.namespaces.add(row)
            case SourceRow():
                self.sources.add(row)
            case FieldRow() | TopicRow():
                self.sources.add(row.source)
            case TopicSchemaRow():
                self.sources.add(row.topic.source)
            case DataTargetRow():
                self.targets.add(row)
            case NoteRow() | TagRow():
                self._note_about(row.about, row.about_id)

    def _note_about(self, about: About, about_id: int) -> None:
        match about:
            case About.NAMESPACE:
                self.namespaces.add(self._session.get_one(NamespaceRow, about_id))
            case About.SOURCE:
                self.sources.add(self._session.get_one(SourceRow, about_id))
            case About.FIELD:
                self.sources.add(self._session.get_one(FieldRow, about_id).source)
            case About.TOPIC:
                self.sources.add(self._session.get_one(TopicRow, about_id).source)
            case About.SCHEMA:
                used = select(SourceRow).join(TopicRow).join(TopicSchemaRow).where(TopicSchemaRow.schema_id == about_id)
                self.sources.update(self._session.scalars(used))
            case About.DATA_TARGET:
                self.targets.add(self._session.get_one(DataTargetRow, about_id))


def index_namespace(session: Session, row: NamespaceRow) -> None:
    said = _Said(session, {About.NAMESPACE: [row.id]})
    text, unseen = _lines([row.doc], said.notes(About.NAMESPACE)), _lines([row.owner], said.tags(About.NAMESPACE))
    _store(session, row.name, "", [Document(About.NAMESPACE, row.name, "", row.name, text, unseen)])


def index_source(session: Session, row: SourceRow) -> None:
    """The source, its topics, and the fields of its newest schema."""
    found = {
        (document.about, document.name): document for document in _documents(session, row)
    }  # records of a union may share a path
    _store(session, row.namespace.name, row.name, list(found.values()))


def index_target(session: Session, row: DataTargetRow) -> None:
    said = _Said(session, {About.DATA_TARGET: [row.id]})
    text = _lines([row.doc, row.destination], said.notes(About.DATA_TARGET))
    unseen = _lines([row.owner, row.kind], said.tags(About.DATA_TARGET))
    _store_one(session, Document(About.DATA_TARGET, "", "", row.name, text, unseen))


def _documents(session: Session, row: SourceRow) -> Iterator[Document]:
    schema_ids = select(TopicSchemaRow.schema_id).join(TopicRow).where(TopicRow.source_id == row.id)
    said = _Said(
        session,
        {
            About.SOURCE: [row.id],
            About.TOPIC: [topic.id for topic in row.topics],
            About.FIELD: [field.id for field in row.fields],
            About.SCHEMA: schema_ids,
        },
    )
    place = (row.namespace.name, row.name)
    text = _lines([row.doc], said.notes(About.SOURCE, row.id), said.notes(About.SCHEMA))
    unseen = _lines([row.owner], said.tags(About.SOURCE, row.id), said.tags(About.SCHEMA))
    yield Document(About.SOURCE, *place, row.name, text, unseen)
    for topic in row.topics:
        unseen = _lines([topic.kind.value], said.tags(About.TOPIC, topic.id))
        yield Document(About.TOPIC, *place, topic.name, _lines(said.notes(About.TOPIC, topic.id)), unseen)
    newest = newest_value(session, row)
    if newest is not None:
        yield from _of_fields(session, row, newest.schema_id, said)


def _of_fields(session: Session, row: SourceRow, schema_id: int, said: _Said) -> Iterator[Document]:
    place, known = (row.namespace.name, row.name), {field.path: field for field in row.fields}
    query = select(ElementRow).where(ElementRow.schema_id == schema_id, ElementRow.path != "")
    for element in session.scalars(query.order_by(ElementRow.position)):
        path, doc, types = element.path, element.doc, [element.type, element.source_type]
        field = known.get(path)
        if field is None:
            yield Document(About.FIELD, *place, path, doc or "", _lines(place, types))
        else:
            text = _lines([field.doc or doc], said.notes(About.FIELD, field.id))
            words_besides = (field.owner, _PII_WORDS if field.is_pii else None, *place, *types)
            yield Document(About.FIELD, *place, path, text, _lines(words_besides, said.tags(About.FIELD, field.id)))


class _Said:
    """The notes and tags of some things: ids by kind, or a query for them."""

    def __init__(self, session: Session, about: Mapping[About, list[int] | Select[int]]) -> None:
        self._notes = _by_thing(session, NoteRow, about, NoteRow.text, NoteRow.id)
        self._tags = _by_thing(session, TagRow, about, TagRow.name, TagRow.name)

    def notes(self, about: About, about_id: int | None = None) -> list[str]:
        """The notes on one thing, or on all things of the kind."""
        return _of(self._notes[about], about_id)

    def tags(self, about: About, about_id: int | None = None) -> list[str]:
        return _of(self._tags[about], about_id)


def _by_thing(
    session: Session,
    table: type[NoteRow | TagRow],
    about: Mapping[About, list[int] | Select[int]],
    text: InstrumentedAttribute[str],
    order: InstrumentedAttribute[Any],
) -> dict[About, dict[int, list[str]]]:
    """Texts by the id of what they are about, of each kind."""
    some = {kind: ids for kind, ids in about.items() if isinstance(ids, Select) or ids}
    wanted = or_(*(and_(table.about == kind, table.about_id.in_(ids)) for kind, ids in some.items()))
    query = select(table.about, table.about_id, text).where(wanted).order_by(table.about_id, order)
    found: dict[About, dict[int, list[str]]] = {kind: defaultdict(list) for kind in about}
    for kind, about_id, said in session.execute(query):
        found[kind][about_id].append(said)
    return found


def _of(texts: dict[int, list[str]], about_id: int | None) -> list[str]:
    if about_id is not None:
        return texts.get(about_id, [])
    return [document for of_one in texts.values() for document in of_one]


def _lines(*texts: Iterable[str | None]) -> str:
    return "\n".join(text for some in texts for text in some if text)


def _store(session: Session, namespace: str, source: str, wanted: list[Document]) -> None:
    """Writes what differs, and removes what is no longer wanted."""
    kinds = _OF_SOURCES if source else [About.NAMESPACE.value]  # named, as the index begins with it
    place = (documents.c.about.in_(kinds), documents.c.namespace == namespace, documents.c.source == source)
    query = select(documents).where(*place)
    known: dict[tuple[str, str], Any] = {(row.about, row.name): row for row in session.execute(query)}
    _write(session, [(document, known.pop((document.about.value, document.name), None)) for document in wanted])
    if known:
        session.execute(documents.delete().where(documents.c.id.in_([row.id for row in known.values()])))


def _store_one(session: Session, document: Document) -> None:
    query = select(documents).where(
        documents.c.about == document.about.value, documents.c.namespace == "", documents.c.name == document.name
    )
    _write(session, [(document, session.execute(query).first())])


def _write(session: Session, wanted: list[tuple[Document, Any]]) -> None:
    """Write the changed documents. Each comes with the row that it has, or None."""
    added, changed = [], []
    for document, old in wanted:
        text_words = words.text_words(f"{document.text} {document.unseen}")
        values = {"text": document.text, "name_words": words.name_words(document.name), "text_words": text_words}
        if old is None:
            place = {"namespace": document.namespace, "source": document.source, "name": document.name}
            added.append({"about": document.about.value, **place, **values})
        elif (old.text, old.text_words) != (document.text, text_words):
            changed.append({"document": old.id, **values})
    connection = session.connection()
    if added:
        connection.execute(documents.insert(), added)
    if changed:
        connection.execute(documents.update().where(documents.c.id == bindparam("document")), changed)
