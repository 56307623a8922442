"""Registration: a description becomes schemas, and these get a topic."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from cdc_common.clients.registry.kinds import Part, Status
from cdc_common.clients.registry.views import Registration
from schematizer.avro_schemas import elements
from schematizer.avro_schemas.parsing import AvroSchema, InvalidSchemaError, parse
from schematizer.catalogue import documenting, lookups
from schematizer.catalogue.usage import touch
from schematizer.converters.converted import ConversionError, Converted, FieldDocumentation
from schematizer.converters.formats import all_converters
from schematizer.errors import conflict, invalid, not_found
from schematizer.model import registry_queries
from schematizer.model.record_tables import DecisionRow
from schematizer.registration import assign
from schematizer.registration.decide import NewSchema, Verdict, decide
from schematizer.registration.register_version import NewVersion, register_version
from schematizer.topic_names import subject_of

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

    from schematizer.catalogue.rules import Rules
    from schematizer.model.database import Database
    from schematizer.model.source_tables import SourceRow, TopicRow


@dataclass(frozen=True, slots=True)
class Description:
    """A description to register."""

    # The name of the namespace.
    namespace: str
    # The format of the description.
    format: str
    # The description.
    text: str
    # The name of the source; None for the description's own name.
    source: str | None = None
    # The Avro schema of the keys, for the format avro.
    key: str | None = None
    # The owner of the source.
    owner: str | None = None
    # The documentation of the source.
    doc: str | None = None
    # The documentation of fields besides the description's own, by path.
    fields: Mapping[str, FieldDocumentation] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Wanted:
    """A description that was converted, before any question to the database."""

    description: Description
    converted: Converted
    source: str
    value: AvroSchema
    key: str | None


class Registering:
    """Registrations; each is one transaction, and nothing of it is there if it fails."""

    def __init__(self, database: Database, rules: Rules) -> None:
        self._database = database
        self._rules = rules
        self._converters = all_converters()

    def formats(self) -> list[str]:
        return sorted(self._converters)

    def register(self, description: Description, *, by: str) -> Registration:
        """Register a schema. Idempotent: the same description has the same topic and ids. INVALID for one that cannot
        be converted, or that lacks the documentation that its namespace requires; CONFLICT for a schema that is
        read-only or disabled.
        """
        wanted = self._convert(description)

        def transaction(session: Session) -> Registration:
            source = lookups.ensure_source(session, by, description.namespace, wanted.source)
            documenting.apply_registration(session, by, source, _documentation(wanted))
            self._require_documentation(source, wanted)
            new = _new_schema(source, wanted)
            known = assign.topic_with(session, source, new, self._rules.pii_prefix)
            if known is not None:
                return _known(session, known, new, wanted)
            return self._assign(session, by, source, new, wanted)

        return self._database.write_session(transaction)

    def check(self, description: Description) -> Verdict:
        """Return the decision about a description, without registering. INVALID as register."""
        wanted = self._convert(description)

        def transaction(session: Session) -> Verdict:
            source = lookups.find_source(session, description.namespace, wanted.source)
            new = _new_schema(source, wanted)
            if source is None:
                return decide(new, None)
            known = assign.topic_with(session, source, new, self._rules.pii_prefix)
            if known is not None:
                return assign.there_already(known)
            return decide(new, assign.newest_topic(session, source, self._rules.pii_prefix))

        return self._database.read_session(transaction)

    def _convert(self, description: Description) -> _Wanted:
        converter = self._converters.get(description.format)
        if converter is None:
            raise not_found("format", description.format, f"Choose one of {', '.join(self.formats())}.")
        try:
            converted = converter.convert(description.text, description.namespace)
            value = parse(converted.value)
            elements.check_number(value.canonical)
            key_text = description.key or converted.key
            key = parse(key_text).canonical if key_text else None
            if key is not None:
                elements.check_number(key)
        except (ConversionError, InvalidSchemaError) as error:
            problem = f"The {description.format} for {description.namespace} cannot be registered: {error}."
            raise invalid(problem, "Correct the description.") from error
        source = description.source or converted.source
        if source is None:
            raise invalid("The description names no source.", "Name it in the request.")
        lookups.checked_name("source", source)
        lookups.checked_name("namespace", description.namespace)
        return _Wanted(description, converted, source, value, key)

    def _require_documentation(self, source: SourceRow, wanted: _Wanted) -> None:
        namespace = wanted.description.namespace
        if not any(fnmatchcase(namespace, pattern) for pattern in self._rules.documented_namespaces):
            return
        missing = [] if source.doc else ["the doc of the source"]
        if not (source.owner or source.namespace.owner):
            missing.append("an owner of the source or of its namespace")
        said = {row.path for row in source.fields if row.doc}
        found = elements.elements(wanted.value.canonical)
        missing += [f"the doc of {element.path}" for element in found if not element.doc and element.path not in said]
        if missing:
            raise invalid(
                f"{namespace}/{wanted.source} lacks {', '.join(missing)}.",
                "Add them to the description or the request, or apply a documentation file first: the namespace is in "
                "schematizer.documented_namespaces.",
            )

    def _assign(self, session: Session, by: str, source: SourceRow, new: NewSchema, wanted: _Wanted) -> Registration:
        newest = assign.newest_topic(session, source, self._rules.pii_prefix)
        verdict = decide(new, newest)
        if verdict.is_new_topic or newest is None:
            topic = assign.add_topic(session, by, source, new, self._rules.pii_prefix)
        else:
            topic = lookups.topic_row(session, newest.name)
            topic.pii = "\n".join(sorted({*lookups.lines(topic.pii), *new.pii}))
        value_id = _store(session, by, topic, Part.VALUE, wanted, new)
        key_id = None if new.key is None else _store(session, by, topic, Part.KEY, wanted, new)
        session.add(
            DecisionRow(
                source_id=source.id,
                topic_id=topic.id,
                schema_id=value_id,
                is_new_topic=verdict.is_new_topic,
                rule=verdict.rule.value,
                reason=verdict.reason,
            )
        )
        return _registration(topic, value_id, key_id, verdict, is_new_schema=True)


def _documentation(wanted: _Wanted) -> documenting.Documentation:
    """The request's documentation comes before the description's."""
    fields = dict(wanted.converted.fields)
    for path, given in wanted.description.fields.items():
        own = fields.get(path, FieldDocumentation())
        fields[path] = FieldDocumentation(
            given.doc if given.doc is not None else own.doc,
            given.owner if given.owner is not None else own.owner,
            given.is_pii if given.is_pii is not None else own.is_pii,
        )
    description = wanted.description
    return documenting.Documentation(
        description.doc or wanted.converted.doc,
        description.owner or wanted.converted.owner,
        fields,
        frozenset(wanted.converted.fields.keys() - description.fields.keys()),
    )


def _new_schema(source: SourceRow | None, wanted: _Wanted) -> NewSchema:
    known = {row.path: row.is_pii for row in source.fields} if source is not None else {}
    said = {
        path: described.is_pii
        for path, described in _documentation(wanted).fields.items()
        if described.is_pii is not None
    }
    flags = [path for path, is_pii in {**known, **said}.items() if is_pii]
    paths = frozenset(element.path for element in elements.elements(wanted.value.canonical))
    pii = frozenset(path for path in paths if elements.is_within(path, flags))
    primary_key = wanted.converted.primary_key
    if not primary_key and wanted.key is not None:
        primary_key = tuple(element.path for element in elements.elements(wanted.key) if element.path)
    return NewSchema(wanted.value, wanted.key, primary_key, paths, pii)


def _known(session: Session, topic: TopicRow, new: NewSchema, wanted: _Wanted) -> Registration:
    """The registration of a schema that its topic has."""
    value = assign.schema_in(session, topic, Part.VALUE, new.schema.canonical)
    key = None if new.key is None else assign.schema_in(session, topic, Part.KEY, new.key)
    assert value is not None
    for what, status in ((f"The schema {value.schema_id} in {topic.name}", value.status), (topic.name, topic.status)):
        if status is not Status.READ_WRITE:
            raise conflict(
                f"{what} is {status.value}; the description of {wanted.description.namespace}/{wanted.source} is its.",
                "Register another schema, or set its status to read-write.",
            )
    touch(topic, *(row for row in (value, key) if row is not None))
    return _registration(
        topic, value.schema_id, key.schema_id if key else None, assign.there_already(topic), is_new_schema=False
    )


def _store(  # noqa: PLR0913, PLR0917 - a schema and its place
    session: Session, by: str, topic: TopicRow, part: Part, wanted: _Wanted, new: NewSchema
) -> int:
    """Register a schema as a version of the topic's subject. Return the schema's id."""
    text = new.schema.canonical if part is Part.VALUE or new.key is None else new.key
    subject = subject_of(topic.name, part)
    if registry_queries.settings_of(session.connection(), subject).is_read_only:
        raise conflict(f"The subject {subject} is in read-only mode.", "Set its mode to READWRITE first.")
    primary_key = new.primary_key if part is Part.VALUE else ()
    version = NewVersion(subject, text, wanted.description.format, primary_key)
    return register_version(session, by, version, topic).schema_id


def _registration(
    topic: TopicRow, value_id: int, key_id: int | None, verdict: Verdict, *, is_new_schema: bool
) -> Registration:
    return Registration(
        namespace=topic.source.namespace.name,
        source=topic.source.name,
        topic=topic.name,
        schema_id=value_id,
        key_schema_id=key_id,
        is_new_topic=verdict.is_new_topic,
        is_new_schema=is_new_schema,
        rule=verdict.rule,
        reason=verdict.reason,
    )
