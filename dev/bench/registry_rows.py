"""A registry's database with many schemas, written in bulk: rows as registrations leave them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from sqlalchemy import insert

from cdc_common.clients.registry.kinds import About, Part, Status, TopicKind
from schematizer.avro_schemas.elements import elements
from schematizer.avro_schemas.parsing import parse
from schematizer.catalogue import words
from schematizer.model.base import now
from schematizer.model.registry_queries import digest_of
from schematizer.model.registry_tables import schemas, versions
from schematizer.model.search_tables import documents
from schematizer.model.source_tables import ElementRow, NamespaceRow, SourceRow, TopicRow, TopicSchemaRow
from schematizer.registration.mirror import FORMAT

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sqlalchemy import Connection

    from schematizer.avro_schemas.elements import Element
    from schematizer.model.database import Database

AT_ONCE = 5000
PER_TOPIC = 10
COLUMNS = 12
NAMESPACE = "cdc.bench"


def schema(number: int) -> str:
    """A row of a dozen columns, one of them the number's own."""
    fields = [
        {"name": f"column_{number}", "type": ["null", "string"], "default": None} for number in range(COLUMNS - 1)
    ]
    fields.append({"name": f"own_{number}", "type": ["null", "long"], "default": None})
    record = {"type": "record", "name": "Value", "namespace": f"{NAMESPACE}.{source(number)}", "fields": fields}
    return json.dumps(record)


def source(number: int) -> str:
    return f"t{number // PER_TOPIC}"


def topic(number: int) -> str:
    return f"{NAMESPACE}.{source(number)}"


def subject(number: int) -> str:
    return f"{topic(number)}-value"


def fill(database: Database, count: int) -> None:
    """An empty database gets the schemas 0 to `count` - 1, with the ids 1 to `count`, ten versions in a topic."""
    texts = Texts()
    assert texts.canonical(count - 1) == parse(schema(count - 1)).canonical
    database.write(_add_namespace)
    for first in range(0, count, AT_ONCE):
        numbers = range(first, min(first + AT_ONCE, count))
        database.write(lambda connection, numbers=numbers: _add(connection, texts, numbers))  # type: ignore[misc] # bound at once


def _add_namespace(connection: Connection) -> None:
    connection.execute(insert(NamespaceRow).values(name=NAMESPACE, created_at=now()))
    place = {"about": About.NAMESPACE.value, "namespace": NAMESPACE, "source": "", "name": NAMESPACE, "text": ""}
    connection.execute(insert(documents).values(**place, name_words=words.name_words(NAMESPACE), text_words=""))


class Texts:
    """Canonical texts, of one that was parsed: parsing each takes longer than all the rest."""

    def __init__(self) -> None:
        self._first = parse(schema(0)).canonical

    def canonical(self, number: int) -> str:
        return self._first.replace("own_0", f"own_{number}").replace(f'"{topic(0)}', f'"{topic(number)}')


def _add(connection: Connection, texts: Texts, numbers: range) -> None:
    canonical = [texts.canonical(number) for number in numbers]
    firsts = [number for number in numbers if number % PER_TOPIC == 0]
    moment = now()
    used = {"status": Status.READ_WRITE, "created_at": moment, "last_used_at": moment}
    connection.execute(insert(schemas), [{"digest": digest_of(text), "text": text} for text in canonical])
    connection.execute(
        insert(versions),
        [
            {"subject": subject(number), "version": number % PER_TOPIC + 1, "schema_id": number + 1, "deleted": False}
            for number in numbers
        ],
    )
    connection.execute(
        insert(SourceRow), [{"namespace_id": 1, "name": source(number), "created_at": moment} for number in firsts]
    )
    connection.execute(
        insert(TopicRow),
        [
            {"name": topic(number), "source_id": _row_id(number), "kind": TopicKind.CHANGE, "pii": "", **used}
            for number in firsts
        ],
    )
    of_schemas = {"part": Part.VALUE, "format": FORMAT, "primary_key": "", **used}
    connection.execute(
        insert(TopicSchemaRow),
        [{"topic_id": _row_id(number), "schema_id": number + 1, **of_schemas} for number in numbers],
    )
    fields = {number: elements(text) for number, text in zip(numbers, canonical, strict=True)}
    connection.execute(
        insert(ElementRow),
        [
            {"schema_id": number + 1, "position": position, **row._asdict()}
            for number, every in fields.items()
            for position, row in enumerate(every)
        ],
    )
    lasts = {number // PER_TOPIC: number for number in numbers}.values()
    connection.execute(
        insert(documents), [document for number in lasts for document in _documents(number, fields[number])]
    )


def _row_id(number: int) -> int:
    """The id of its source, which is also that of its topic."""
    return number // PER_TOPIC + 1


def _documents(number: int, fields: list[Element]) -> Iterator[dict[str, str]]:
    """Yield a source's documents, as schematizer.catalogue.indexing makes them."""
    yield _document(number, About.SOURCE, source(number), "")
    yield _document(number, About.TOPIC, topic(number), TopicKind.CHANGE.value)
    for field in fields:
        if field.path:
            yield _document(number, About.FIELD, field.path, f"{NAMESPACE} {source(number)} {field.type}")


def _document(number: int, about: About, name: str, unseen: str) -> dict[str, str]:
    place = {"about": about.value, "namespace": NAMESPACE, "source": source(number), "name": name, "text": ""}
    return {**place, "name_words": words.name_words(name), "text_words": words.text_words(unseen)}
