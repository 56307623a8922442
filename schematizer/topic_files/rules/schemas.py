"""Rules about schemas: that they are Avro, read each other in both directions, and keep the primary key."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from schematizer.avro_schemas.compatibility import Level, conflicts
from schematizer.avro_schemas.elements import elements
from schematizer.avro_schemas.parsing import InvalidSchemaError
from schematizer.topic_files.rules.codes import Finding

if TYPE_CHECKING:
    from collections.abc import Iterator

    from schematizer.avro_schemas.parsing import AvroSchema
    from schematizer.topic_files.files.reading import Repository, SchemaFile, TopicFolder


def check_schemas(repository: Repository, topic: TopicFolder) -> Iterator[Finding]:
    """All rules about the schemas of a topic."""
    for path in topic.unordered:
        yield Finding("T607", path, "its name does not begin with a number, and is not key")
    for file in (*topic.schemas, *([topic.key] if topic.key else [])):
        if file.schema is None:
            yield Finding("T601", file.path, file.problem)
    if topic.file.encoding == "avro" and not topic.schemas:
        yield Finding("T606", topic.path, f"{topic.name} has no schema")
    yield from _incompatible(topic)
    yield from _keys(repository, topic)


def _incompatible(topic: TopicFolder) -> Iterator[Finding]:
    """Schemas that cannot read one before, or be read by it."""
    earlier: list[tuple[int, AvroSchema]] = []
    for number, file in enumerate(topic.schemas, 1):
        if file.schema is None:
            continue
        try:
            found = conflicts(Level.FULL_TRANSITIVE, file.schema, earlier)
        except InvalidSchemaError as error:
            found = [str(error)]
        for problem in found:
            yield Finding("T602", file.path, problem)
        earlier.append((number, file.schema))


def _keys(repository: Repository, topic: TopicFolder) -> Iterator[Finding]:
    wanted = topic.file.primary_key
    for file in topic.schemas:
        if file.schema is None:
            continue
        yield from _stated_key(file, file.schema, wanted)
        known = {element.path for element in elements(file.schema.canonical)}
        for name in wanted:
            if name not in known:
                yield Finding("T604", file.path, f"it has no field {name} of the primary key")
    typology = repository.typology(topic)
    cleanup = topic.file.cleanup or (typology.cleanup if typology else "delete")
    if "compact" in cleanup and not wanted and topic.key is None:
        yield Finding("T605", topic.path, f"{topic.name} is compacted, and has no primary key")


def _stated_key(file: SchemaFile, schema: AvroSchema, wanted: list[str]) -> Iterator[Finding]:
    """A schema may say its primary key itself, as `primaryKey`."""
    tree = json.loads(schema.canonical)
    stated = tree.get("primaryKey") if isinstance(tree, dict) else None
    if stated is not None and stated != wanted:
        yield Finding("T603", file.path, f"its primary key is ({', '.join(stated)}), the topic's ({', '.join(wanted)})")
