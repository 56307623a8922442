"""Rules about names of folders, topics and fields, and about what a topic file refers to."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING

from schematizer.topic_files.files.catalogue_file import principal_of
from schematizer.topic_files.rules.codes import Finding

if TYPE_CHECKING:
    from collections.abc import Iterator

    from schematizer.topic_files.files.reading import Repository, TopicFolder

_KAFKA = re.compile(r"[A-Za-z0-9._-]{1,249}")
_LAST = re.compile(r"[^.\[\]{}]+")


def check_names(repository: Repository, topic: TopicFolder) -> Iterator[Finding]:
    """Folders, the topic's name, and the names of fields."""
    names = repository.catalogue.names
    for folder in topic.levels:
        if not re.search(names.folder, folder):
            yield Finding("T101", topic.path, f"the folder {folder} does not match {names.folder}")
    if not _KAFKA.fullmatch(topic.name) or topic.name in (".", ".."):
        yield Finding("T102", topic.path, f"Kafka can have no topic {topic.name!r}")
    if topic.file.pii != "none" and not topic.name.startswith(repository.catalogue.pii_prefix):
        yield Finding("T104", topic.path, f"{topic.name} does not begin with {repository.catalogue.pii_prefix}")
    for element in topic.newest_elements:
        name = _LAST.findall(element.path)[-1:]
        if name and not re.search(names.field, name[0]):
            yield Finding("T103", topic.schemas[-1].path, f"the field {element.path} does not match {names.field}")


def check_unique(repository: Repository) -> Iterator[Finding]:
    """Two topics of one name, or of names that Kafka's metrics take for one."""
    for environment in repository.catalogue.environments:
        known: dict[str, TopicFolder] = {}
        for topic in repository.of_environment(environment):
            first = known.setdefault(topic.name.replace("_", "."), topic)
            if first is topic:
                continue
            rule = "T004" if first.name == topic.name else "T102"
            yield Finding(rule, topic.path, f"{topic.name} is like {first.name} of {first.path}")


def check_services(repository: Repository) -> Iterator[Finding]:
    """The owners of services."""
    for name, service in repository.catalogue.services.items():
        if service.owner not in repository.catalogue.owners:
            problem = f"the owner {service.owner} of the service {name} is not known"
            yield Finding("T207", repository.catalogue_path, problem)


def check_references(repository: Repository, topic: TopicFolder) -> Iterator[Finding]:
    """The names of catalogue.toml that the topic file uses."""
    catalogue, file = repository.catalogue, topic.file
    if file.owner not in catalogue.owners:
        yield Finding("T201", topic.path, f"the owner {file.owner} is not known")
    if file.typology not in catalogue.typologies:
        yield Finding("T203", topic.path, f"the typology {file.typology} is not known")
    if file.throughput is not None and file.throughput not in catalogue.throughput:
        yield Finding("T204", topic.path, f"the class of throughput {file.throughput} is not known")
    if file.archive is not None and catalogue.archive is None:
        yield Finding("T205", topic.path, "catalogue.toml has no [archive]")
    counts = Counter(target.warehouse for target in file.warehouses)
    for name in (name for name, count in counts.items() if count > 1):
        yield Finding("T209", topic.path, f"the warehouse {name} is listed {counts[name]} times")
    for target in file.warehouses:
        if target.warehouse not in catalogue.warehouses:
            yield Finding("T205", topic.path, f"the warehouse {target.warehouse} is not known")


def check_clients(repository: Repository, topic: TopicFolder) -> Iterator[Finding]:
    """Producers and consumers."""
    catalogue, file = repository.catalogue, topic.file
    if not file.producers:
        yield Finding("T208", topic.path, f"{topic.name} has no producer")
    names = [client.service for client in file.producers] + [client.service for client in file.consumers]
    for name in names:
        service = catalogue.services.get(name)
        if service is None:
            yield Finding("T202", topic.path, f"the service {name} is not known")
        elif principal_of(service.principal, topic.environment) is None:
            problem = f"the service {name} has no principal in {topic.environment}"
            yield Finding("T206", topic.path, problem)
