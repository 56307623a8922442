"""Rules about `source.toml`: who owns the source, its docs, and that one file alone documents it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from schematizer.topic_files.rules.codes import Finding
from schematizer.topic_names import parse_topic

if TYPE_CHECKING:
    from collections.abc import Iterator

    from schematizer.topic_files.files.reading import Repository


def check_sources(repository: Repository) -> Iterator[Finding]:
    """Yield what is wrong with the files of sources. A topic file documents the source of its topic."""
    for one in repository.sources:
        file = one.file
        if file.owner not in repository.catalogue.owners:
            problem = f"the owner {file.owner} is not known" if file.owner else f"{file.name} has no owner"
            yield Finding("T201", one.path, problem)
        for path, field in file.fields.items():
            if not field.doc:
                yield Finding("T302", one.path, f"the field {path} has no doc")
    yield from _documented_twice(repository)


def _documented_twice(repository: Repository) -> Iterator[Finding]:
    """Environments with the same settings share a registry."""
    environments = repository.catalogue.environments
    known: dict[tuple[str | None, str], str] = {}
    for topic in repository.topics:
        name = parse_topic(topic.name, repository.catalogue.pii_prefix)
        known.setdefault((environments[topic.environment].settings, f"{name.namespace}/{name.source}"), topic.path)
    for one in repository.sources:
        first = known.setdefault((environments[one.environment].settings, one.file.name), one.path)
        if first != one.path:
            yield Finding("T304", one.path, f"{first} documents {one.file.name} too, in the same registry")
