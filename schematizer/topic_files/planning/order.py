"""The order of environments: what staging does not have yet, production is not to get."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cdc_common.clients.registry.kinds import Part
from schematizer.topic_files.planning.differences import PENDING, Earlier
from schematizer.topic_files.planning.things import Kept, Kind, Thing, schema_thing
from schematizer.topic_names import subject_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from schematizer.topic_files.files.reading import Repository, TopicFolder


def missing_earlier(repository: Repository, environment: str, kept: Mapping[Thing, Kept]) -> Earlier | None:
    """Return what the environment before lacks; None if none comes before. `kept`: what was made there."""
    before = repository.catalogue.environments[environment].after
    if before is None:
        return None
    applied = {thing for thing, note in kept.items() if PENDING not in note.about}
    folders = {topic.levels: topic for topic in repository.of_environment(before)}
    missing = {
        thing: topic.name
        for topic in repository.of_environment(environment)
        for thing, there in _pairs(topic, folders.get(topic.levels))
        if there not in applied
    }
    return Earlier(before, missing)


def _pairs(topic: TopicFolder, before: TopicFolder | None) -> Iterator[tuple[Thing, Thing | None]]:
    """Yield the topic and its schemas, each with what it is in the environment before."""
    yield Thing(Kind.TOPIC, topic.name), Thing(Kind.TOPIC, before.name) if before else None
    for part, files in ((Part.KEY, [topic.key] if topic.key else []), (Part.VALUE, topic.schemas)):
        for file in files:
            assert file.schema is not None
            text = file.schema.canonical
            there = schema_thing(subject_of(before.name, part), text) if before else None
            yield schema_thing(subject_of(topic.name, part), text), there
