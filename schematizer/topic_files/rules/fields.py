"""Rules about the fields of a topic: their docs, their types, and personal data."""

from __future__ import annotations

from typing import TYPE_CHECKING

from schematizer.avro_schemas.elements import is_within
from schematizer.topic_files.rules.codes import Finding

if TYPE_CHECKING:
    from collections.abc import Iterator

    from schematizer.topic_files.files.reading import Repository, TopicFolder

_TIMES = ("timestamp-", "local-timestamp-")


def check_docs(topic: TopicFolder) -> Iterator[Finding]:
    """The docs of the topic and of each field of its newest schema."""
    file = topic.file
    if not file.doc:
        yield Finding("T301", topic.path, f"{topic.name} has no doc")
    found = {element.path: element for element in topic.newest_elements if element.path}
    for path, element in found.items():
        written = file.fields.get(path)
        if not element.doc and not (written and written.doc):
            yield Finding("T302", topic.path, f"the field {path} has no doc")
    if topic.values:
        for path in file.fields.keys() - found.keys():
            yield Finding("T303", topic.path, f"the newest schema has no field {path}")


def check_types(repository: Repository, topic: TopicFolder) -> Iterator[Finding]:
    """Mandatory fields, the types of times, and the encoding."""
    typology = repository.typology(topic)
    if typology is None:
        return
    if topic.file.encoding not in typology.encodings:
        problem = f"{topic.file.typology} takes {', '.join(typology.encodings)}, not {topic.file.encoding}"
        yield Finding("T403", topic.path, problem)
    if not topic.values:
        return
    path, types = topic.schemas[-1].path, {element.path: element.type for element in topic.newest_elements}
    for name, wanted in typology.mandatory_fields.items():
        if types.get(name) != wanted:
            found = f"is {types[name]}" if name in types else "is missing"
            yield Finding("T401", path, f"the field {name} {found}; {topic.file.typology} has {wanted}")
    wanted = repository.catalogue.time_type
    for name, found in types.items():
        if any(f"({kind}" in found for kind in _TIMES) and wanted not in found:
            yield Finding("T402", path, f"the field {name} is {found}, not {wanted}")


def check_personal(repository: Repository, topic: TopicFolder) -> Iterator[Finding]:
    """Personal fields, and the level of personal data of the topic."""
    file, catalogue = topic.file, repository.catalogue
    flagged = [path for path, field in file.fields.items() if field.pii]
    if file.pii == "none":
        for path in flagged:
            yield Finding("T501", topic.path, f"the field {path} is personal, and the topic's `pii` is none")
    elif topic.values and not any(is_within(element.path, flagged) for element in topic.newest_elements):
        yield Finding("T503", topic.path, f"`pii` is {file.pii}, and no field of the newest schema is personal")
    typology = repository.typology(topic)
    if typology is not None and file.pii not in typology.pii:
        yield Finding("T502", topic.path, f"`pii` is {file.pii}; {file.typology} takes {', '.join(typology.pii)}")
    if file.scope == "public" and file.pii not in catalogue.public_pii:
        problem = f"`pii` is {file.pii}; public topics take {', '.join(catalogue.public_pii)}"
        yield Finding("T502", topic.path, problem)


def check_warehouses(repository: Repository, topic: TopicFolder) -> Iterator[Finding]:
    """Yield what is wrong with the topic's warehouses. One that is not known is another finding."""
    file, known = topic.file, repository.catalogue.warehouses
    for target in (target for target in file.warehouses if target.warehouse in known):
        allowed = known[target.warehouse].personal_data
        wanted = target.personal_data or allowed
        if wanted == "load" != allowed:
            yield Finding("T504", topic.path, f"{target.warehouse} says {allowed} for personal fields, not load")
        if file.pii != "none" and wanted == "refuse":
            yield Finding("T505", topic.path, f"{target.warehouse} refuses personal fields: the table would stop")
        if file.encoding != "avro" or topic.key is None:
            found = "no schema of keys" if file.encoding == "avro" else f"messages of {file.encoding}"
            yield Finding("T802", topic.path, f"{target.warehouse} is to load the topic, which has {found}")


def check_event_time(topic: TopicFolder) -> Iterator[Finding]:
    """The fields that the archive takes the time of an event from."""
    if topic.file.archive is None or not topic.values:
        return
    known = {element.path for element in topic.newest_elements}
    for name in topic.file.archive.event_time:
        if name not in known:
            yield Finding("T801", topic.path, f"the newest schema has no field {name}")
